"""Verify a module: run its vectors in test firmware on the target's board and compare every output element.

Each case runs twice in one image, to detect state that is kept between runs. ``runtime/verify/verify.c`` documents how
memory around the module is guarded and measured. The image does not depend on the vectors.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.core import OnProgress, UsageError, no_progress
from mlfbuild.jobs.tree import HOST, Subject, subject_of
from mlfbuild.library import Module
from mlfbuild.targets import BOARDS, Board
from mlfbuild.verify.compare import first_difference, float_tolerance
from mlfbuild.verify.device import Connection
from mlfbuild.verify.emulator.harness import build_harness
from mlfbuild.verify.image import read_subject
from mlfbuild.verify.result import VerifyReport
from mlfbuild.verify.semihosting_io import (
    ENDED_EARLY,
    SECONDS_A_CASE,
    case_size,
    flaws,
    interleaved,
    read_runs,
    run_cases,
)
from mlfbuild.verify.vectors import Vectors, load_vectors

__all__ = ["VerifyReport", "verify_image", "verify_module"]

_RUNS = 2
"""Runs of each case in one image."""


def verify_module(
    tree: Path,
    module: Module,
    board: Board | None,
    vectors: Path,
    workdir: Path,
    *,
    toolchain: Path | None = None,
    timeout: float | None = None,
    placement: Path | None = None,
    connection: Connection | None = None,
    on_progress: OnProgress = no_progress,
) -> VerifyReport:
    """Check ``module`` of the unpacked ``tree`` against the file ``vectors``.

    It runs on the device of ``connection``, if there is one. Otherwise ``board`` ``None`` is this machine;
    ``toolchain`` is the CMake toolchain file of the board's CPU, ``placement`` the fragment that assigns sections to
    memory regions. A case may take ``timeout`` seconds (default ``SECONDS_A_CASE``). Everything is built and kept in
    ``workdir``; ``on_progress`` receives progress. Faults of the module are in the report. Raises ``CheckFailedError``
    if the file holds no cases, ``InputFileError``, ``UnsupportedModelError``, ``ToolNotFoundError``, ``StorageError``,
    and ``ProcessFailedError`` if the test firmware cannot be built or the emulator fails.
    """
    device = connection.device if connection else None
    if board is None and device is None and toolchain is not None:
        raise UsageError(
            "target-without-board",
            place=module.name,
            reason="the target has no board to run on",
            hint="set `board` of the target to one that QEMU emulates",
        )
    loaded = load_vectors(vectors, module)
    if device is not None:
        subject = subject_of(module, device.name, device.ram_for_data)
    else:
        subject = subject_of(module, board.name if board else HOST)
    image = build_harness(
        tree, module, board, toolchain, workdir, placement=placement, device=device, on_progress=on_progress
    )
    return _check(image, subject, loaded, workdir, timeout, on_progress, connection)


def verify_image(
    image: Path,
    vectors: Path,
    workdir: Path,
    *,
    board: str | None = None,
    timeout: float | None = None,
    on_progress: OnProgress = no_progress,
) -> VerifyReport:
    """Check the test firmware ``image``, which describes its module and board, against the file ``vectors``.

    It runs in ``workdir``. Raises as ``verify_module``, ``InputFileError`` also if the image is not test firmware, and
    ``UsageError`` if it is for another board than ``board``.
    """
    subject = read_subject(image)
    if board is not None and board != subject.board:
        raise UsageError(
            "image-for-another-board",
            place=image,
            reason=f"the image runs on {_place(subject)}, not on {board}",
            hint=f"link it for {board}",
        )
    return _check(image, subject, load_vectors(vectors, subject), workdir, timeout, on_progress)


def _place(subject: Subject) -> str:
    return "this machine" if subject.board == HOST else subject.board


def _check(
    image: Path,
    subject: Subject,
    vectors: Vectors,
    workdir: Path,
    timeout: float | None,
    on_progress: OnProgress,
    connection: Connection | None = None,
) -> VerifyReport:
    board = None if connection or subject.board == HOST else BOARDS[subject.board]
    # A single case runs twice, because measuring the arena takes two paints; not with state, which would continue.
    again = vectors.cases == 1 and not subject.state_size
    # The firmware cannot tell a repeated case from another one, so the image needs no special mode.
    inputs = interleaved(vectors.inputs) * (2 if again else 1)
    size = case_size(subject, _RUNS)

    begin: list[float] = []

    def grown(written: int) -> None:
        done, now = written // size, time.monotonic()
        begin.append(now)
        # Only devices show a rate: QEMU's speed says nothing about hardware.
        rate = f" ({done / (now - begin[0]):.1f} cases a second)" if connection and now > begin[0] else ""
        on_progress(f"running{rate}", min(done, vectors.cases), vectors.cases)

    grown(0)
    stopped = run_cases(
        image,
        board,
        inputs,
        workdir,
        timeout or SECONDS_A_CASE,
        grown=grown,
        connection=connection,
        on_progress=on_progress,
    )
    runs = read_runs(workdir, subject, _RUNS)
    report = report_of(subject, vectors, runs, stopped, connection.name if connection else subject.board)
    # On this machine, the stack is shared with the C library and the loader, and its use says nothing about the device.
    return report if board or connection else replace(report, stack_used=None)


def report_of(
    subject: Subject, vectors: Vectors, runs: npt.NDArray[Any], stopped: str | None, board: str
) -> VerifyReport:
    """Return the report about finished ``runs``, in the form of ``read_runs``, on ``board``.

    ``stopped`` is why the runs ended early, ``None`` if they did not. There may be more runs than cases, if one case
    was repeated; the case that a stop belongs to is the first one without a record.
    """
    # Both runs of a case often have the same fault.
    problems = list(dict.fromkeys(_problems(subject, vectors, runs)))
    if stopped is not None or len(runs) < vectors.cases:
        problems.append(f"{subject.name}: case {len(runs) % vectors.cases}: {stopped or ENDED_EARLY}")
    return VerifyReport(
        module=subject.name,
        board=board,
        cases=vectors.cases,
        ran=min(len(runs), vectors.cases),
        problems=tuple(problems),
        wrong=tuple(_wrong(subject, vectors, runs)),
        workspace_size=subject.workspace_size,
        workspace_used=_largest(runs, "workspace") if subject.takes_workspace else None,
        stack_used=_largest(runs, "stack"),
    )


def _largest(runs: npt.NDArray[Any], field: str) -> int | None:
    if len(runs) == 0:
        return None
    return int(max(runs["run0"][field].max(), runs["run1"][field].max()))


def _problems(module: Subject, vectors: Vectors, runs: npt.NDArray[Any]) -> Iterator[str]:
    for number, run in enumerate(runs):
        case = number % vectors.cases
        where = f"{module.name}: case {case}"
        for record in (run["run0"], run["run1"]):
            yield from (f"{where}: {text}" for text in flaws(module, record))
        if not _failed(run):
            yield from (f"{where}, {text}" for text in _differences(module, vectors, case, run))


def _failed(run: Any) -> bool:
    """Return whether a run of the case returned an error, so that its outputs mean nothing."""
    return any(run[f"run{number}"]["status"] != 0 for number in range(_RUNS))


def _tolerance(subject: Subject, vectors: Vectors) -> float:
    return float_tolerance(subject.layers) if vectors.tolerance is None else vectors.tolerance


def _wrong(module: Subject, vectors: Vectors, runs: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    tolerance = _tolerance(module, vectors)
    for case, run in enumerate(runs[: vectors.cases]):
        if _failed(run):
            continue
        for index, expected in enumerate(vectors.outputs):
            if first_difference(expected[case], run["run0"][f"out{index}"], tolerance, module.bound(index)) is not None:
                yield case, index


def _differences(module: Subject, vectors: Vectors, case: int, run: Any) -> Iterator[str]:
    for index, (tensor, expected) in enumerate(zip(module.outputs, vectors.outputs, strict=True)):
        first, second = run["run0"][f"out{index}"], run["run1"][f"out{index}"]
        where = f"output {index} ({tensor.name})"
        difference = first_difference(expected[case], first, _tolerance(module, vectors), module.bound(index))
        if difference is not None:
            yield f"{where}, {difference}"
        # As bytes: two NaN are unequal as numbers, and -0.0 equals 0.0.
        elif first.tobytes() != second.tobytes():
            element = int(np.flatnonzero(first.view(np.uint8) != second.view(np.uint8))[0]) // first.itemsize
            yield (
                f"{where}, element {element}: the second run differs from the first "
                f"({second[element]} after {first[element]})"
            )
