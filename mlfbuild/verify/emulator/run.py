"""Run a module on an emulated board; it reads inputs and writes outputs as files through semihosting."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.core import OnProgress, ProcessFailedError, UnsupportedModelError, find_tool, no_progress, quoted
from mlfbuild.executor import ram_size
from mlfbuild.jobs.tree import Subject, subject_of
from mlfbuild.library import Module, ResolvedLibrary
from mlfbuild.targets import Board
from mlfbuild.verify.device import Connection
from mlfbuild.verify.emulator.board_image import board_image
from mlfbuild.verify.semihosting_io import ENDED_EARLY, flaws, interleaved, read_runs, run_cases

Array = npt.NDArray[Any]


def run_on_board(
    module: Module,
    board: Board,
    inputs: Sequence[Array],
    where: str,
    timeout: float,
    libraries: Sequence[ResolvedLibrary] = (),
) -> tuple[Array, ...]:
    """Run every case of ``inputs`` once, in order, on ``board`` and return the outputs, each with all cases.

    ``inputs`` are arrays (cases, elements) in call order, as ``load_inputs`` reads them. Outputs are (cases, *shape),
    or (cases, elements) if the module's archive ``where`` does not record the shape. A case may take ``timeout``
    seconds. ``libraries`` are the module's requirements.

    Raises as ``board_image``, ``ToolNotFoundError`` without QEMU, ``StorageError`` if the disk is full, and
    ``ProcessFailedError``, naming the case, if the run function returns an error, writes outside its buffers, faults or
    hangs.
    """
    # The cheap checks are first: building the image takes seconds.
    find_tool(board.emulator)
    subject = subject_of(module, board.name)
    need = ram_size(module)
    if need > board.ram.size:
        raise UnsupportedModelError(
            "board-too-small",
            place=f"{where}: module {quoted(module.name)}",
            reason=f"the module needs {need:,} bytes of RAM, but {board.name} has {board.ram.size:,}",
            hint="choose a larger board or a smaller model",
        )
    return outputs_of(board_image(module, board, where, libraries), subject, inputs, timeout, board)


def outputs_of(
    image: Path,
    subject: Subject,
    inputs: Sequence[Array],
    timeout: float,
    board: Board | None = None,
    connection: Connection | None = None,
    on_progress: OnProgress = no_progress,
) -> tuple[Array, ...]:
    """Return the outputs of ``image`` for every case of ``inputs``, as ``run_on_board``.

    It runs on ``board``, or on the device of ``connection``.
    """
    with tempfile.TemporaryDirectory(prefix="mlfbuild-run-") as folder:
        runs = checked_runs(
            image, subject, board, inputs, Path(folder), timeout, connection=connection, on_progress=on_progress
        )
    return tuple(shaped(runs[f"out{index}"], tensor.shape) for index, tensor in enumerate(subject.outputs))


def checked_runs(
    image: Path,
    subject: Subject,
    board: Board | None,
    inputs: Sequence[Array],
    folder: Path,
    timeout: float,
    plugin: str | None = None,
    connection: Connection | None = None,
    on_progress: OnProgress = no_progress,
) -> npt.NDArray[Any]:
    """Run the ``image`` in ``folder`` with every case of ``inputs``; return a record for each case, as ``read_runs``.

    It runs on ``board``, or on the device of ``connection``. ``plugin`` is a plugin of QEMU. Raises
    ``ProcessFailedError`` for the first case that failed.
    """
    stopped = run_cases(
        image, board, interleaved(inputs), folder, timeout, plugin, connection=connection, on_progress=on_progress
    )
    runs = read_runs(folder, subject, 1)["run0"]
    _check(subject, runs, len(inputs[0]), stopped)
    return runs


def _check(subject: Subject, runs: npt.NDArray[Any], cases: int, stopped: str | None) -> None:
    """Raise ``ProcessFailedError`` for the first case that failed."""
    for case, run in enumerate(runs):
        flaw = next(flaws(subject, run), None)
        if flaw is not None:
            raise ProcessFailedError("run-failed", place=f"{subject.name}: case {case}", reason=flaw)
    # After the finished cases, so that the first failing case is reported, not the stop that it caused.
    if stopped is not None or len(runs) < cases:
        reason, _, output = (stopped or ENDED_EARLY).partition("\n")
        raise ProcessFailedError("run-failed", output, place=f"{subject.name}: case {len(runs)}", reason=reason)


def shaped(values: Array, shape: tuple[int, ...] | None) -> Array:
    """Return ``values`` (cases, elements) as an array of this machine, (cases, *shape) if ``shape`` is known.

    The result owns its memory and may be written.
    """
    # A copy: the records are a read-only view of the whole file, which would stay in memory as long as one output does.
    own = np.array(values, values.dtype.newbyteorder("="))
    return own if shape is None else own.reshape(len(values), *shape)
