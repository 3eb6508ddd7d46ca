"""The modules to verify: each with vectors, on each target that can run it, in test firmware or an image."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mlfbuild import executor, verify
from mlfbuild.core import (
    CheckFailedError,
    Diagnostic,
    Mistake,
    ProjectFileError,
    UsageError,
    check_signed,
    listed,
    read_bytes,
)
from mlfbuild.jobs import CompileJob, TargetJob, Task, outline_of, run_sections, vectors_of
from mlfbuild.library import Library
from mlfbuild.project import KeyPath, Project, RunnerKeys
from mlfbuild.targets import Board

REPORT = "report.json"
"""The output of a verification, for workers of a farm and in the cache."""


@dataclass(frozen=True)
class VerifyJob:
    """One module with vectors on one target."""

    target: TargetJob
    model: CompileJob
    module: str
    """Module of the model's archive; empty if it has only one."""
    vectors: Path
    folder: Path
    """Folder of the test firmware and the report."""
    timeout: float | None = None
    """Time limit of a case in seconds; ``None`` for the default."""
    place: str = ""
    """Place of the target's runner in the project file, if it has one."""
    image: Path | None = None
    """The firmware image that contains the model and is checked, instead of test firmware."""
    flash: bool = True
    """Whether ``image`` is loaded; the device must hold it otherwise."""
    parameters: bytes = b""
    """The blob of parameters that the firmware in ``image`` must use; empty for none."""

    @property
    def title(self) -> str:
        """The name of the job in messages, such as ``kws for m55``."""
        return f"{self.model.model} (module {self.module}) for {self.target.name}" if self.module else self.model.title

    @property
    def test_name(self) -> str:
        """The module in lists of tests, such as ``kws`` or ``pair.first``."""
        return f"{self.model.model}.{self.module}" if self.module else self.model.model

    @property
    def task(self) -> Task:
        """The job as it is shown."""
        return Task("verify", self.title, self.target.name, model=self.model.model)

    @property
    def board(self) -> Board | None:
        """The emulated board that runs the model, unless the target has a runner."""
        return self.target.board if self.target.runner else self.target.run_board

    def settings(self) -> str:
        """Return what the check depends on besides tree, vectors and harness, as canonical JSON."""
        toolchain = self.target.toolchain.name if self.target.toolchain else None
        board = self.board.name if self.board else None
        source = self.model.request.source.name
        sections = self.target.placed if self.target.runner else run_sections(self.target, self.model)
        placed = [asdict(section) for section in sections]
        runner = {"runner": repr(self.target.runner)} if self.target.runner else {}
        known = {"board": board, "placed": placed, "toolchain": toolchain, "source": source, "module": self.module}
        return json.dumps({**known, **runner})


def verify_jobs(
    project: Project,
    targets: Sequence[TargetJob],
    build: Path,
    timeout: float | None = None,
    *,
    needed: bool = True,
    given: Path | None = None,
) -> list[VerifyJob]:
    """Return a job for each module of ``targets`` that has vectors and can run, on a board or on this machine.

    ``given`` replaces the vectors of all models. A case may take ``timeout`` seconds. Raises ``CheckFailedError`` if
    there is none and one is ``needed``, and ``ProjectFileError`` if vectors do not name the module that they are for.
    """
    vectors = vectors_of(project)
    if given is not None:
        vectors = {model.model: {"": given} for target in targets for model in target.models}
    chosen = [(target, model) for target in targets for model in target.models if model.model in vectors]
    problems = [problem for _, model in chosen for problem in _misnamed(model, vectors[model.model])]
    if problems:
        raise ProjectFileError(list(dict.fromkeys(project.problems(problems))))
    jobs = [
        VerifyJob(target, model, module, path, build / "verify" / target.name / model.model / module, timeout)
        for target, model in chosen
        for module, path in vectors[model.model].items()
        if _can_run(target)
    ]
    jobs = [replace(job, place=runner_place(project, job.target)) if job.target.runner else job for job in jobs]
    if not jobs and needed:
        reasons = [omitted.text for omitted in left_out(project, targets)]
        raise CheckFailedError(
            "nothing-to-verify",
            place=project.path,
            reason=f"no model can be verified: {', '.join(reasons) or 'none is chosen'}",
            hint="add vectors, or choose a model with --model" if reasons else "choose a model with --model",
        )
    return jobs


def with_parameters(
    project: Project, jobs: Sequence[VerifyJob], parameters: Path, vectors: Path | None
) -> list[VerifyJob]:
    """Return the only one of ``jobs`` so that its firmware uses the blob ``parameters``.

    Its vectors are those of the file ``vectors``, as the project's have the outputs of the values before. Raises
    ``UsageError`` for several jobs, or without vectors, and as ``check_signed`` if the project requires signed blobs.
    """
    if len(jobs) != 1:
        names = listed([job.model.model for job in jobs])
        reason, hint = f"a blob is for one model, not for {names}", "choose it with --model"
        raise UsageError("blob-for-several-models", place="--parameters", reason=reason, hint=hint)
    if vectors is None:
        raise UsageError(
            "vectors-missing",
            place=f"--parameters {parameters}",
            reason="the expected outputs are missing: the project's are those of the values before",
            hint="add --vectors FILE.npz with arrays in0.. and out0..",
        )
    blob = read_bytes(parameters, "blob")
    if project.blob_trust is not None:
        check_signed(parameters, blob, project.blob_trust)
    return [replace(jobs[0], parameters=blob, vectors=vectors)]


