"""Devices on a serial line whose firmware contains ``runtime/serial/mlf_serial.c``.

    Serial.load  ->  HELLO, the CRC of each segment in the device  ->  RESET  ->  go, read, write  ->  RESET

The image is written to the device by the user's ``flash`` command, or by hand; ``load`` compares what the device holds
and flashes only another image. The firmware stops by itself, so there are neither registers nor breakpoints.
"""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from mlfbuild.core import InputFileError, MlfError, OnProgress, ProcessFailedError, UsageError, no_progress
from mlfbuild.project import RunnerKeys
from mlfbuild.runners.command import flash_image
from mlfbuild.runners.firmware import Firmware, read_firmware
from mlfbuild.runners.image_checks import check_size
from mlfbuild.runners.link import Hello, Link, Stop
from mlfbuild.runners.lock import device_lock
from mlfbuild.runners.serial_port import SerialPort
from mlfbuild.targets import MemoryRegion

_ANSWER_SECONDS = 5.0
"""Default of the key timeout."""
_BOOT_SECONDS = 10.0
"""Longest time from a reset, or from the end of flashing, to the first answer."""
_LOOK_SECONDS = 1.0
"""Seconds that ``load`` waits for an answer before it flashes."""
# Short: the device may be gone, which is often why the session ends.
_CLOSE_SECONDS = 1.0
_CHECKED = 16 * 1024
"""Bytes of memory per request for a CRC, which a slow core computes in some milliseconds."""
# On a line that damages every second long frame, short ones still arrive.
_SMALLEST_CHUNK = 16
_ATTEMPTS = 3
"""Of a request for more bytes than that, before it is made for fewer."""
_GOOD_ANSWERS = 8
"""Requests without repetition after which twice as many bytes are requested at a time."""
_ANCHOR = "mlf_serial_serve"


