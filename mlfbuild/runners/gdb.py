"""Devices behind a GDB server: OpenOCD, pyOCD, J-Link, ST-LINK, probe-rs, Black Magic Probe, QEMU.

GDB itself speaks to the server, so a device that works in GDB also works here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlfbuild.core import (
    MlfError,
    OnProgress,
    ProcessFailedError,
    TimedOutError,
    UsageError,
    find_tool,
    no_progress,
    require_extra,
    stops_held,
)
from mlfbuild.project import RunnerKeys
from mlfbuild.runners.background import Background, background
from mlfbuild.runners.calls import call_function
from mlfbuild.runners.firmware import Firmware, read_firmware
from mlfbuild.runners.gdb_client import GdbClient, GdbRefusal, mi_string
from mlfbuild.runners.gdb_servers import check_port_is_free, gdb_server, is_unknown, recognised, unreachable, with_host
from mlfbuild.runners.image_checks import MVFR0, check_image, check_size, memory_map, not_written
from mlfbuild.runners.lock import device_lock
from mlfbuild.runners.placeholders import filled
from mlfbuild.runners.serial_port import serial_console
from mlfbuild.targets import GdbServer, MemoryRegion

_ANSWER_SECONDS = 30.0
"""Default of the key ``timeout``."""
_CONNECT_SECONDS = 10.0
"""Longest time until the server answers GDB. A program that is not a GDB server never does."""
_FLASH_SECONDS = 120.0
"""Longest time between two reports of GDB while it loads: large flash memories take a minute to erase."""
# Short, because a device that hangs must not delay the report of the error that led here.
_CLOSE_SECONDS = 5.0
# Address of the register CPUID, the same in all M-profile cores.
_CPUID = 0xE000ED00
# GDB divides a request into packets of the size that the server offers; one command for a whole memory would have no
# answer within the time limit on a slow probe.
_CHUNK = 16 * 1024
"""Bytes of memory for each command."""
_SENT = re.compile(r'total-sent="(\d+)"')
_CURRENT = re.compile(r'currently "?([^")]+)')
_MISMATCH = re.compile(r"Section (\S+), range (\S+) -- (\S+): MIS-MATCHED")
_CORE_REGISTERS = (*(f"r{number}" for number in range(13)), "sp", "lr", "pc", "xpsr", "msp", "psp")
"""QEMU before version 8 has no msp and psp."""
_CALL_CLOBBERS = (*(f"d{number}" for number in range(8)), "fpscr", "vpr")
"""Floating-point registers that a called function may change (AAPCS)."""


class Gdb:
    """A device behind a GDB server; see ``Runner`` for what its methods do."""

    def __init__(self, keys: RunnerKeys, place: str, memory: Sequence[MemoryRegion], server: GdbServer) -> None:
        self.name = f"{keys.transport} {keys.address}"
        self.console: Callable[[], str] = str
        self._place, self._memory, self._kind = place, tuple(memory), server
        self._timeout = _ANSWER_SECONDS if keys.timeout is None else keys.timeout / 1e9
        self._stack = contextlib.ExitStack()
        self._client: GdbClient
        self._breakpoints: dict[int, str] = {}
        """Numbers of GDB's breakpoints by address."""
        self._stopped_at: int | None = None
        """Address at which ``go`` ended; ``None`` if the device was reset or its registers were changed since then."""
        self._numbers: dict[str, tuple[int, str]] = {}
        """Numbers of registers and their names in GDB, by names in lower case."""

    # Connection ------------------------------------------------------------------------------------------------------

    def connect(
        self, address: str, start: Sequence[str] = (), device: str = "", console: tuple[str, int] | None = None
    ) -> None:
        """Start the server ``start``, if it is given, and have GDB connect to ``address``.

        ``device`` is what no other process may use at the same time, by default the address. ``console`` is a serial
        port with its bits per second.
        """
        require_extra("gdb", self._place, "the connection to a GDB server")
        program = find_tool("gdb-multiarch")
        with contextlib.ExitStack() as stack:
            stack.enter_context(device_lock(device or f"gdb {address}", self._place))
            server = None
            if start:
                check_port_is_free(address, self._place)
                server = stack.enter_context(background([str(find_tool(start[0])), *start[1:]]))
            self._client = GdbClient(self.name, server)
            stack.enter_context(self._client.running(program))
            self._attach(address, server)
            # After GDB in the stack, so that the device is released while GDB still runs.
            stack.callback(self._release)
            if console is not None:  # the server may provide it
                self.console = stack.enter_context(serial_console(*console, self._place)).read
            # Only now does close() have to undo all of it. Until here, the inner stack undoes what was done if a later
            # step fails.
            self._stack = stack.pop_all()

    def _attach(self, address: str, server: Background | None) -> None:
        seconds = _CONNECT_SECONDS if server is None else self._timeout + _CONNECT_SECONDS
        try:
            # GDB tries again until the server listens. A test connection would end servers that serve only one.
            self._ask(f"-gdb-set tcp auto-retry {'off' if server is None else 'on'}")
            self._ask(f"-gdb-set tcp connect-timeout {max(1, round(self._timeout))}")
            self._client.ask(f"-target-select {self._kind.mode} {with_host(address)}", seconds)
        except ProcessFailedError as error:
            words = error.words if isinstance(error, GdbRefusal) else error.reason
            raise unreachable(address, words, self._client.output, self._place, started=server is not None) from None
        self._check_kind(address)
        for command in self._kind.attach:
            self._say(command)

    def _check_kind(self, address: str) -> None:
        """Raise ``UsageError`` if the server is of another kind: its device would not be reset, and seem to fault."""
        found = recognised(self._answered)
        if found is not None and found is not self._kind:
            raise UsageError(
                "gdb-server-of-another-kind",
                place=f"{self._place}.server",
                reason=f"the GDB server at {address} is {found.name}, but it is taken for {self._kind.name}",
                hint=f"write server: {found.name}, or connect to {self._kind.name}",
            )

    def _answered(self, command: str) -> str:
        """Return what GDB prints for ``command``, or the reason why the server refuses it."""
        try:
            return self._say(command)
        except GdbRefusal as error:
            return f"{error.output}\n{error.words}"

    @property
    def emulated(self) -> bool:
        """Whether QEMU is the server, whatever the project file calls it: only QEMU knows this packet."""
        return "ENABLE=" in self._answered("maintenance packet qqemu.sstepbits")

    def close(self) -> None:
        """Reset the device, let it run and release it; stop what was started for it. It may be called twice."""
        with stops_held():  # a second Ctrl-C must not leave the device halted
            self._stack.close()

    def _release(self) -> None:
        """Reset the device and let it run. Errors do not matter any more."""
        with contextlib.suppress(MlfError):
            if self._client.stop is None:
                self._halt(_CLOSE_SECONDS)
            # The breakpoints go first: a core that runs into one without a debugger faults.
            for command in ("delete", *self._kind.release, "detach"):
                with contextlib.suppress(GdbRefusal):  # kill also detaches
                    self._client.console(command, _CLOSE_SECONDS)

    def _ask(self, command: str) -> Mapping[str, Any]:
        return self._client.ask(command, self._timeout)

    def _say(self, command: str) -> str:
        return self._client.console(command, self._timeout)

    # Loading ---------------------------------------------------------------------------------------------------------

    def load(self, image: Path, on_progress: OnProgress = no_progress) -> None:
        """Write the segments of ``image`` unless the device holds them, compare them, and reset the device.

        GDB also reads the symbols of ``image``. Raises ``UnsupportedModelError`` if it is for another CPU or FPU or
        does not fit the memories, and ``ProcessFailedError`` if the device does not take it or holds something else
        afterwards.
        """
        firmware = read_firmware(image)
        self._check(firmware)
        self.reset()  # running firmware may use the flash, or have changed clocks
        self._ask(f"-file-exec-and-symbols {mi_string(str(image.resolve()))}")
        self._numbers = {}  # GDB takes registers from the image if the server does not describe them
        if not self._holds():
            self._download(firmware, on_progress)
            self.reset()  # what servers and flash controllers have read before may be in their caches
            self._compare(firmware)

    def _check(self, firmware: Firmware) -> None:
        """Raise ``UnsupportedModelError`` if the device cannot run ``firmware``, or has too little memory."""
        found = _CURRENT.search(self._say("show architecture"))
        registers: list[int] = []
        with contextlib.suppress(GdbRefusal):  # it is not an M-profile core
            registers = [int.from_bytes(self._read(address, 4), "little") for address in (_CPUID, MVFR0)]
        cpuid, mvfr0 = registers or (None, None)
        check_image(firmware, found[1] if found else "", cpuid, mvfr0, self.name)
        check_size(firmware, self._memory, self.name)
        regions = memory_map(self._say("info mem"))
        check_size(firmware, regions, self.name, all_memory=bool(regions))

    def _download(self, firmware: Firmware, on_progress: OnProgress) -> None:
        size = firmware.size

        def progress(record: str) -> None:
            sent = _SENT.search(record)
            if sent is not None:
                on_progress("loading", min(int(sent[1]), size), size)

        on_progress("loading", 0, size)
        try:
            self._client.ask("-target-download", max(_FLASH_SECONDS, self._timeout), progress)
        except GdbRefusal as error:
            raise self._not_written(firmware, error.words) from None
        on_progress("loading", size, size)

    def _holds(self) -> bool:
        """Return whether the device holds the image already: flash wears out, and writing it takes time."""
        with contextlib.suppress(GdbRefusal):
            printed = self._compared()
            return "matched." in printed and _MISMATCH.search(printed) is None
        return False

    def _compare(self, firmware: Firmware) -> None:
        try:
            wrong = _MISMATCH.search(self._compared())
        except GdbRefusal as error:
            raise self._not_written(firmware, error.words) from None
        if wrong is not None:
            section, begin, end = wrong.groups()
            reason = f"the memory from {begin} to {end} (section {section}) does not contain what was written"
            raise self._not_written(firmware, reason)

    def _compared(self) -> str:
        return self._client.console("compare-sections", max(_FLASH_SECONDS, self._timeout))

    def _not_written(self, firmware: Firmware, reason: str) -> ProcessFailedError:
        return not_written(firmware.path.name, reason, self.name, self._client.output)

    # Running ---------------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Reset the device and halt it before its first instruction."""
        self._stopped_at = None
        for command in self._kind.halt:
            self._reset_with(command)
        # GDB does not know that the server has changed the registers.
        try:
            self._say("maintenance flush register-cache")
        except GdbRefusal:
            self._say("flushregs")  # GDB before 11

    def _reset_with(self, command: str) -> None:
        """Run ``command``; raise ``ProcessFailedError`` if the server does not know it, which most print as success."""
        try:
            printed = self._say(command)
        except GdbRefusal as error:
            if not is_unknown(error.words):
                raise
            printed = error.words
        if is_unknown(printed):
            raise ProcessFailedError(
                "device-not-reset",
                printed,
                place=f"{self._place}.server",
                reason=f"the GDB server does not know `{command}`, with which {self._kind.name} resets a device",
                hint="write server: with the kind of the server",
            )

    def go(self, stops: Sequence[int], timeout: float) -> int:
        """Let the firmware run until it reaches one of ``stops``, and return that address.

        If it stands at one of them, it runs on from there.
        """
        here = self._stopped_at
        if here is None and (here := self.registers()["pc"]) in stops:
            # GDB would report a breakpoint here at once, because the device has not come here by running.
            self._set_breakpoints(())
            here = self._run("-exec-step-instruction", timeout, ())
            if here in stops:
                self._stopped_at = here
                return here
        self._set_breakpoints(stops)
        self._stopped_at = None
        self._stopped_at = self._run("-exec-continue", timeout, stops)
        return self._stopped_at

    def _run(self, command: str, timeout: float, stops: Sequence[int]) -> int:
        self._ask(command)
        record = self._client.wait_for_stop(timeout)
        if record is None:
            self._halt(self._timeout)
            reason = f"the firmware did not stop within {timeout:g} s and was halted"
            hint = "look for an endless loop, or set a longer time limit"
            raise TimedOutError("device-timed-out", place=self.name, reason=reason, hint=hint)
        address = int(record["frame"]["addr"], 16)
        if stops and address not in stops:
            signal = record.get("signal-meaning") or record.get("reason") or "for an unknown reason"
            reason = f"the firmware stopped at {address:#010x} ({signal})"
            hint = "look for a bkpt instruction, such as a semihosting call or an assertion"
            raise ProcessFailedError("device-stopped", place=self.name, reason=reason, hint=hint)
        return address

    def _halt(self, timeout: float) -> None:
        self._client.ask("-exec-interrupt", timeout)
        if self._client.wait_for_stop(timeout) is None:
            raise self._client.lost(f"the device does not halt within {timeout:g} s")

    def _set_breakpoints(self, stops: Sequence[int]) -> None:
        # Breakpoints that stay are not set again: each takes an exchange with the probe, and firmware that calls its
        # host stops very often at the same addresses.
        for address in self._breakpoints.keys() - {*stops}:
            self._ask(f"-break-delete {self._breakpoints.pop(address)}")
        for address in sorted({*stops} - self._breakpoints.keys()):
            # -h: hardware breakpoints. A software breakpoint would be written into flash, which wears out and which a
            # server may refuse.
            answer = self._ask(f"-break-insert -h *{address:#x}")
            self._breakpoints[address] = answer["bkpt"]["number"]

    # Memory and registers --------------------------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes of memory."""
        parts = [self._read(address + at, min(_CHUNK, size - at)) for at in range(0, size, _CHUNK)]
        return b"".join(parts)

    def _read(self, address: int, size: int) -> bytes:
        answer = self._ask(f"-data-read-memory-bytes {address:#x} {size}")
        blocks = answer["memory"]
        data = bytes.fromhex(blocks[0]["contents"])
        # GDB reports success for the part that it could read.
        if int(blocks[0]["begin"], 16) != address or len(data) != size:
            reason = f"{size} bytes at {address:#010x} are not all readable"
            raise ProcessFailedError("device-memory-unreadable", place=self.name, reason=reason)
        return data

    def write(self, address: int, data: bytes) -> None:
        """Change memory in RAM."""
        for at in range(0, len(data), _CHUNK):
            self._ask(f"-data-write-memory-bytes {address + at:#x} {data[at : at + _CHUNK].hex()}")

    def registers(self) -> Mapping[str, int]:
        """Return the core's registers."""
        known = self._known_registers()
        wanted = [name for name in _CORE_REGISTERS if name in known]
        answer = self._ask(f"-data-list-register-values x {' '.join(str(known[name][0]) for name in wanted)}")
        values = {int(each["number"]): each["value"] for each in answer["register-values"]}
        return {name: int(values[known[name][0]], 16) & 0xFFFF_FFFF for name in wanted}

    def set_registers(self, values: Mapping[str, int]) -> None:
        """Change registers."""
        known = self._known_registers()
        self._stopped_at = None
        # GDB unwinds the stack anew after a change of these, and may then refuse to change xpsr.
        ordered = sorted(values.items(), key=lambda each: each[0] in {"sp", "lr", "pc"})
        if ordered:
            changes = ", ".join(f"${known[name][1]} = {value:#x}" for name, value in ordered)
            self._ask(f'-data-evaluate-expression "{changes}"')

    def _known_registers(self) -> Mapping[str, tuple[int, str]]:
        if not self._numbers:
            names = self._ask("-data-list-register-names")["register-names"]
            for number, name in enumerate(names):
                if name:
                    self._numbers[name.lower()] = (number, name)  # OpenOCD writes xPSR
        return self._numbers

    def call(self, address: int, arguments: Sequence[int], timeout: float) -> int:
        """Call the function at ``address``; see ``call_function``. Floating-point registers are also restored."""
        saved = []
        # In variables of GDB, because the registers may be 64 bits wide and registers() reads 32.
        for name in _CALL_CLOBBERS:
            if name in self._known_registers():
                with contextlib.suppress(GdbRefusal):  # a part without FPU may list them
                    self._say(f"set $mlf_{name} = ${name}")
                    saved.append(name)
        result = call_function(self, address, arguments, timeout)
        for name in saved:
            self._say(f"set var ${name} = $mlf_{name}")
        return result


def connect(keys: RunnerKeys, place: str, memory: Sequence[MemoryRegion]) -> Gdb:
    """Return the device behind the GDB server of ``keys``, halted and with GDB attached.

    The server is started if the keys have a ``start`` command. ``place`` locates the keys in messages; ``memory`` are
    the memories that an image must fit into.

    Raises ``ToolNotFoundError`` if GDB, pygdbmi or the server is missing, ``UsageError`` if the kind of the server is
    unknown or another one answers, ``ConflictError`` if the device or the port is in use, and ``ProcessFailedError`` if
    GDB cannot connect.
    """
    server = gdb_server(keys.server, keys.start, keys.address, place)
    runner = Gdb(keys, place, memory, server)
    console = (keys.console, keys.baud) if keys.console else None
    start = filled(keys.start, keys.probe, place)
    runner.connect(keys.address, start, f"probe {keys.probe}" if keys.probe else "", console)
    return runner