def jobs_in_image(jobs: Sequence[VerifyJob], image: Path, *, flash: bool = True) -> list[VerifyJob]:
    """Return ``jobs`` so that they check the models in the firmware ``image`` on the device of their target.

    An emulated board counts as a device. Raises ``UsageError`` if the jobs are for several targets, or for this
    machine.
    """
    names = list(dict.fromkeys(job.target.name for job in jobs))
    # An image is linked for one core and the memories of one target.
    if len(names) > 1:
        reason, hint = f"an image is for one target, not for {listed(names)}", "choose it with --target"
        raise UsageError("image-for-several-targets", place="--in", reason=reason, hint=hint)
    target = with_device(jobs[0].target)
    return [replace(job, target=target, image=image, flash=flash) for job in jobs]


def with_device(target: TargetJob) -> TargetJob:
    """Return ``target`` with a runner: its own, or else its emulated board, which counts as a device.

    Raises ``UsageError`` if it has neither.
    """
    if target.runner is None and target.board is None:
        reason, hint = "the target has no device", "add a runner to the target"
        raise UsageError("runner-missing", place=f"target {target.name}", reason=reason, hint=hint)
    return replace(target, runner=target.runner or RunnerKeys(qemu=target.board.name if target.board else None))


@dataclass(frozen=True)
class LeftOut:
    """A part that ``verify_jobs`` omits: a model, a module or a target."""

    name: str
    """``model.kws``, ``model.kws.module`` or ``target.m4``."""
    text: str
    """The missing requirement, for people."""

    def __str__(self) -> str:
        """Return the text."""
        return self.text


def left_out(project: Project, targets: Sequence[TargetJob]) -> list[LeftOut]:
    """Return each model, module or target that ``verify_jobs`` omits, with what is missing.

    An omission is not an error: commands print it, so that a model without vectors is not taken for one that passed.
    Targets are omitted if nothing can run their code.
    """
    models = {model.model: model for target in targets for model in target.models}
    vectors = vectors_of(project)
    arrays = "with arrays in0.. and out0.."
    found = [
        LeftOut(f"model.{name}", f"model {name} has no vectors ({_remedy(models[name], arrays)})")
        for name in models
        if name not in vectors
    ]
    for name in (name for name in models if "" not in vectors.get(name, {"": None})):
        missing = [module for module in _modules(models[name]) if module not in vectors[name]]
        found += [
            LeftOut(
                f"model.{name}.{module}",
                f'module {module} of model {name} has no vectors (add "{module}: <file>.npz" {arrays})',
            )
            for module in missing
        ]
    return found + [
        LeftOut(f"target.{target.name}", f"target {target.name} {_no_machine(target)}")
        for target in targets
        if not _can_run(target)
    ]


def _no_machine(target: TargetJob) -> str:
    """Return why nothing runs the code of ``target``, and what to do."""
    if target.npu is not None:
        return "has an NPU, which QEMU does not emulate, and no runner (add one)"
    return "has no runner, no board that QEMU emulates, and no mcu (add one, or another target with the same CPU)"


def _remedy(model: CompileJob, arrays: str) -> str:
    """Return how ``model``, whose archive has one module, gets vectors."""
    own = f'add "vectors: <file>.npz" {arrays}'
    return f"run `mlfbuild vectors {model.model}`, or {own}" if model.compiler == "native" else own


def _misnamed(model: CompileJob, vectors: Mapping[str, Path]) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield the vectors that name no module, or a wrong one, by their place in the project file."""
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
                "vectors-not-by-module",
                reason=f"{source} has several modules",
                hint=f"write one file for each: {example}",
            )
            yield ("models", model.model, "vectors"), mistake


def _modules(model: CompileJob) -> list[str]:
    """Return the modules that the model's archive will have; empty if they are not known before it is built."""
    library: Library | None = outline_of(model)
    modules = () if library is None else library.modules
    return [called.name for module in modules for called in executor.callable_modules(module)]


def _can_run(target: TargetJob) -> bool:
    return target.run_board is not None or target.runner is not None or target.toolchain is None


def runner_place(project: Project, target: TargetJob) -> str:
    """Return the place of the runner of ``target`` in the project file, for messages."""
    return f"{project.path}: targets.{target.name}.runner"


def without_runners(targets: Sequence[TargetJob]) -> list[TargetJob]:
    """Return ``targets`` so that they run on their boards instead of devices.

    For ``--emulator``. A target without a board that QEMU emulates is then omitted by ``verify_jobs`` and by
    ``profile``.
    """
    return [replace(target, runner=None) for target in targets]


def wrong_outputs(project: Project, job: VerifyJob, report: verify.VerifyReport) -> Diagnostic:
    """Return the finding about the wrong outputs of ``report``, at the line of the project file with the vectors.

    ``report`` must have failed. The place is the key ``vectors`` of the model, or that of the module in it, with line
    and column.
    """
    mistake = Mistake("verify-failed", reason=f"target {job.target.name}: {report.summary()}", hint=report.hint)
    path: KeyPath = ("models", job.model.model, "vectors", *([job.module] if job.module else []))
    (finding,) = project.problems([(path, mistake)])
    return finding
