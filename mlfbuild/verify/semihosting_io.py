"""The files of test firmware: it reads the inputs of all cases, and writes a record and the outputs of each run.

    inputs.bin -> [image on QEMU or this machine] -> outputs.bin

``runtime/verify/verify.c`` implements the other side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.core import OnProgress, StorageError, TimedOutError, no_progress, read_bytes, shown, write_atomic
from mlfbuild.jobs.tree import Subject
from mlfbuild.targets import Board
from mlfbuild.verify.device import Connection
from mlfbuild.verify.emulator.qemu import run_elf, run_program

Array = npt.NDArray[Any]

SECONDS_A_CASE = 120.0
"""Default time limit for one result: generous, because QEMU is slow and machines may be busy."""
ENDED_EARLY = "the firmware ended before all cases had run"
"""The reason if an image ends successfully but without some cases."""
_INPUTS, _OUTPUTS = "inputs.bin", "outputs.bin"
_FAULT_STATUS = 112  # MLF_BOARD_FAULT_STATUS
_FILES_STATUS = 2  # EXIT_FILES
_RECORD = [(name, "<i4" if name == "status" else "<u4") for name in ("status", "damage", "index", "workspace", "stack")]


def exchange_names() -> tuple[str, str]:
    """Return the names of the file that the firmware reads, and of the one that it writes.

    Both are relative to the folder in which the firmware runs.
    """
    return _INPUTS, _OUTPUTS


def interleaved(inputs: Sequence[Array]) -> bytes:
    """Return ``inputs``, each an array (cases, elements), as bytes case by case.

    ``[in0, in1]`` with two cases gives in0[0], in1[0], in0[1], in1[1]: firmware reads a case at a time and has no room
    for more.
    """
    # As bytes, because the inputs of a module may have different types.
    cases = [array.view(np.uint8).reshape(len(array), -1) for array in inputs]
    return np.concatenate(cases, axis=1).tobytes()


def run_cases(
    image: Path,
    board: Board | None,
    inputs: bytes,
    workdir: Path,
    timeout: float,
    plugin: str | None = None,
    grown: Callable[[int], None] | None = None,
    connection: Connection | None = None,
    on_progress: OnProgress = no_progress,
) -> str | None:
    """Run the image on ``inputs`` in ``workdir``; return why it stopped early, ``None`` if it ended by itself.

    It runs on ``board``, on the device of ``connection``, or on this machine. Each result may take ``timeout`` seconds.
    ``plugin`` is a plugin of QEMU. ``grown`` is called with the bytes of the results so far, ``on_progress`` with the
    progress of loading. Raises ``StorageError`` if the results cannot be written, ``ProcessFailedError`` if the
    emulator itself or the connection fails.
    """
    write_atomic(workdir / _INPUTS, inputs)
    # Results of an earlier run would otherwise be taken for this one if the firmware stops before it writes.
    (workdir / _OUTPUTS).unlink(missing_ok=True)
    files = [_INPUTS, _OUTPUTS]
    if connection is not None:
        ended = connection.run(image, files, workdir, timeout, grown, on_progress)
        if ended.exit_status is None:
            return ended.stopped
        return _why_stopped(ended.exit_status, ended.output, workdir)
    run = partial(run_program, [str(image.resolve()), *files], image)
    if board is not None:
        run = partial(run_elf, image, board, arguments=files, plugin=plugin)
    try:
        result = run(cwd=workdir, timeout=timeout, written=workdir / _OUTPUTS, grown=grown)
    except TimedOutError:
        return f"no result after {timeout:g} s, so it was stopped"
    return _why_stopped(result.exit_status, result.stdout, workdir)


def _why_stopped(status: int, output: str, workdir: Path) -> str | None:
    if status == 0:
        return None
    if status == _FAULT_STATUS:
        return f"the firmware faulted\n{output.strip()}"
    if status == _FILES_STATUS:
        raise StorageError(
            "results-not-written",
            place=workdir,
            reason="the test firmware cannot write its results to this folder",
            hint="check the free space of the disk",
        )
    if status < 0:
        return f"the program was ended by signal {-status}"
    return f"the firmware ended with exit status {status}\n{output.strip()}".rstrip()


def read_runs(workdir: Path, subject: Subject, runs: int, words: int = 0) -> npt.NDArray[Any]:
    """Return a record array of the finished cases, each with ``runs`` runs: ``run0``, ``run1``.

    Each run has the fields of verify.c's record, the flat outputs ``out0``, ``out1``, ..., and ``cycles`` if the
    firmware writes ``words`` words about them.
    """
    layout = runs_layout(subject, runs, words)
    path = workdir / _OUTPUTS
    data = read_bytes(path, "output of the test firmware") if path.exists() else b""
    # Whole records only: firmware that was stopped may have written a part of one.
    return np.frombuffer(data, dtype=layout, count=len(data) // layout.itemsize)


def case_size(subject: Subject, runs: int) -> int:
    """Return the bytes that the firmware writes for a case of ``runs`` runs.

    A case has one record for each run: status, damage, use of workspace and stack, and the outputs.
    """
    return runs_layout(subject, runs).itemsize


def runs_layout(subject: Subject, runs: int, words: int = 0) -> np.dtype[Any]:
    """Return the dtype of one case with ``runs`` runs, as ``verify.c`` writes it: little-endian, without padding.

    ``run0.status``, ``run0.damage``, ..., ``run0.out0``, ``run0.out1``, ...; with ``words``, ``run0.cycles`` has as
    many. Its ``itemsize`` is the bytes of a case.
    """
    outputs = []
    for index, tensor in enumerate(subject.outputs):
        # All cores and hosts here are little-endian; the order is written down so that arrays mean the same everywhere.
        element = np.dtype(tensor.dtype).newbyteorder("<")
        outputs.append((f"out{index}", element, (tensor.size // element.itemsize,)))
    outputs += [("cycles", np.dtype("<u4"), (words,))] if words else []
    return np.dtype([(f"run{number}", np.dtype([*_RECORD, *outputs])) for number in range(runs)])


def flaws(subject: Subject, run: Any) -> Iterator[str]:
    """Yield the faults of a run other than wrong numbers: an error code, or a write outside its buffers.

    ``run`` is one record of ``read_runs``, such as ``run0`` of a case. Each text is a clause whose subject is the
    module.
    """
    if run["status"] != 0:
        yield f"the run function returned {run['status']}, not 0"
    index = int(run["index"])
    texts = (
        None,
        f"changed input {index}",
        f"wrote outside input {index}",
        f"wrote outside output {index}",
        _outside_workspace(subject, index),
        f"wrote outside the state of {subject.state_size} bytes",
    )
    # The index is that of the first damage that the firmware found; later ones are often its consequence.
    text = texts[run["damage"]]
    if text is not None:
        yield text


def _outside_workspace(subject: Subject, index: int) -> str:
    if index < len(subject.pools):
        name, size = subject.pools[index]
        return f"wrote outside the pool {shown(name)} of {size} bytes"
    return f"wrote outside the workspace of {subject.workspace_size} bytes"
