"""Run a finished firmware image on its target, and keep its output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mlfbuild.core import (
    LOOK,
    OnProgress,
    ProcessFailedError,
    TimedOutError,
    UsageError,
    no_progress,
    run,
    write_atomic,
)
from mlfbuild.jobs import TargetJob
from mlfbuild.project import RunnerKeys
from mlfbuild.targets import Board
from mlfbuild.verify.emulator import run_elf

# The end of the output is what shows where firmware hangs; all of it may be megabytes.
_LAST_LINES = 40
_LAST_CHARACTERS = 8000


def run_image(elf: Path, target: TargetJob, log: Path, timeout: float) -> str:
    """Run ``elf`` as ``run_firmware``; write its output to ``log`` and return it. Nothing is written after an error.

    ``timeout`` is in seconds. Raises as ``run_firmware``, and ``StorageError`` if the log cannot be written.
    """
    output = run_firmware(elf, target, timeout)
    write_atomic(log, output.encode())
    return output


def run_firmware(
    elf: Path,
    target: TargetJob,
    timeout: float,
    *,
    printed: Callable[[str], object] = str,
    load: bool = True,
    on_progress: OnProgress = no_progress,
) -> str:
    """Run ``elf`` on the target's device, on its board in QEMU, or on this machine, and return its output.

    ``printed`` is called with the output: of a device while it runs, otherwise at the end. ``load`` writes the image to
    a device before, with progress to ``on_progress``; without it, the device must hold the image. ``timeout`` is in
    seconds.

    Raises ``ProcessFailedError`` with the output if the exit status is not 0, or if a device stopped without one;
    ``UsageError`` if the target has neither a runner nor a board; ``UnsupportedModelError`` if the image is for another
    FPU; and ``TimedOutError`` if it has not ended in time. It is stopped then, and the error has only the last lines of
    the output, because firmware that never ends often prints without end.
    """
    try:
        if target.runner is not None:
            return _run_on_device(elf, target, target.runner, timeout, printed, on_progress if load else None)
        # A target without a toolchain is this machine, whose images are ordinary programs.
        output = run([elf], timeout=timeout) if target.toolchain is None else _run_on_board(elf, target, timeout)
    except TimedOutError as error:
        error.output = _end_of(error.output)
        raise
    printed(output)
    return output


def flash_image(elf: Path, target: TargetJob, on_progress: OnProgress = no_progress) -> str:
    """Write ``elf`` to the device of ``target``, let it run, and return the name of the device.

    ``on_progress`` is called with the progress. Raises ``UsageError`` if the target has no runner, and as
    ``open_runner`` and ``Runner.load``.
    """
    from mlfbuild.runners import check_fpu, open_runner

    if target.runner is None:
        raise UsageError(
            "target-without-runner",
            place=f"target {target.name!r}",
            reason="it does not say how its device is reached",
            hint='add a runner, such as runner: {gdb: "localhost:3333"}',
        )
    if target.runner.run and not target.runner.flash:
        raise UsageError(
            "flash-command-missing",
            place=_place(target),
            reason="its command runs images, and none only writes them",
            hint="add flash: with such a command, or use run-firmware",
        )
    # A core without the FPU faults at the first such instruction, which is harder to understand than this error.
    check_fpu(elf, target.cpu)
    with open_runner(target.runner, _place(target)) as runner:
        runner.load(elf, on_progress)
        return runner.name


def _place(target: TargetJob) -> str:
    return f"targets.{target.name}.runner"


def _end_of(output: str) -> str:
    if not output.strip():
        return "(it printed nothing)"
    end = "\n".join(output[-_LAST_CHARACTERS:].splitlines()[-_LAST_LINES:])
    before = len(output.rstrip("\n")) - len(end)
    return f"(the end of its output, after {before:,} characters)\n{end}" if before > 0 else end


def _run_on_device(
    elf: Path,
    target: TargetJob,
    keys: RunnerKeys,
    timeout: float,
    printed: Callable[[str], object],
    on_progress: OnProgress | None,
) -> str:
    from mlfbuild.runners import check_fpu, open_runner, run_to_end

    check_fpu(elf, target.cpu)
    with open_runner(keys, _place(target)) as runner:
        if on_progress is not None:
            runner.load(elf, on_progress)
        ended = run_to_end(runner, elf, timeout, printed)
        device = runner.name
    # A fault, a breakpoint or a lost connection: the firmware did not reach its end.
    if ended.exit_status is None:
        raise ProcessFailedError("firmware-stopped", ended.output, place=elf.name, reason=ended.stopped, hint=LOOK)
    return _passed(elf, ended.output, ended.exit_status, device)


def _run_on_board(elf: Path, target: TargetJob, timeout: float) -> str:
    from mlfbuild.runners import check_fpu

    board: Board | None = target.board
    if board is None:
        reason = f"no board that can run {elf}"
        hint = "add a board, or a runner for your own device, to the target"
        raise UsageError("board-missing", place=f"target {target.name!r}", reason=reason, hint=hint)
    check_fpu(elf, target.cpu)
    result = run_elf(elf, board, timeout=timeout)
    return _passed(elf, result.stdout, result.exit_status, board.name)


def _passed(elf: Path, output: str, status: int, where: str) -> str:
    if status != 0:
        reason = f"the firmware ended with exit status {status} on {where}"
        raise ProcessFailedError("firmware-failed", output, place=elf.name, reason=reason, hint=LOOK)
    return output
