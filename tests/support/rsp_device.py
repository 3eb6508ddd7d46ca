"""A device that answers GDB's remote protocol from a script: memory, registers, and what its firmware does at each go.

It stands in for a Cortex-M behind a probe whose cycle counter counts, which no emulator has here.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator

_FEATURES = """<?xml version="1.0"?><!DOCTYPE target SYSTEM "gdb-target.dtd"><target version="1.0">
<architecture>arm</architecture><feature name="org.gnu.gdb.arm.m-profile">%s</feature></target>"""
_NAMES = (*(f"r{number}" for number in range(13)), "sp", "lr", "pc", "xpsr")
_PC, _XPSR = 15, 16
_XML = _FEATURES % "".join(f'<reg name="{name}" bitsize="32"/>' for name in _NAMES)
_CHUNK = 1 << 12


class ScriptedDevice:
    """Memory and registers; ``run`` is called when GDB lets the firmware run, and returns the address of its stop."""

    def __init__(self, run: Callable[[ScriptedDevice], int]) -> None:
        self.memory: dict[int, int] = {}
        self.registers = [0] * len(_NAMES)
        self.registers[_XPSR] = 1 << 24
        self.entry = 0
        self.reads: list[int] = []
        """Addresses that were read one word at a time."""
        self.monitor: dict[str, str | None] = {}
        """What the server prints for a monitor command, ``None`` if it answers that it supports none; others print
        nothing, and reset the device."""
        self._run = run
        self._server = socket.create_server(("127.0.0.1", 0))

    @property
    def port(self) -> int:
        """The port of the GDB server."""
        return int(self._server.getsockname()[1])

    def read(self, address: int, size: int) -> bytes:
        """Return memory; what was never written is 0."""
        return bytes(self.memory.get(address + at, 0) for at in range(size))

    def write(self, address: int, data: bytes) -> None:
        """Change memory."""
        self.memory.update(zip(range(address, address + len(data)), data, strict=True))

    def word(self, address: int, value: int | None = None) -> int:
        """Return a word, after writing ``value`` if it is given."""
        if value is not None:
            self.write(address, struct.pack("<I", value & 0xFFFF_FFFF))
        return int.from_bytes(self.read(address, 4), "little")

    @contextlib.contextmanager
    def serving(self) -> Iterator[ScriptedDevice]:
        """Serve one connection for the block."""
        thread = threading.Thread(target=self._serve, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.close()
            thread.join(5)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            connection, _ = self._server.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with connection:
                pending = b""
                while received := connection.recv(1 << 16):
                    pending += received
                    while (end := pending.find(b"#")) >= 0 and len(pending) >= end + 3:
                        packet = pending[pending.find(b"$") + 1 : end]
                        pending = pending[end + 3 :]
                        answer = self._answer(packet)  # in one piece with the acknowledgement: faster by 40 ms
                        reply = b"" if answer is None else b"$" + answer + b"#%02x" % (sum(answer) % 256)
                        connection.sendall(b"+" + reply)

    def _answer(self, packet: bytes) -> bytes | None:
        text = packet.decode("latin-1")
        if text.startswith("qSupported"):
            return b"PacketSize=4000;qXfer:features:read+"
        if text.startswith("qXfer:features:read:target.xml:"):
            offset, size = (int(each, 16) for each in text.rpartition(":")[2].split(","))
            part = _XML[offset : offset + size]
            return (("l" if offset + size >= len(_XML) else "m") + part).encode()
        if text.startswith("qRcmd,"):
            return self._monitor(bytes.fromhex(text.removeprefix("qRcmd,")).decode())
        if text == "?":
            return b"S05"
        if text == "g":
            return struct.pack(f"<{len(_NAMES)}I", *self.registers).hex().encode()
        if text[0] == "p":
            return struct.pack("<I", self.registers[int(text[1:], 16)]).hex().encode()
        if text[0] == "P":
            number, _, value = text[1:].partition("=")
            self.registers[int(number, 16)] = int.from_bytes(bytes.fromhex(value), "little")
            return b"OK"
        return self._memory(text)

    def _monitor(self, command: str) -> bytes:
        if command in self.monitor:
            printed = self.monitor[command]
            return b"" if printed is None else printed.encode().hex().encode() or b"OK"
        self.registers[_PC] = self.entry
        return b"OK"

    def _memory(self, text: str) -> bytes | None:
        if text[0] == "m":
            address, size = (int(each, 16) for each in text[1:].split(","))
            if size == 4:
                self.reads.append(address)
            return self.read(address, min(size, _CHUNK)).hex().encode()
        if text[0] == "M":
            address_text, _, data = text[1:].partition(":")
            self.write(int(address_text.split(",")[0], 16), bytes.fromhex(data))
            return b"OK"
        if text[0] in "Zz":
            return b"OK"
        if text[0] == "s":
            self.registers[_PC] += 2
            return b"S05"
        if text[0] == "c":
            self.registers[_PC] = self._run(self)
            return b"S05"
        if text[0] == "D":
            return b"OK"
        return None if text[0] == "k" else b""
