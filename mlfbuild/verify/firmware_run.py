"""Run a finished firmware image on its target, and keep its output."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.build import TargetJob
from mlfbuild.core import LOOK, ProcessFailedError, run, write_atomic
from mlfbuild.targets import Board
from mlfbuild.verify.emulator import run_elf


def run_image(elf: Path, target: TargetJob, log: Path, timeout: float = 600) -> str:
    """Run ``elf`` on the target's board in QEMU, or on this machine; write its output to ``log`` and return it.

    ``timeout`` is in seconds. If the exit status is not 0, raises ``ProcessFailedError`` with the output and writes
    nothing.
    """
    output = run([elf], timeout=timeout) if target.board is None else _run_on_board(elf, target.board, timeout)
    write_atomic(log, output.encode())
    return output


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