class Serial:
    """A device on a serial line; see ``Runner``."""

    def __init__(self, keys: RunnerKeys, place: str, memory: Sequence[MemoryRegion] = ()) -> None:
        """Open the port; raises what ``SerialPort`` and ``device_lock`` raise."""
        self.name = f"serial {keys.address}"
        self._keys, self._place, self._memory = keys, place, tuple(memory)
        with contextlib.ExitStack() as stack:
            stack.enter_context(device_lock(self.name, place))
            self._port = SerialPort(keys.address, keys.baud, place)
            stack.callback(self._port.close)
            self._stack = stack.pop_all()
        patience = _ANSWER_SECONDS if keys.timeout is None else keys.timeout / 1e9
        self._link = Link(self._port, keys.address, place, keys.baud, patience)
        self._hello: Hello | None = None
        self._stop: Stop | None = None
        """The place at which the firmware has stopped, until ``go`` has returned it."""
        self._known = Stop(0, 0, b"")
        """The last stop, with its copy of memory as long as that is valid."""
        self._chunk, self._good = _SMALLEST_CHUNK, 0
        self._entry = -1

    # Images -----------------------------------------------------------------------------------------------------------

    def load(self, image: Path, on_progress: OnProgress = no_progress) -> None:
        """Have the device hold the image, and reset it; see ``Runner.load``.

        The ``flash`` command is run only if the device holds another image. Raises ``ProcessFailedError`` if it holds
        another one then.
        """
        firmware = read_firmware(image)
        check_size(firmware, self._memory, self.name)
        anchor = firmware.function(_ANCHOR) or firmware.objects.get(_ANCHOR)
        if anchor is None:
            raise InputFileError(
                "image-without-serial",
                place=image,
                reason=f"the image does not contain mlf_serial.c, or is stripped (it has no symbol {_ANCHOR})",
                hint="add mlf_serial.c to the firmware, as in docs/runners.md",
            )
        self._entry = firmware.entry
        flashes = bool(self._keys.flash)
        if flashes and not self._holds(firmware, anchor):
            on_progress("flashing", 0, 0)
            # Serial boot loaders use the same port, and it is opened exclusively.
            self._port.close()  # the command may need it
            flash_image(self._keys, image, self._place)
        self._connect(_BOOT_SECONDS if flashes else None)
        different = self._difference(firmware, anchor, on_progress)
        if different is not None:
            hint = f"flash {image}, or add flash: with the command that does"
            raise ProcessFailedError(
                "device-has-other-image",
                place=self._place,
                reason=f"the device at {self._keys.address} runs another image than {image}: {different}",
                hint="check that the command in flash writes {elf}" if flashes else hint,
            )
        self.reset()

    def _holds(self, image: Firmware, anchor: int) -> bool:
        try:
            self._connect(_LOOK_SECONDS)
            return self._difference(image, anchor, no_progress) is None
        except ProcessFailedError:
            return False

    @property
    def _greeted(self) -> Hello:
        """The firmware's description of itself; raises ``RuntimeError`` before ``_connect``."""
        if self._hello is None:
            raise RuntimeError(f"{self.name} is not connected")
        return self._hello

    def _difference(self, image: Firmware, anchor: int, on_progress: OnProgress) -> str | None:
        """Return what differs between the image and the device."""
        # A cheap test before the CRCs: another build of the firmware nearly always has the function at another address.
        if self._greeted.anchor | 1 != anchor | 1:
            return f"{_ANCHOR} is at {self._greeted.anchor & ~1:#010x}, not {anchor & ~1:#010x}"
        done, total = 0, sum(len(data) for _, data in image.constants)
        for address, data in image.constants:
            for at in range(0, len(data), _CHECKED):
                piece = data[at : at + _CHECKED]
                crc = self._link.ask("C", _word(address + at) + _word(len(piece)), 4)
                if crc != _word(zlib.crc32(piece)):
                    return f"{len(piece):,} bytes at {address + at:#010x} differ"
                done += len(piece)
                on_progress("comparing", done, total)
        return None

    # Running ----------------------------------------------------------------------------------------------------------

    def _connect(self, patience: float | None = None) -> None:
        self._began(self._link.connect(patience))

    def _began(self, hello: Hello) -> None:
        self._hello = hello
        self._chunk, self._good = hello.data, 0
        self._stop = self._known = self._link.query()

    def _ready(self) -> None:
        if not self._link.connected:
            self._connect()

    def reset(self) -> None:
        """Reset the device; it runs until its firmware stops for the first time."""
        self._ready()
        self._began(self._link.reset(_BOOT_SECONDS))

    def go(self, stops: Sequence[int], timeout: float) -> int:
        """Let the firmware run until it stops by itself at one of ``stops``; see ``Runner.go``.

        It cannot be halted: after ``TimedOutError`` it still runs, and the next call waits for its stop. A reset is
        noticed afterwards; it is a stop at the image's entry if that is one of ``stops``, otherwise an error.
        """
        deadline = time.monotonic() + timeout
        self._ready()
        while True:
            if self._stop is None:
                try:
                    self._stop = self._known = self._link.go(max(deadline - time.monotonic(), 0))
                except ProcessFailedError as error:
                    # A reset is noticed only by the lost session, so it is reported here as the stop that a breakpoint
                    # at the entry would give.
                    if error.code == "device-reset" and self._entry in stops:
                        return self._entry
                    raise
            place, self._stop = self._stop.place, None
            if place in stops:
                return place

    # Memory -----------------------------------------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """Return ``size`` bytes of memory."""
        self._ready()
        # The report of a stop has a copy of the block that the host asks for next, which saves an exchange per call.
        known, at = self._known.block, address - self._known.address
        if 0 <= at <= at + size <= len(known):
            return known[at : at + size]
        data = b""
        while len(data) < size:
            count = min(self._chunk, size - len(data))
            data += self._moved("R", _word(address + len(data)) + _word(count), count) or b""
        return data

    def write(self, address: int, data: bytes) -> None:
        """Change memory in RAM."""
        self._ready()
        hello = self._greeted
        if not hello.ram_begin <= address <= address + len(data) <= hello.ram_end:
            raise ProcessFailedError(
                "serial-refused",
                place=self._place,
                reason=f"the firmware accepts writes from {hello.ram_begin:#010x} to {hello.ram_end:#010x},"
                f" not of {len(data):,} bytes at {address:#010x}",
                hint="build it with MLF_SERIAL_RAM_BEGIN and MLF_SERIAL_RAM_END of the device",
            )
        # The write may change what the copy was taken of.
        self._known = replace(self._known, block=b"")
        done = 0
        while done < len(data):
            piece = data[done : done + self._chunk]
            if self._moved("W", _word(address + done) + piece, 0) is not None:
                done += len(piece)

    def _moved(self, kind: str, payload: bytes, size: int) -> bytes | None:
        """Have memory read or written, or return ``None`` to be asked for less; choose the size of the next request."""
        repeated = self._link.repeated
        answer = self._link.try_to_ask(kind, payload, size, _ATTEMPTS if self._chunk > _SMALLEST_CHUNK else None)
        self._good = self._good + 1 if self._link.repeated == repeated else 0
        if self._good == 0:
            self._chunk = max(self._chunk // 2, _SMALLEST_CHUNK)
        elif self._good % _GOOD_ANSWERS == 0:
            self._chunk = min(self._chunk * 2, self._greeted.data)
        return answer

    # Refused on a serial line -----------------------------------------------------------------------------------------

    def registers(self) -> Mapping[str, int]:
        """Raise ``UsageError``."""
        self._cannot("read registers")

    def set_registers(self, values: Mapping[str, int]) -> None:
        """Raise ``UsageError``."""
        self._cannot(f"change {', '.join(values)}")

    def _cannot(self, what: str) -> NoReturn:
        reason = f"firmware on a serial line cannot {what}"
        raise UsageError("runner-cannot", place=self._place, reason=reason, hint="use a probe: gdb or pyocd")

    def console(self) -> str:
        """Return what the firmware has printed on the line, besides answers, since the last call."""
        return self._link.text()

    def close(self) -> None:
        """Reset the device, as far as it answers, and close the port. It may be called twice."""
        if self._hello is not None:
            self._hello = None
            with contextlib.suppress(MlfError):
                self._link.connect(_CLOSE_SECONDS)  # a request may have been interrupted
                self._link.reset(_CLOSE_SECONDS)
        self._stack.close()


def _word(value: int) -> bytes:
    return value.to_bytes(4, "little")


connect = Serial
