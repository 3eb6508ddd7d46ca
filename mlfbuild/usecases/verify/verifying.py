"""Run the jobs of ``verify`` and compare all outputs; a job whose inputs did not change is not run again.

The end of the file checks the budgets that need a run: latency, and what else the simulator or the device measures.
"""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from mlfbuild import archive, executor, verify
from mlfbuild.core import (
    CheckFailedError,
    Diagnostic,
    MlfError,
    OnProgress,
    ProcessFailedError,
    ToolNotFoundError,
    listed,
    no_progress,
    read_bytes,
    sha256,
    write_atomic,
)
from mlfbuild.jobs import (
    Action,
    InputChange,
    Progress,
    TargetJob,
    differences,
    flat,
    make_tree,
    run_budgets_on,
    run_placement,
    target_jobs,
)
from mlfbuild.jobs.tree import HOST, RECORD
from mlfbuild.project import DASK, Project
from mlfbuild.targets import board_called
from mlfbuild.usecases.build import build_project
from mlfbuild.usecases.verify.jobs import REPORT, VerifyJob
from mlfbuild.verify import Connection


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
    """Return a line for each budget, of a model of ``targets`` or of a firmware, that runs on them do not check.

    Models with the same budgets of a link share a line.
    """
    models = dict.fromkeys(model.model for target in targets for model in target.models)
    crossed = {model.model for target in targets if target.toolchain is not None for model in target.models}
    checked = {(model.model, key) for target in targets for model in target.models for key in run_budgets_on(target)}
    lines: list[str] = []
    linked: dict[str, list[str]] = {}
    for name in models:
        budget = project.models[name].budget
        kinds = [kind for kind in ("flash", "ram", "stack") if getattr(budget, kind) is not None]
        for key in (key for key in budget.of_runs if (name, key) not in checked):
            reason = _unchecked_reason(project, project.models[name].targets, key)
            lines.append(f"{key} of model {name} ({reason})")
        if kinds and name in crossed:
            linked.setdefault(listed(kinds), []).append(name)
    for kind, names in linked.items():
        subject = f"model{'s' * (len(names) > 1)} {listed(names)}"
        lines.append(f"{kind} of {subject} (links check that, such as those of `mlfbuild build`)")
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


