"""Prove the numbers: each model that has vectors runs in a small firmware of its own on the target's board."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mlfbuild.archive import open_archive
from mlfbuild.emulator.verify import VerifyReport, verify_image, verify_module
from mlfbuild.errors import CheckFailedError, UnsupportedModelError
from mlfbuild.files import write_atomic
from mlfbuild.firmware.verification import HOST
from mlfbuild.manifest import Project
from mlfbuild.steps.jobs import CompileJob, TargetJob
from mlfbuild.steps.locate import first_wrong_operator
from mlfbuild.steps.project import vectors_of
from mlfbuild.targets import board_called

__all__ = ["VerifyJob", "VerifyReport", "left_out", "verify_elf", "verify_job", "verify_jobs"]


@dataclass(frozen=True)
class VerifyJob:
    """One model with vectors on one target."""

    target: TargetJob
    model: CompileJob
    vectors: Path
    folder: Path
    """Where the test firmware is built and the report goes."""

    def settings(self) -> str:
        """Return what decides the check beside tree, vectors and harness, as canonical JSON."""
        toolchain = self.target.toolchain.name if self.target.toolchain else None
        board = self.target.board.name if self.target.board else None
        placed = [asdict(section) for section in self.target.placed]
        return json.dumps(
            {"board": board, "placed": placed, "toolchain": toolchain, "source": self.model.request.source.name}
        )


def verify_jobs(project: Project, targets: Sequence[TargetJob], build: Path) -> list[VerifyJob]:
    """Return a job for each model of ``targets`` that has vectors and something to run on.

    Raises ``CheckFailedError`` where there is none.
    """
    vectors = vectors_of(project)
    jobs = [
        VerifyJob(target, model, vectors[model.model], build / "verify" / target.name / model.model)
        for target in targets
        for model in target.models
        if model.model in vectors and _can_run(target)
    ]
    if not jobs:
        reasons = "; ".join(left_out(project, targets)) or "no model is chosen"
        raise CheckFailedError(f"{project.path}: nothing to verify: {reasons}")
    return jobs


def left_out(project: Project, targets: Sequence[TargetJob]) -> list[str]:
    """Return a line for each model, or target, of ``targets`` that ``verify_jobs`` leaves out, with what it lacks."""
    vectors = vectors_of(project)
    models = dict.fromkeys(model.model for target in targets for model in target.models if model.model not in vectors)
    lines = [f'model {name} has no vectors (add "vectors: <file>.npz" with arrays in0.. and out0..)' for name in models]
    return lines + [
        f"target {target.name} has no board that QEMU emulates (add one to it, or another target of the same cpu)"
        for target in targets
        if not _can_run(target)
    ]


def _can_run(target: TargetJob) -> bool:
    return target.board is not None or target.toolchain is None


def verify_job(job: VerifyJob) -> VerifyReport:
    """Build the model's test firmware, run every case on the target and compare; the report tells what differed.

    Writes ``report.txt`` into the job's folder where all is well. Raises ``ToolNotFoundError``, ``ProcessFailedError``,
    ``InputFileError`` for vectors that do not fit the model.
    """
    library = open_archive(job.model.archive)
    if len(library.modules) != 1:
        names = ", ".join(module.name for module in library.modules)
        raise UnsupportedModelError(f"{job.model.archive}: holds several modules ({names}); verify checks one a model")
    (module,) = library.modules
    report = verify_module(
        job.model.tree,
        module,
        job.target.board,
        job.vectors,
        job.folder,
        toolchain=job.target.toolchain,
        placement=job.target.placement_fragment if job.target.placed else None,
    )
    if report.wrong:
        return replace(report, hint=first_wrong_operator(job.model, job.target, job.vectors, job.folder, report))
    if report.passed:
        write_atomic(job.folder / "report.txt", f"{report.text()}\n".encode())
    return report


def verify_elf(image: Path, vectors: Path, board: str | None = None) -> VerifyReport:
    """Run the test firmware ``image`` on the board it is for and compare all outputs with the file ``vectors``.

    Nothing else is needed: no project, no archive, no tree. ``board`` is the board that is expected. Raises
    ``InputFileError`` where the image is no test firmware, ``UsageError`` where it is for another board or
    ``board`` is unknown, and as ``verify_job``.
    """
    if board is not None and board != HOST:
        board_called(board)
    with tempfile.TemporaryDirectory(prefix="mlfbuild-verify-") as folder:
        return verify_image(image, vectors, Path(folder), board=board)
