"""Serve the calls that firmware of mlfbuild makes to its host: files in one folder, output, arguments, exit status.

``runtime/board/semihosting.c`` is the other side: it stores a call in ``mlf_host_call`` and stops in ``mlf_host_stop``.
The operations are those of Arm's semihosting, so the same firmware runs on QEMU without this module. The loop is::

    runner.go([mlf_host_stop, ...]) -> read mlf_host_call -> perform the operation -> write the result -> again

until the firmware exits, or stops elsewhere: at the handler of a fault, or at the reset handler.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from mlfbuild.core import InputFileError, TimedOutError, UsageError
from mlfbuild.runners.faults import describe_fault, describe_printed_fault
from mlfbuild.runners.firmware import Firmware
from mlfbuild.runners.types import Runner

# Numbers of "Semihosting for AArch32 and AArch64" (Arm). 0x20 is SYS_EXIT_EXTENDED: SYS_EXIT (0x18) has no exit status
# on 32-bit cores.
_OPEN, _CLOSE, _WRITE0, _WRITE, _READ, _SEEK, _FLEN, _CMDLINE, _EXIT = 1, 2, 4, 5, 6, 0x0A, 0x0C, 0x15, 0x20
_BLOCK = {_OPEN: 3, _CLOSE: 1, _WRITE: 3, _READ: 3, _SEEK: 2, _FLEN: 1, _CMDLINE: 2, _EXIT: 2}
"""Words of the argument block of each operation that has one."""
# Modes of SYS_OPEN as in fopen(): 1 is "rb", 3 is "r+b", 5 is "wb", 9 is "ab". Text modes and others are refused: the
# firmware here uses none of them.
_MODES = {1: "rb", 3: "r+b", 5: "wb", 9: "ab"}
# The name by which semihosting opens standard input and output.
_CONSOLE = b":tt"
_FAULT_STATUS = 112  # MLF_BOARD_FAULT_STATUS
# Limits on what the firmware asks for: a damaged length or a string without an end must not read the whole memory.
_LONGEST_NAME, _LONGEST_TEXT, _LARGEST_WRITE, _CHUNK = 255, 1 << 16, 1 << 26, 64
_VTOR = 0xE000ED08
"""Vector table offset register; cores without it ignore the write."""
_THUMB = 1 << 24
"""Bit of xPSR."""

FileOpener = Callable[[str, str], BinaryIO]
"""Opens a file of the host by its name and mode, as ``open`` does; raises ``OSError`` if it does not exist."""


@dataclass(frozen=True)
class HostRun:
    """The end of firmware."""

    output: str
    """Its output: standard output and error together."""
    exit_status: int | None
    """Its exit status; ``None`` if it stopped in another way."""
    stopped: str = ""
    """Why it stopped without an exit status: a fault with its registers, a reset, or no call within the time."""


def opener_in(folder: Path) -> FileOpener:
    """Return the opener of the files in ``folder``; it refuses names with a path, and links.

    Firmware that opens ``../other`` gets the answer that there is no such file.
    """

    def opened(name: str, mode: str) -> BinaryIO:
        # The names come from firmware, which may be faulty or untrusted: it must not reach files outside the folder,
        # also not by a drive letter of Windows or a link.
        if name in {"", ".", ".."} or set(name) & set("/\\:\0"):
            raise FileNotFoundError(name)
        path = folder / name
        if path.is_symlink():
            raise FileNotFoundError(name)
        return cast("BinaryIO", path.open(mode))

    return opened


def start_at_entry(runner: Runner, firmware: Firmware) -> None:
    """Reset the device and let its core begin with ``firmware``, also in RAM, or behind a boot loader or boot ROM.

    The core is halted before the first instruction of the image then. Firmware on a serial line starts by itself.
    Raises as the methods of ``Runner``.
    """
    runner.reset()
    vectors = firmware.vectors()
    # After a reset the core is at the entry of what is in flash. The image may be in RAM or behind a boot loader; then
    # the three things that the core does at reset are done here: VTOR, sp and pc.
    if vectors is not None and counter(runner) not in {None, firmware.entry}:
        address, words = vectors
        runner.write(_VTOR, struct.pack("<I", address))
        runner.set_registers({"sp": words[0], "pc": firmware.entry, "xpsr": _THUMB})


def counter(runner: Runner) -> int | None:
    """Return the program counter; ``None`` for firmware on a serial line, which starts by itself and is not halted.

    Bit 0, which marks Thumb code in pointers, is clear. The device must be halted.
    """
    try:
        return runner.registers()["pc"] & ~1
    except UsageError:
        return None


class HostCalls:
    """One run of the image ``firmware``, which is loaded on the device of ``runner``.

    It may use the files that ``opener`` opens, and gets the words ``arguments`` as ``argv[1:]``. ``printed`` is called
    with its output as it comes. Raises ``InputFileError`` if the image does not make its calls in this way.
    """

    def __init__(
        self,
        runner: Runner,
        firmware: Firmware,
        opener: FileOpener,
        arguments: Sequence[str] = (),
        printed: Callable[[str], object] = len,
    ) -> None:
        stop, call = firmware.function("mlf_host_stop"), firmware.objects.get("mlf_host_call")
        vectors = firmware.vectors()
        if stop is None or call is None or vectors is None:
            raise InputFileError(
                "image-without-host-link",
                place=firmware.path,
                reason="the image does not call its host through mlf_host_stop, or is stripped",
                hint="build it with the board support of mlfbuild and MLF_HOST_LINK",
            )
        self._runner, self._firmware, self._opener, self._printed = runner, firmware, opener, printed
        self._stop, self._call, self._vectors = stop, call, vectors[1]
        # Entry 3 of the vector table is HardFault, to which other faults escalate while their handlers are disabled.
        self._fault = self._vectors[3] & ~1
        self._command_line = " ".join(["firmware", *arguments]).encode() + b"\0"
        self._files: dict[int, BinaryIO | None] = {}  # None: the console
        self._output: list[str] = []
        self._ended: HostRun | None = None
        self._started = False

    def run(self, timeout: float, served: Callable[[], None] = lambda: None) -> HostRun:
        """Reset the device and serve the firmware until it ends, or makes no call for ``timeout`` seconds.

        ``served`` is called after each call. Raises as the methods of ``Runner``.
        """
        with contextlib.closing(self):
            while self._ended is None:
                self.step(timeout)
                served()
            return self._ended

    def step(self, timeout: float) -> HostRun | None:
        """Serve one call; return how the firmware ended, ``None`` if it goes on.

        The first step resets the device. A firmware that makes no call within ``timeout`` seconds has ended, with the
        function in which it was stopped as the reason; this is not an error. Raises as the methods of ``Runner``.
        """
        stops = [self._stop, self._fault]
        if not self._started:
            start_at_entry(self._runner, self._firmware)
            self._started = True
        else:
            # Not at the first step, when the core is at the entry anyway. Later, a core that comes here was reset. The
            # serial runner has this stop although it cannot set breakpoints.
            stops.append(self._firmware.entry)
        try:
            at = self._runner.go(stops, timeout)
        except TimedOutError:
            where = counter(self._runner)
            halted = "" if where is None else f", so it was stopped in {self._firmware.place_of(where)}"
            self._end(None, f"no result after {timeout:g} s{halted}")
            return self._ended
        if at == self._stop:
            self._serve()
        elif at == self._fault:
            self._end(None, f"the firmware faulted\n{describe_fault(self._runner, self._firmware)}")
        elif at == self._firmware.entry:
            self._end(None, "the device was reset, for example by a watchdog or a dip of its supply")
        else:
            self._end(None, f"the device stopped at {self._firmware.place_of(at)}")
        return self._ended

    def close(self) -> None:
        """Close the files of the firmware, also after an error, so that what it has written is on the disk."""
        for file in self._files.values():
            if file is not None:
                file.close()
        self._files.clear()

    @property
    def output(self) -> str:
        """The output of the firmware so far."""
        return "".join(self._output)

    def _exit(self, status: int) -> None:
        fault = describe_printed_fault(self.output, self._firmware) if status == _FAULT_STATUS else None
        if fault is None:
            self._end(status)
        else:
            self._end(None, f"the firmware faulted\n{fault}")

    def _end(self, status: int | None, stopped: str = "") -> None:
        self._ended = HostRun(self.output, status, stopped)

    def _serve(self) -> None:
        operation, argument = struct.unpack("<2I", self._runner.read(self._call, 8))
        # SYS_WRITE0 has no result, and its argument is the string itself.
        if operation == _WRITE0:
            self._print(self._text_at(argument))
            return
        count = _BLOCK.get(operation)
        if count is None:
            result = -1
        else:
            block = struct.unpack(f"<{count}I", self._runner.read(argument, 4 * count))
            if operation == _EXIT:
                # The block has the reason and the status; a process on a POSIX system also ends with 8 bits.
                self._exit(block[1] & 0xFF)
                return
            result = self._perform(operation, argument, block)
        # Unsigned, as SYS_READ returns the length that the firmware asked for if nothing was read.
        self._runner.write(self._call + 8, struct.pack("<I", result & 0xFFFFFFFF))

    def _perform(self, operation: int, argument: int, block: tuple[int, ...]) -> int:
        if operation == _OPEN:
            return self._open(*block)
        if operation == _CMDLINE:
            return self._give_command_line(argument, *block)
        handle = block[0]
        # A handle that was never opened, or was closed, as after a stray write in the firmware.
        if handle not in self._files:
            return -1
        file = self._files[handle]
        try:
            if operation == _CLOSE:
                del self._files[handle]
                if file is not None:
                    file.close()
                return 0
            if operation == _WRITE:
                return self._write(file, block[1], block[2])
            if operation == _READ:
                data = b"" if file is None else file.read(block[2])
                if data:
                    self._runner.write(block[1], data)
                # SYS_READ returns how many bytes were not read, 0 for all of them.
                return block[2] - len(data)
            if file is None:
                return -1
            if operation == _SEEK:
                file.seek(block[1])
                return 0
            # SYS_FLEN must not move the position.
            position = file.tell()
            length = file.seek(0, 2)
            file.seek(position)
            return length
        except (OSError, ValueError):
            return -1

    def _open(self, address: int, mode: int, length: int) -> int:
        if length > _LONGEST_NAME:
            return -1
        name = self._runner.read(address, length)
        file = None
        if name != _CONSOLE:
            try:
                file = self._opener(name.decode(), _MODES[mode])
            except (OSError, KeyError, UnicodeDecodeError):
                return -1
        # From 1: SYS_OPEN returns a handle that is not 0. The smallest free one, so that handles stay small.
        handle = next(number for number in range(1, len(self._files) + 2) if number not in self._files)
        self._files[handle] = file
        return handle

    def _write(self, file: BinaryIO | None, address: int, size: int) -> int:
        if size > _LARGEST_WRITE:
            return -1
        data = self._runner.read(address, size) if size else b""
        if file is None:
            self._print(data.decode(errors="replace"))
        else:
            file.write(data)
            # A run that faults later must leave what it has written before.
            file.flush()
        return 0

    def _give_command_line(self, argument: int, buffer: int, size: int) -> int:
        if len(self._command_line) > size:
            return -1
        self._runner.write(buffer, self._command_line)
        self._runner.write(argument + 4, struct.pack("<I", len(self._command_line) - 1))
        return 0

    def _text_at(self, address: int) -> str:
        data = b""
        while b"\0" not in data and len(data) < _LONGEST_TEXT:
            size = _CHUNK - (address + len(data)) % _CHUNK  # not beyond the end of a memory
            data += self._runner.read(address + len(data), size)
        return data.partition(b"\0")[0].decode(errors="replace")

    def _print(self, text: str) -> None:
        self._output.append(text)
        self._printed(text)
