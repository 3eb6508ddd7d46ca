"""Run a firmware image on QEMU and return its output and exit status."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import LOOK, InputFileError, ProcessFailedError, TimedOutError, UsageError, find_tool, quoted
from mlfbuild.targets import Board
from mlfbuild.verify.emulator.watch import run_while_it_writes

# Exit status 1 is also that of firmware whose main returns 1. A line that begins like this is QEMU's own.
_COMPLAINT = re.compile(r"^qemu-system-\w+(\.\w+)?: (?!warning)", re.MULTILINE)


@dataclass(frozen=True)
class EmulatorRun:
    """The output of the firmware (standard output and error together) and the result of its ``main``."""

    stdout: str
    exit_status: int


def run_elf(
    elf: Path,
    board: Board,
    *,
    cwd: Path | None = None,
    arguments: Sequence[str] = (),
    timeout: float | None = None,
    written: Path | None = None,
    plugin: str | None = None,
    grown: Callable[[int], None] | None = None,
) -> EmulatorRun:
    """Run the image ``elf`` on ``board`` until it exits through semihosting.

    ``cwd`` is the folder that the firmware's file names are relative to, ``arguments`` become ``argv[1:]``. ``plugin``
    is a plugin of QEMU with its arguments. ``grown`` is called with the size of the file ``written`` whenever that has
    changed.

    Raises ``ToolNotFoundError`` without QEMU, ``InputFileError`` without the image, ``ProcessFailedError`` with the
    output if QEMU itself fails, and ``TimedOutError`` if the run takes longer than ``timeout`` seconds; the time starts
    again whenever the file ``written`` has grown.
    """
    command = emulator_command(elf, board, arguments, ["-plugin", plugin] if plugin else [])
    result = run_program(command, elf, f" on {board.name}", cwd=cwd, timeout=timeout, written=written, grown=grown)
    output, status = result.stdout, result.exit_status
    if status < 0:
        raise ProcessFailedError(
            "emulator-failed",
            output,
            place=elf,
            reason=f"{board.emulator} was ended by signal {-status} on {board.name}",
            hint=LOOK,
        )
    # QEMU ends with 1 for a bad command line or a missing file.
    if status == 1 and _COMPLAINT.search(output):
        raise ProcessFailedError(
            "emulator-failed", output, place=elf, reason=f"{board.emulator} cannot run it on {board.name}", hint=LOOK
        )
    return result


def run_program(
    command: Sequence[str],
    image: Path,
    on: str = "",
    *,
    cwd: Path | None,
    timeout: float | None,
    written: Path | None,
    grown: Callable[[int], None] | None,
) -> EmulatorRun:
    """Run ``command``, which runs ``image``, until it ends; ``on`` says where in messages: `` on mps2-an386``.

    A negative exit status is the signal that ended it. ``cwd``, ``timeout``, ``written`` and ``grown`` are those of
    ``run_elf``. Raises ``TimedOutError``, and ``ProcessFailedError`` if it cannot be started.
    """
    try:
        status, output = run_while_it_writes(command, cwd=cwd, timeout=timeout, written=written, grown=grown)
    except subprocess.TimeoutExpired as error:
        raise TimedOutError(
            "run-timed-out",
            (error.output or b"").decode(errors="replace"),
            place=image,
            reason=f"the run{on} did not end within {timeout:g} s and was stopped",
            hint="set a longer time limit, or look for an endless loop",
        ) from None
    return EmulatorRun(output.decode(errors="replace"), status)


def emulator_command(elf: Path, board: Board, arguments: Sequence[str] = (), options: Sequence[str] = ()) -> list[str]:
    """Return the command that runs ``elf`` on ``board``; its standard streams are those of the firmware.

    Raises as ``run_elf``.
    """
    if not elf.is_file():
        raise InputFileError("image-missing", place=elf, reason="no such firmware image", hint="build it first")
    words = [*_options(board, arguments), *options]
    return [str(find_tool(board.emulator)), *words, "-kernel", str(elf.resolve())]


def _options(board: Board, arguments: Sequence[str]) -> list[str]:
    for argument in arguments:
        if not argument or " " in argument:
            raise UsageError(
                "invalid-firmware-argument",
                place=quoted(argument),
                reason="an argument for firmware must not be empty or contain spaces",
            )
    # target=native: with a GDB stub, QEMU would otherwise pass the calls to GDB.
    semihosting = ["enable=on", "target=native", "arg=firmware"]
    # A comma separates options of QEMU; doubled, it is part of the text. The firmware splits its command line at
    # spaces, so these are refused above.
    semihosting += [f"arg={argument.replace(',', ',,')}" for argument in arguments]
    return [
        # Monitor and serial port are off, because both would share the standard streams with semihosting.
        *board.machine, "-nographic", "-monitor", "none", "-serial", "none",
        "-semihosting-config", ",".join(semihosting),
    ]  # fmt: skip
