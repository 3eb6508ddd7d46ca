"""Run a finished firmware image on its target, and keep its output."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.build import TargetJob
from mlfbuild.core import LOOK, ProcessFailedError, TimedOutError, run, write_atomic
from mlfbuild.targets import Board
from mlfbuild.verify.emulator import run_elf

_LAST_LINES = 40
_LAST_CHARACTERS = 8000


def run_image(elf: Path, target: TargetJob, log: Path, timeout: float) -> str:
    """Run ``elf`` on the target's board in QEMU, or on this machine; write its output to ``log`` and return it.

    If the exit status is not 0, raises ``ProcessFailedError`` with the output and writes nothing. If the image has not
    ended after ``timeout`` seconds, it is stopped, and ``TimedOutError`` has the last lines of the output: firmware
    that never ends often prints without end, too.
    """
    try:
        output = run([elf], timeout=timeout) if target.board is None else _run_on_board(elf, target.board, timeout)
    except TimedOutError as error:
        error.output = _end_of(error.output)
        raise
    write_atomic(log, output.encode())
    return output


def _end_of(output: str) -> str:
    if not output.strip():
        return "(it printed nothing)"
    end = "\n".join(output[-_LAST_CHARACTERS:].splitlines()[-_LAST_LINES:])
    before = len(output.rstrip("\n")) - len(end)
    return f"(the end of its output, after {before:,} characters)\n{end}" if before > 0 else end


def _run_on_board(elf: Path, board: Board, timeout: float) -> str:
    result = run_elf(elf, board, timeout=timeout)
    if result.exit_status != 0:
        raise ProcessFailedError(
            "firmware-failed",
            result.stdout,
            place=elf.name,
            reason=f"the firmware ended with exit status {result.exit_status} on {board.name}",
            hint=LOOK,
        )
    return result.stdout
