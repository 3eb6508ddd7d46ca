"""Verify models: run each module that has vectors in test firmware on its target's board, and compare all outputs."""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mlfbuild import archive, executor, verify
from mlfbuild.core import (
    CheckFailedError,
    Diagnostic,
    Mistake,
    MlfError,
    OnProgress,
    ProcessFailedError,
    ProjectFileError,
    UsageError,
    listed,
    no_progress,
    read_bytes,
    sha256,
    write_atomic,
)
from mlfbuild.jobs import (
    CompileJob,
    Progress,
    Silent,
    TargetJob,
    Task,
    outline_of,
    run_budgets_on,
    run_placement,
    run_sections,
    target_jobs,
    vectors_of,
)
from mlfbuild.jobs.tree import HOST, RECORD
from mlfbuild.library import Library
from mlfbuild.project import KeyPath, Project, RunnerKeys
from mlfbuild.targets import Board, board_called
from mlfbuild.usecases.build import build_project
from mlfbuild.verify import Connection

_RESULT = "result.json"


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

    @property
    def title(self) -> str:
        """The name of the job in messages, such as ``kws for m55``."""
        return f"{self.model.model} (module {self.module}) for {self.target.name}" if self.module else self.model.title

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
        return json.dumps(
            {
                "board": board,
                "placed": placed,
                "toolchain": toolchain,
                "source": source,
                "module": self.module,
                **runner,
            }
        )


VerifyResult = tuple[VerifyJob, "verify.VerifyReport | MlfError"]
"""A job, and its report or the reason why the model could not be checked."""


def verify_project(
    project: Project,
    targets: Sequence[TargetJob],
    jobs: Sequence[VerifyJob],
    *,
    frozen: bool = False,
    workers: int = 1,
    progress: Progress | None = None,
) -> list[VerifyResult]:
    """Build the models of ``targets``, ``workers`` at a time, and verify ``jobs``, even if some of them fail.

    Raises as ``build_project``.
    """
    watch = progress or Silent()
    watch.expect(len(jobs))
    lenders = target_jobs(project)
    build_project(targets, lenders=lenders, jobs=workers, progress=watch, locked=project if frozen else None)
    with contextlib.ExitStack() as stack:
        devices = _Devices(stack)
        return [(job, _watched(job, watch, devices)) for job in jobs]


class _Devices:
    """The connection to the device of the target in work: one for all its models."""

    def __init__(self, stack: contextlib.ExitStack) -> None:
        self._stack = stack
        self._place = ""
        self._connection: Connection | None = None

    def of(self, job: VerifyJob) -> Connection | None:
        """Return the connection to the device of the job's target, ``None`` if it has none."""
        if job.target.runner is None:
            return None
        if self._connection is None or self._place != job.place:
            self.release()
            device = verify.device_of(job.target, job.place)
            self._connection, self._place = self._stack.enter_context(verify.connected(device)), job.place
        return self._connection

    def release(self) -> None:
        """Reset and release the device."""
        self._connection = None
        self._stack.close()


def budget_error(project: Project, targets: Sequence[TargetJob], progress: Progress | None = None) -> MlfError | None:
    """Return why budgets of runs of the models of ``targets`` are not kept, or cannot be checked.

    Models with such a budget run on emulated boards, unless nothing changed since their last run. Their trees have been
    built.
    """
    from mlfbuild.report import budgets  # few projects have budgets

    try:
        budgets.check_runs(project, budgets.budgeted_jobs(project, targets), progress)
    except MlfError as error:
        return error
    return None


def unchecked_in_runs(project: Project, targets: Sequence[TargetJob]) -> list[str]:
    """Return a line for each budget, of a model of ``targets`` or of a firmware, that runs on them do not check."""
    models = dict.fromkeys(model.model for target in targets for model in target.models)
    crossed = {model.model for target in targets if target.toolchain is not None for model in target.models}
    checked = {(model.model, key) for target in targets for model in target.models for key in run_budgets_on(target)}
    lines = []
    for name in models:
        budget = project.models[name].budget
        kinds = [kind for kind in ("flash", "ram", "stack") if getattr(budget, kind) is not None]
        for key in (key for key in budget.of_runs if (name, key) not in checked):
            reason = _unchecked_reason(project, project.models[name].targets, key)
            lines.append(f"{key} of model {name} ({reason})")
        if kinds and name in crossed:
            lines.append(f"{listed(kinds)} of model {name} (links check that, such as those of `mlfbuild build`)")
    return [*lines, *_unchecked_of_firmware(project, targets)]


