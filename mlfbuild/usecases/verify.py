"""Prove the numbers: each module that has vectors runs in a small firmware of its own on the target's board."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mlfbuild.archive import open_archive
from mlfbuild.build import CompileJob, TargetJob, outline_of, vectors_of
from mlfbuild.build.tree import HOST
from mlfbuild.core import CheckFailedError, ProjectFileError, Tell, tell_nobody, write_atomic
from mlfbuild.executor import callable_modules, chosen_module
from mlfbuild.library import Library
from mlfbuild.project import KeyPath, Mistake, Project
from mlfbuild.targets import board_called
from mlfbuild.verify import VerifyReport, first_wrong_operator, verify_image, verify_module

__all__ = ["VerifyJob", "VerifyReport", "left_out", "verify_elf", "verify_job", "verify_jobs"]


@dataclass(frozen=True)
class VerifyJob:
    """One module with vectors on one target."""

    target: TargetJob
    model: CompileJob
    module: str
    """Of the model's archive; empty for its only one."""
    vectors: Path
    folder: Path
    """Where the test firmware is built and the report goes."""

    @property
    def title(self) -> str:
        """What messages call this job."""
        return f"{self.model.model} (module {self.module}) for {self.target.name}" if self.module else self.model.title

    def settings(self) -> str:
        """Return what decides the check beside tree, vectors and harness, as canonical JSON."""
        toolchain = self.target.toolchain.name if self.target.toolchain else None
        board = self.target.board.name if self.target.board else None
        source = self.model.request.source.name
        placed = [asdict(section) for section in self.target.placed]
        return json.dumps(
            {"board": board, "placed": placed, "toolchain": toolchain, "source": source, "module": self.module}
        )


def verify_jobs(project: Project, targets: Sequence[TargetJob], build: Path) -> list[VerifyJob]:
    """Return a job for each module of ``targets`` that has vectors and something to run on.

    Raises ``CheckFailedError`` where there is none, and ``ProjectFileError`` where vectors are of no module, or of
    several that nobody tells apart.
    """
    vectors = vectors_of(project)
    chosen = [(target, model) for target in targets for model in target.models if model.model in vectors]
    problems = [problem for _, model in chosen for problem in _misnamed(model, vectors[model.model])]
    if problems:
        raise ProjectFileError(list(dict.fromkeys(project.problems(problems))))
    jobs = [
        VerifyJob(target, model, module, path, build / "verify" / target.name / model.model / module)
        for target, model in chosen
        for module, path in vectors[model.model].items()
        if _can_run(target)
    ]
    if not jobs:
        reasons = "; ".join(left_out(project, targets)) or "no model is chosen; name one with --model"
        raise CheckFailedError(f"{project.path}: nothing to verify: {reasons}")
    return jobs


def left_out(project: Project, targets: Sequence[TargetJob]) -> list[str]:
    """Return a line for each model, module, or target that ``verify_jobs`` leaves out, with what it lacks."""
    models = {model.model: model for target in targets for model in target.models}
    vectors = vectors_of(project)
    arrays = "with arrays in0.. and out0.."
    lines = [
        f'model {name} has no vectors (add "vectors: <file>.npz" {arrays})' for name in models if name not in vectors
    ]
    for name in (name for name in models if "" not in vectors.get(name, {"": None})):
        missing = [module for module in _modules(models[name]) if module not in vectors[name]]
        lines += [
            f'module {module} of model {name} has no vectors (add "{module}: <file>.npz" {arrays})'
            for module in missing
        ]
    return lines + [
        f"target {target.name} has no board that QEMU emulates (add one to it, or another target of the same cpu)"
        for target in targets
        if not _can_run(target)
    ]


def _misnamed(model: CompileJob, vectors: Mapping[str, Path]) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield what is wrong with whose vectors are whose, by the place in the project file."""
    modules = _modules(model)
    source, names = model.request.source, ", ".join(modules)
    for module in vectors:
        if module and modules and module not in modules:
            mistake = Mistake(
                "vectors-of-unknown-module",
                reason=f"{source} has no module {module!r}",
                hint=f"use one of its modules: {names}",
            )
            yield ("models", model.model, "vectors", module), mistake
        if not module and len(modules) > 1:
            example = f"{{{', '.join(f'{name}: <file>.npz' for name in modules)}}}"
            mistake = Mistake(
                "vectors-of-several-modules",
                reason=f"{source} has several modules",
                hint=f"write one file for each: {example}",
            )
            yield ("models", model.model, "vectors"), mistake


def _modules(model: CompileJob) -> list[str]:
    """Return the modules that the model's archive will have; empty where only its making tells."""
    library: Library | None = outline_of(model)
    modules = () if library is None else library.modules
    return [called.name for module in modules for called in callable_modules(module)]


def _can_run(target: TargetJob) -> bool:
    return target.board is not None or target.toolchain is None


def verify_job(job: VerifyJob, tell: Tell = tell_nobody) -> VerifyReport:
    """Build the model's test firmware, run every case on the target and compare; the report tells what differed.

    Writes ``report.txt`` into the job's folder where all is well; ``tell`` is told how far it is. Raises
    ``ToolNotFoundError``, ``ProcessFailedError``, ``InputFileError`` for vectors that do not fit the module,
    ``UsageError`` where the archive has no such module.
    """
    module = chosen_module(open_archive(job.model.archive), job.module or None, str(job.model.archive))
    report = verify_module(
        job.model.tree,
        module,
        job.target.board,
        job.vectors,
        job.folder,
        toolchain=job.target.toolchain,
        placement=job.target.placement_fragment if job.target.placed else None,
        tell=tell,
    )
    if report.wrong:
        tell("looking for the first wrong operator", 0, 0)
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