_RESULT = "result.json"
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

    Returns each job with its report, or with the error if it could not be checked, in the order of ``jobs``; they run
    one after the other, and those of one target share the connection to its device. With ``frozen``, archives must be
    the locked ones. Raises as ``build_project``.
    """
    watch = progress or Progress()
    watch.expect(len(jobs))
    lenders = target_jobs(project)
    build_project(targets, lenders=lenders, jobs=workers, progress=watch, locked=project if frozen else None)
    found = _on_farm(project, jobs, workers, watch) if project.jobs.engine == DASK else {}
    with contextlib.ExitStack() as stack:
        devices = _Devices(stack)
        return [
            (job, found[number] if number in found else _watched(job, watch, devices))
            for number, job in enumerate(jobs)
        ]


def _on_farm(
    project: Project, jobs: Sequence[VerifyJob], workers: int, watch: Progress
) -> dict[int, verify.VerifyReport | MlfError]:
    from mlfbuild.farm import FarmSettings  # few projects have a farm
    from mlfbuild.usecases.verify.on_farm import verified_on_farm

    found = verified_on_farm(jobs, project.root, FarmSettings(project.jobs.address, workers), watch)
    for number, report in found.items():
        if isinstance(report, verify.VerifyReport):
            _record(jobs[number], report)
            _keep_text(jobs[number], report)
    return found


def _keep_text(job: VerifyJob, report: verify.VerifyReport) -> None:
    if report.passed:
        write_atomic(job.folder / "report.txt", f"{report.text()}\n".encode())


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
            self._connection, self._place = self._connected(job), job.place
        return self._connection

    def _connected(self, job: VerifyJob) -> Connection:
        device = verify.device_of(job.target, job.place)
        try:
            return self._stack.enter_context(verify.connected(device))
        except ToolNotFoundError as error:
            if job.image is not None:
                raise
            hint = f"{error.hint}; --emulator needs no device"
            raise ToolNotFoundError(error.code, place=error.place, reason=error.reason, hint=hint) from None

    def release(self) -> None:
        """Reset and release the device."""
        self._connection = None
        # The stack can be entered again after it was closed.
        self._stack.close()


def _watched(job: VerifyJob, watch: Progress, devices: _Devices) -> verify.VerifyReport | MlfError:
    task = job.task
    watch.start(task)
    try:
        report = _verified(job, devices.of(job), functools.partial(watch.step, task))
    except MlfError as error:
        # The device may have stopped anywhere, or its connection may be lost. Other errors are about files and leave it
        # usable.
        if isinstance(error, ProcessFailedError):
            devices.release()  # the next job connects again
        watch.fail(task, "could not be checked")
        return error
    if report.passed:
        watch.finish(task, "passed")
    else:
        watch.fail(task, "FAILED")
    return report


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
    # Only a device runs an image that is not test firmware.
    if job.image is not None and connection is not None:
        subject = verify.shipped_subject(module, connection.device.name)
        shipped = verify.verify_shipped(
            connection,
            job.image,
            subject,
            job.vectors,
            flash=job.flash,
            timeout=job.timeout,
            parameters=job.parameters,
            on_progress=on_progress,
        )
        return replace(shipped.for_model(job.model.model), remarks=() if job.parameters else remarks)
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
    # Before the search for the operator, which may take long or be interrupted: the result is known already.
    _record(job, report)
    if report.wrong:
        on_progress("looking for the first wrong operator", 0, 0)
        hint = verify.first_wrong_operator(job.model, job.target, job.vectors, job.folder, report, connection)
        return replace(report, hint=hint)
    _keep_text(job, report)
    return report


def verify_here(job: VerifyJob) -> Mapping[str, bytes]:
    """Verify ``job``, which has travelled to this worker of a farm, from its archive; return the report."""
    make_tree(job.model, job.target)
    return {REPORT: json.dumps(asdict(verify_job(job))).encode()}


def verified_state(job: VerifyJob) -> dict[str, Any]:
    """Return the result of the last run of ``job`` as JSON values, ``outdated`` if it would run something else now.

    ``state`` is ``passed``, ``failed``, ``outdated`` or ``never``; unless it is the last one, there are also the board,
    the number of cases and the problem. Nothing is built or run.
    """
    try:
        last = json.loads((job.folder / _RESULT).read_text("utf-8"))
        known = {name: last[name] for name in ("board", "cases", "problem")}
        # The hash is that of the inputs of the last run. A result of other inputs is shown as outdated rather than
        # hidden.
        state = ("failed" if last["problem"] else "passed") if last["checked"] == _checked(job).key else "outdated"
    # A record of another version or a damaged one is as good as none.
    except (OSError, ValueError, LookupError, TypeError, MlfError):
        return {"module": job.module, "state": "never"}
    return {"module": job.module, "state": state, **known}


def verified_changes(job: VerifyJob) -> list[InputChange]:
    """Return the inputs of ``job`` that changed since its last run, whose result is ``verified_state``."""
    try:
        inputs = json.loads((job.folder / _RESULT).read_text("utf-8"))["inputs"]
        return differences(inputs, _checked(job).inputs)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, MlfError):
        return []


def _record(job: VerifyJob, report: verify.VerifyReport) -> None:
    """Keep the result for reports."""
    problem = "" if report.passed else report.summary()
    action = _checked(job)
    result = {
        "checked": action.key,
        "board": report.board,
        "cases": report.cases,
        "problem": problem,
        "inputs": dict(action.inputs),
    }
    write_atomic(job.folder / _RESULT, f"{json.dumps(result, indent=2)}\n".encode())


def _checked(job: VerifyJob) -> Action:
    """Return what a run checks: the tree, the vectors and the settings of the target."""
    files = {"tree": job.model.tree / RECORD, "vectors": job.vectors}
    digests = {name: sha256(read_bytes(path, name)) for name, path in files.items()}
    return Action("verify", {**digests, **dict(flat(json.loads(job.settings())))})


def verification_failed(what: str, problems: Sequence[Diagnostic] = ()) -> CheckFailedError:
    """Return the error for wrong outputs of ``what``, whose report has been printed.

    ``what`` names the models, and ``problems`` has a finding for each, with its line in the project file. Exit status
    1.
    """
    return CheckFailedError(
        "verify-failed",
        place=f"verify: {what}",
        reason="outputs differ from the vectors",
        hint="see the report above",
        problems=problems,
    )


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