def _unchecked_of_firmware(project: Project, targets: Sequence[TargetJob]) -> Iterator[str]:
    for name, firmware in project.firmware.items():
        own = [target for target in targets if target.name in firmware.targets]
        for key in firmware.budget.of_runs if own else ():
            able = [target for target in own if key in run_budgets_on(target)]
            if not able:
                yield f"{key} of firmware {name} ({_unchecked_reason(project, firmware.targets, key)})"
            elif not any(_has_all_models(project, target, name) for target in able):
                command = f"run `mlfbuild profile --target {able[0].name}`"
                yield f"{key} of firmware {name} (not all of its models are selected; {command})"


def _has_all_models(project: Project, target: TargetJob, firmware: str) -> bool:
    selected = {model.model for model in target.models}
    return all(model.name in selected for model in project.models_on(target.name, firmware))


def _unchecked_reason(project: Project, targets: Sequence[str], key: str) -> str:
    """Return why the budget ``key`` is not checked, with the command that does for one of ``targets`` (names)."""
    other = next(target for target in target_jobs(project, targets) if key in run_budgets_on(target))
    lacking = "a board" if key == "instructions" else "an mcu"
    return f"no selected target has {lacking}; run `mlfbuild profile --target {other.name}`"


def _watched(job: VerifyJob, watch: Progress, devices: _Devices) -> verify.VerifyReport | MlfError:
    task = Task("verify", job.title, job.target.name, model=job.model.model)
    watch.start(task)
    try:
        report = _verified(job, devices.of(job), functools.partial(watch.step, task))
    except MlfError as error:
        if isinstance(error, ProcessFailedError):
            devices.release()  # the next job connects again
        watch.fail(task, "could not be checked")
        return error
    if report.passed:
        watch.finish(task, "passed")
    else:
        watch.fail(task, "FAILED")
    return report


def verify_jobs(
    project: Project, targets: Sequence[TargetJob], build: Path, timeout: float | None = None
) -> list[VerifyJob]:
    """Return a job for each module of ``targets`` that has vectors and can run, on a board or on this machine.

    A case may take ``timeout`` seconds. Raises ``CheckFailedError`` if there is none, and ``ProjectFileError`` if
    vectors do not name the module that they are for.
    """
    vectors = vectors_of(project)
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
    if not jobs:
        reasons = left_out(project, targets)
        raise CheckFailedError(
            "nothing-to-verify",
            place=project.path,
            reason=f"no model can be verified: {', '.join(reasons) or 'none is chosen'}",
            hint="add vectors, or choose a model with --model" if reasons else "choose a model with --model",
        )
    return jobs


def jobs_in_image(jobs: Sequence[VerifyJob], image: Path, *, flash: bool = True) -> list[VerifyJob]:
    """Return ``jobs`` so that they check the models in the firmware ``image`` on the device of their target.

    An emulated board is a device, too. Raises ``UsageError`` if the jobs are for several targets, or for this machine.
    """
    names = list(dict.fromkeys(job.target.name for job in jobs))
    if len(names) > 1:
        raise UsageError(
            "image-for-several-targets",
            place="--in",
            reason=f"an image is for one target, not for {listed(names)}",
            hint="choose it with --target",
        )
    board, runner = jobs[0].target.board, jobs[0].target.runner
    if runner is None and board is None:
        raise UsageError(
            "runner-missing",
            place=f"target {names[0]}",
            reason="the target has no device",
            hint="add a runner to the target",
        )
    target = replace(jobs[0].target, runner=runner or RunnerKeys(qemu=board.name if board else None))
    return [replace(job, target=target, image=image, flash=flash) for job in jobs]


def left_out(project: Project, targets: Sequence[TargetJob]) -> list[str]:
    """Return a line for each model, module or target that ``verify_jobs`` omits, with what is missing."""
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
        f"target {target.name} has no runner, no board that QEMU emulates, and no mcu (add one, or another target with "
        "the same CPU)"
        for target in targets
        if not _can_run(target)
    ]


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
    """Return ``targets`` so that they run on their boards instead of devices."""
    return [replace(target, runner=None) for target in targets]


def verify_job(job: VerifyJob, on_progress: OnProgress = no_progress) -> verify.VerifyReport:
    """Build the model's test firmware, run every case on the target, and return a report of all differences.

    The target is its device, if it has a runner, its board, or this machine. Writes ``report.txt`` into the job's
    folder if there are no differences; ``on_progress`` is called with the progress. Raises ``ToolNotFoundError``,
    ``ProcessFailedError``, ``InputFileError`` if the vectors do not fit the module, and ``UsageError`` if the archive
    has no such module.
    """
    if job.target.runner is None:
        return _verified(job, None, on_progress)
    with verify.connected(verify.device_of(job.target, job.place)) as connection:
        return _verified(job, connection, on_progress)


