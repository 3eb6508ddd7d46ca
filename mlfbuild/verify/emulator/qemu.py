"""Run a firmware image on QEMU and bring back what it printed and how it ended."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import LOOK, InputFileError, ProcessFailedError, TimedOutError, UsageError, find_tool
from mlfbuild.targets import Board
from mlfbuild.verify.emulator.watch import run_while_it_writes

_PROGRAM = "qemu-system-arm"
_COMPLAINT = re.compile(rf"^{_PROGRAM}(\.\w+)?: (?!warning)", re.MULTILINE)


@dataclass(frozen=True)
class RunResult:
    """How a run ended: what the firmware printed (standard output and error together) and main's result."""

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
    memory: Mapping[int, Path] | None = None,
    plugin: str | None = None,
    grown: Callable[[int], None] | None = None,
) -> RunResult:
    """Run the image ``elf`` on ``board`` until it exits through semihosting.

    ``cwd`` is the folder that the firmware's file names are relative to, ``arguments`` become ``argv[1:]``. ``memory``
    has files by the address that they are loaded to, as a programmer writes external flash. ``plugin`` is one of QEMU's
    plugins, with its arguments. ``grown`` is told the size of the file ``written`` whenever it has changed.

    Raises ``ToolNotFoundError`` where QEMU is missing, ``InputFileError`` where the image is, ``ProcessFailedError``
    with the output where QEMU itself fails, and ``TimedOutError`` where the run takes longer than ``timeout`` seconds,
    counted anew whenever the file ``written`` has grown.
    """
    if not elf.is_file():
        raise InputFileError(f"{elf}: no such firmware image; build it first")
    options = [*_options(board, arguments), *_loaders(memory or {}), *(["-plugin", plugin] if plugin else [])]
    command = [str(find_tool(_PROGRAM)), *options, "-kernel", str(elf.resolve())]
    try:
        status, printed = run_while_it_writes(command, cwd=cwd, timeout=timeout, written=written, grown=grown)
    except subprocess.TimeoutExpired as error:
        raise TimedOutError(
            f"{elf}: still running on {board.name} after {timeout:g} s, stopped; give it more time, or look "
            "for an endless loop",
            _text(error.output),
        ) from None
    output = _text(printed)
    if status < 0:
        raise ProcessFailedError(
            f"{elf}: {_PROGRAM} was ended by signal {-status} on {board.name}; see what it printed", output
        )
    if status == 1 and _COMPLAINT.search(output):
        raise ProcessFailedError(f"{elf}: {_PROGRAM} cannot run it on {board.name}; {LOOK}", output)
    return RunResult(output, status)


def _options(board: Board, arguments: Sequence[str]) -> list[str]:
    for argument in arguments:
        if not argument or " " in argument:
            raise UsageError(
                f"{argument!r}: an argument for firmware must not be empty or contain spaces; choose another one"
            )
    semihosting = ["enable=on", "target=native", "arg=firmware"]
    semihosting += [f"arg={argument.replace(',', ',,')}" for argument in arguments]
    return [
        "-M", board.name, "-nographic", "-monitor", "none", "-serial", "none",
        "-semihosting-config", ",".join(semihosting),
    ]  # fmt: skip


def _loaders(memory: Mapping[int, Path]) -> list[str]:
    for path in memory.values():
        if not path.is_file():
            raise InputFileError(f"{path}: no such file to load into memory; build it first")
    devices = [
        f"loader,file={str(path.resolve()).replace(',', ',,')},addr={address:#x},force-raw=on"
        for address, path in memory.items()
    ]
    return [word for device in devices for word in ("-device", device)]


def _text(output: bytes | None) -> str:
    return (output or b"").decode(errors="replace")
