"""Devices that are reached by commands of the user: one that writes an image, and one that runs it.

    run: [probe-rs, run, --chip, nRF52840_xxAA, "{elf}"]  ->  run_image  ->  CommandRun: exit status and output

``{elf}`` stands for the path of the image and ``{probe}`` for the key ``probe``. The words are passed to the program as
they are; no shell interprets them. A command gives no access to memory, so ``verify`` and ``profile`` refuse this way.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from mlfbuild.core import (
    LOOK,
    RUN_BY_HAND,
    InputFileError,
    OnProgress,
    ProcessFailedError,
    TimedOutError,
    UsageError,
    find_tool,
    no_progress,
)
from mlfbuild.project import RunnerKeys
from mlfbuild.runners.background import background
from mlfbuild.runners.lock import device_lock
from mlfbuild.runners.placeholders import filled
from mlfbuild.targets import MemoryRegion

# Seconds for the whole command: unlike GDB (runners/gdb.py), a program of the user gives no reports between which a
# shorter limit could apply.
_FLASH_SECONDS = 300.0


@dataclass(frozen=True)
class CommandRun:
    """The end of a command."""

    output: str
    """Standard output and error together."""
    exit_status: int
    """Its exit status, which is that of the firmware; negative: the signal that ended it."""


def flash_image(keys: RunnerKeys, image: Path, place: str) -> None:
    """Write ``image`` to the device with the command ``flash`` of ``keys``.

    Raises ``ToolNotFoundError`` if there is no such program, and ``ProcessFailedError`` with its output if it fails.
    """
    result = _ran(keys.flash, f"{place}.flash", keys, image, _FLASH_SECONDS)
    status = result.exit_status
    if status != 0:
        end = f"exit status {status}" if status > 0 else f"ended by signal {-status}"
        raise ProcessFailedError(
            "flash-command-failed",
            result.output,
            place=f"{place}.flash",
            reason=f"{Path(keys.flash[0]).name} did not write {image}: {end}",
            hint=LOOK if result.output.strip() else RUN_BY_HAND,
        )


def run_image(
    keys: RunnerKeys, image: Path, place: str, timeout: float, printed: Callable[[str], object] = str
) -> CommandRun:
    """Run ``image`` with the command ``run`` of ``keys``, and return how it ended.

    ``printed`` is called with each line of its output as it comes, ``place`` locates the keys in messages.

    Raises ``InputFileError`` without the image, ``ToolNotFoundError`` if there is no such program, ``UsageError`` if
    the command contains {probe} and the keys have none, and ``TimedOutError`` with the output if it takes longer than
    ``timeout`` seconds; it and its children are ended then.
    """
    return _ran(keys.run, f"{place}.run", keys, image, timeout, printed)


def _ran(
    words: Sequence[str],
    place: str,
    keys: RunnerKeys,
    image: Path,
    timeout: float,
    printed: Callable[[str], object] = str,
) -> CommandRun:
    program, *arguments = command_words(words, place, keys, image)
    lines: list[str] = []
    empty = 0

    def take(line: str) -> None:
        nonlocal empty
        # background() marks the end with an empty line, and a program may print empty lines. So empty lines are held
        # back until another line shows that they were output.
        if not line:  # the one that marks the end is not output
            empty += 1
            return
        lines.append("\n" * empty + f"{line}\n")
        empty = 0
        printed(lines[-1])

    with background([program, *arguments], take) as running:
        try:
            status = running.process.wait(timeout)
        except subprocess.TimeoutExpired:
            status = None
    # After the block, in which the program was ended: only then is its output complete.
    if status is None:
        raise TimedOutError(
            "command-timed-out",
            "".join(lines),
            place=place,
            reason=f"{Path(program).name} did not end within {timeout:g} s and was stopped",
            hint="set a longer time limit, or look for an endless loop in the firmware",
        )
    return CommandRun("".join(lines), status)


def command_words(words: Sequence[str], place: str, keys: RunnerKeys, image: Path) -> list[str]:
    """Return a command of ``keys`` with the path of its program, of ``image`` and of the probe.

    ``[probe-rs, run, "{elf}"]`` becomes ``[/usr/bin/probe-rs, run, /home/me/app.elf]``. ``place`` locates the command
    in messages.

    Raises ``InputFileError`` without the image, ``ToolNotFoundError``, and ``UsageError`` without a probe.
    """
    if not image.is_file():
        raise InputFileError("image-missing", place=image, reason="no such firmware image", hint="build it first")
    # There is no shell, so that a path with a space or a dollar sign needs no quotes and the command is the same on all
    # systems.
    program, *arguments = filled(words, keys.probe, place, image)
    return [str(find_tool(program)), *arguments]


class Command:
    """A device that only commands reach: it offers ``load`` and ``run``, and refuses the rest of ``Runner``."""

    def __init__(self, keys: RunnerKeys, place: str, _memory: Sequence[MemoryRegion] = ()) -> None:
        """Raise ``ConflictError`` if another process uses the same program and probe."""
        self.name = f"command {Path(keys.run[0]).name}"
        self._keys, self._place = keys, place
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(device_lock(" ".join(filter(None, [self.name, keys.probe])), place))

    def load(self, image: Path, on_progress: OnProgress = no_progress) -> None:
        """Run the command ``flash``, if there is one; otherwise ``run`` loads the image."""
        if self._keys.flash:
            on_progress("flashing", 0, 0)
            flash_image(self._keys, image, self._place)

    def run(self, image: Path, timeout: float, printed: Callable[[str], object] = str) -> CommandRun:
        """Run ``image``; see ``run_image``."""
        return run_image(self._keys, image, self._place, timeout, printed)

    def _cannot(self, *arguments: object, **named: object) -> NoReturn:
        del arguments, named
        raise UsageError(
            "runner-cannot",
            place=self._place,
            reason="a command gives no access to the memory of its device, which this needs",
            hint="reach the device by gdb, pyocd or serial; `run` is for run-firmware and flash",
        )

    reset = go = read = write = registers = set_registers = _cannot

    def console(self) -> str:
        """Return nothing: ``run`` passes the output on."""
        return ""

    def close(self) -> None:
        """Release the device. It may be called twice."""
        self._stack.close()


connect = Command