def _verified(job: VerifyJob, connection: Connection | None, on_progress: OnProgress) -> verify.VerifyReport:
    module = executor.chosen_module(archive.open_archive(job.model.archive), job.module or None, str(job.model.archive))
    remarks = verify.vectors_remarks(job.vectors, module.model_id)
    if job.image is not None:
        assert connection is not None
        subject = verify.shipped_subject(module, connection.device.name)
        shipped = verify.verify_shipped(
            connection, job.image, subject, job.vectors, flash=job.flash, timeout=job.timeout, on_progress=on_progress
        )
        return replace(shipped.for_model(job.model.model), remarks=remarks)
    report = verify.verify_module(
        job.model.tree,
        module,
        job.board,
        job.vectors,
        job.folder,
        toolchain=job.target.toolchain,
        timeout=job.timeout,
        placement=run_placement(job.target, job.model, job.folder, on_device=job.target.runner is not None),
        connection=connection,
        on_progress=on_progress,
    )
    report = replace(report.for_model(job.model.model), remarks=remarks)
    _record(job, report)
    if report.wrong:
        on_progress("looking for the first wrong operator", 0, 0)
        hint = verify.first_wrong_operator(job.model, job.target, job.vectors, job.folder, report, connection)
        return replace(report, hint=hint)
    if report.passed:
        write_atomic(job.folder / "report.txt", f"{report.text()}\n".encode())
    return report


def verified_state(job: VerifyJob) -> dict[str, Any]:
    """Return the result of the last run of ``job`` as JSON values, ``outdated`` if it would run something else now."""
    try:
        last = json.loads((job.folder / _RESULT).read_text("utf-8"))
        known = {name: last[name] for name in ("board", "cases", "problem")}
        state = ("failed" if last["problem"] else "passed") if last["checked"] == _checked(job) else "outdated"
    except (OSError, ValueError, LookupError, TypeError, MlfError):
        return {"module": job.module, "state": "never"}
    return {"module": job.module, "state": state, **known}


def _record(job: VerifyJob, report: verify.VerifyReport) -> None:
    """Keep the result for reports."""
    problem = "" if report.passed else report.summary()
    result = {"checked": _checked(job), "board": report.board, "cases": report.cases, "problem": problem}
    write_atomic(job.folder / _RESULT, f"{json.dumps(result, indent=2)}\n".encode())


def _checked(job: VerifyJob) -> str:
    """Return a hash of what a run checks: the tree, the vectors and the settings of the target."""
    parts = [read_bytes(job.model.tree / RECORD, "record"), read_bytes(job.vectors, "vectors file")]
    return sha256(b"".join(sha256(part).encode() for part in (*parts, job.settings().encode())))


def verification_failed(what: str, problems: Sequence[Diagnostic] = ()) -> CheckFailedError:
    """Return the error for wrong outputs of ``what``, whose report has been printed."""
    return CheckFailedError(
        "verify-failed",
        place=f"verify: {what}",
        reason="outputs differ from the vectors",
        hint="see the report above",
        problems=problems,
    )


def wrong_outputs(project: Project, job: VerifyJob, report: verify.VerifyReport) -> Diagnostic:
    """Return the finding about the wrong outputs of ``report``, at the line of the project file with the vectors."""
    mistake = Mistake("verify-failed", reason=f"target {job.target.name}: {report.summary()}", hint=report.hint)
    path: KeyPath = ("models", job.model.model, "vectors", *([job.module] if job.module else []))
    (finding,) = project.problems([(path, mistake)])
    return finding


def verify_elf(
    image: Path, vectors: Path, board: str | None = None, timeout: float | None = None
) -> verify.VerifyReport:
    """Run the test firmware ``image`` on the board that it names and compare all outputs with the file ``vectors``.

    No project, archive or tree is required. ``board`` is the expected board; a case may take ``timeout`` seconds.
    Raises ``InputFileError`` if the image is not test firmware, ``UsageError`` if it is for another board or ``board``
    is unknown, and as ``verify_job``.
    """
    if board is not None and board != HOST:
        board_called(board)
    with tempfile.TemporaryDirectory(prefix="mlfbuild-verify-") as folder:
        return verify.verify_image(image, vectors, Path(folder), board=board, timeout=timeout)
