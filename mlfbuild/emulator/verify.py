"""Verify a module: run its vectors in a test firmware on the target's board and compare every output element.

    inputs.bin -> [verify.elf on QEMU] -> outputs.bin -> compare -> VerifyReport

Each case runs twice in one image, so that state kept between runs shows; ``runtime/verify/verify.c`` tells how memory
around the module is guarded and measured. The image does not depend on the vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.emulator.compare import first_difference
from mlfbuild.emulator.harness import build_harness, run_harness
from mlfbuild.emulator.image import read_subject
from mlfbuild.emulator.report import VerifyReport
from mlfbuild.emulator.vectors import Vectors, load_vectors
from mlfbuild.errors import ProcessFailedError, TimedOutError, UsageError
from mlfbuild.files import read_bytes, write_atomic
from mlfbuild.firmware.verification import HOST, Subject, subject_of
from mlfbuild.library import Module
from mlfbuild.targets import BOARDS, Board

__all__ = ["VerifyReport", "verify_image", "verify_module"]

_SECONDS = 120
_SECONDS_A_CASE = 30
_FAULT_STATUS = 112  # MLF_BOARD_FAULT_STATUS
_RECORD = [(name, "<i4" if name == "status" else "<u4") for name in ("status", "damage", "index", "workspace", "stack")]


def verify_module(
    tree: Path,
    module: Module,
    board: Board | None,
    vectors: Path,
    workdir: Path,
    *,
    toolchain: Path | None = None,
    timeout: float | None = None,
) -> VerifyReport:
    """Check ``module`` of the unpacked ``tree`` against the file ``vectors``.

    ``board`` ``None`` is this machine; ``toolchain`` is the CMake toolchain file of the board's CPU. ``timeout`` is in
    seconds, by default generous for the number of cases. Everything is built and kept in ``workdir``. What is wrong
    with the module is in the report; raised are ``CheckFailedError`` where the file holds no cases, ``InputFileError``,
    ``UnsupportedModelError``, ``ToolNotFoundError``, ``StorageError``, and ``ProcessFailedError`` where the test
    firmware cannot be built or the emulator fails.
    """
    if board is None and toolchain is not None:
        raise UsageError(f"{module.name}: the target has no board to be verified on; give it one QEMU emulates")
    loaded = load_vectors(vectors, module)
    subject = subject_of(module, board.name if board else HOST)
    image = build_harness(tree, module, board, toolchain, workdir)
    return _check(image, subject, loaded, workdir, timeout)


def verify_image(
    image: Path, vectors: Path, workdir: Path, *, board: str | None = None, timeout: float | None = None
) -> VerifyReport:
    """Check the test firmware ``image``, which says itself what it is, against the file ``vectors``.

    It runs in ``workdir``. Raises as ``verify_module``, ``InputFileError`` also where the image is no test firmware,
    and ``UsageError`` where it is for another board than ``board``.
    """
    subject = read_subject(image)
    if board is not None and board != subject.board:
        raise UsageError(f"{image}: runs on {_place(subject)}, not on {board}; link it for the board you want")
    return _check(image, subject, load_vectors(vectors, subject), workdir, timeout)


def _place(subject: Subject) -> str:
    return "this machine" if subject.board == HOST else subject.board


def _check(image: Path, subject: Subject, vectors: Vectors, workdir: Path, timeout: float | None) -> VerifyReport:
    board = None if subject.board == HOST else BOARDS[subject.board]
    write_atomic(workdir / "inputs.bin", _interleaved(vectors, subject))
    (workdir / "outputs.bin").unlink(missing_ok=True)
    stopped = _run(image, board, workdir, timeout or _SECONDS + _SECONDS_A_CASE * vectors.cases)
    runs = _read_outputs(workdir / "outputs.bin", subject)
    problems = list(dict.fromkeys(_problems(subject, vectors, runs)))
    if stopped is not None:
        problems.append(f"{subject.name}: case {len(runs) % vectors.cases}: {stopped}")
    elif len(runs) < vectors.cases:
        raise ProcessFailedError(f"{image}: the test firmware wrote {len(runs)} of {vectors.cases} cases and stopped")
    return VerifyReport(
        module=subject.name,
        board=subject.board,
        cases=vectors.cases,
        problems=tuple(problems),
        wrong=tuple(_wrong(vectors, runs)),
        workspace_size=subject.workspace_size,
        workspace_used=_largest(runs, "workspace") if subject.takes_workspace else None,
        stack_used=_largest(runs, "stack") if board else None,
    )


def _interleaved(vectors: Vectors, subject: Subject) -> bytes:
    """Return the inputs case by case; a single case twice, as the arena is measured with two paints.

    A module with state sees it once: it would go on from there.
    """
    cases = [array.view(np.uint8).reshape(vectors.cases, -1) for array in vectors.inputs]
    return np.concatenate(cases, axis=1).tobytes() * (2 if vectors.cases == 1 and not subject.state_size else 1)


def _run(image: Path, board: Board | None, workdir: Path, timeout: float) -> str | None:
    """Run the image; returns why it stopped early, ``None`` where it reached its end."""
    try:
        result = run_harness(image, board, workdir, timeout)
    except TimedOutError:
        return f"no result after {timeout:g} s, stopped"
    if result.exit_status == 0:
        return None
    if result.exit_status == _FAULT_STATUS:
        return f"the firmware faulted\n{result.stdout.strip()}"
    if result.exit_status < 0:
        return f"the program was ended by signal {-result.exit_status}"
    raise ProcessFailedError(f"{image}: the test firmware failed with exit status {result.exit_status}", result.stdout)


def _layout(module: Subject) -> np.dtype[Any]:
    """Return what verify.c writes for one case: two runs, each a record and the outputs."""
    outputs = []
    for index, tensor in enumerate(module.outputs):
        element = np.dtype(tensor.dtype).newbyteorder("<")
        outputs.append((f"out{index}", element, (tensor.size // element.itemsize,)))
    one_run = np.dtype([*_RECORD, *outputs])
    return np.dtype([("first", one_run), ("second", one_run)])


def _read_outputs(path: Path, module: Subject) -> npt.NDArray[Any]:
    """Return a record array of the cases that were finished."""
    layout = _layout(module)
    data = read_bytes(path, "output of the test firmware") if path.exists() else b""
    return np.frombuffer(data, dtype=layout, count=len(data) // layout.itemsize)


def _largest(runs: npt.NDArray[Any], field: str) -> int | None:
    if len(runs) == 0:
        return None
    return int(max(runs["first"][field].max(), runs["second"][field].max()))


def _problems(module: Subject, vectors: Vectors, runs: npt.NDArray[Any]) -> Iterator[str]:
    for number, run in enumerate(runs):
        case = number % vectors.cases
        where = f"{module.name}: case {case}"
        for record in (run["first"], run["second"]):
            yield from (f"{where}: {text}" for text in _damage(module, record))
        yield from (f"{where}, {text}" for text in _differences(module, vectors, case, run))


def _wrong(vectors: Vectors, runs: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    for case, run in enumerate(runs[: vectors.cases]):
        for index, expected in enumerate(vectors.outputs):
            if first_difference(expected[case], run["first"][f"out{index}"]) is not None:
                yield case, index


def _damage(module: Subject, record: Any) -> Iterator[str]:
    if record["status"] != 0:
        yield f"the run function returned {record['status']}, not 0"
    index = int(record["index"])
    texts = (
        None,
        f"input {index} was changed",
        f"wrote beside input {index}",
        f"wrote beside output {index}",
        f"wrote beside the workspace of {module.workspace_size} bytes",
        f"wrote beside the state of {module.state_size} bytes",
    )
    text = texts[record["damage"]]
    if text is not None:
        yield text


def _differences(module: Subject, vectors: Vectors, case: int, run: Any) -> Iterator[str]:
    for index, (tensor, expected) in enumerate(zip(module.outputs, vectors.outputs, strict=True)):
        first, second = run["first"][f"out{index}"], run["second"][f"out{index}"]
        where = f"output {index} ({tensor.name})"
        difference = first_difference(expected[case], first)
        if difference is not None:
            yield f"{where}, {difference}"
        elif first.tobytes() != second.tobytes():
            element = int(np.flatnonzero(first.view(np.uint8) != second.view(np.uint8))[0]) // first.itemsize
            yield (
                f"{where}, element {element}: the second run differs from the first "
                f"({second[element]} after {first[element]})"
            )
