"""Say why an archive or image was made, and whether the next build makes it again: its record against its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import SHA256, MlfError, unknown
from mlfbuild.jobs import (
    BUILD_FOLDER,
    COPIED,
    ActionRecord,
    CompileJob,
    FirmwareJob,
    InputChange,
    QuantizeStep,
    TargetJob,
    archive_record,
    compile_action,
    differences,
    firmware_jobs,
    hash_of,
    inputs_now,
    link_record,
    quantize_action,
    quantize_record,
    staying,
    stays,
    target_jobs,
)
from mlfbuild.project import DASK, Project
from mlfbuild.usecases.evaluate import EvaluateJob, evaluate_jobs, evaluated_changes, evaluated_state
from mlfbuild.usecases.verify import VerifyJob, verified_changes, verified_state, verify_jobs

_SHOWN = 8
"""Number of digits of a hash in text."""


@dataclass(frozen=True)
class Explanation:
    """The facts about one archive or image."""

    title: str
    """Such as ``kws for m4``."""
    kind: str
    """``archive``, ``image``, ``verification``, ``evaluation`` or ``quantised model``."""
    result: Path
    state: str
    """``current``, ``outdated`` (an input changed), ``edited`` (the result itself did), ``missing`` or ``unknown``;
    of a verification or an evaluation ``passed``, ``failed``, ``outdated`` or ``never``."""
    record: ActionRecord | None
    changes: tuple[InputChange, ...] = ()
    """The inputs that changed since the result was made: why the next build makes it again."""
    here: str = ""
    """Why no worker of the project's farm makes it; empty if one may, or without a farm."""


def explanations(project: Project, names: Sequence[str] = (), targets: Sequence[str] = ()) -> list[Explanation]:
    """Return an explanation for each archive and image of ``names``, which are models or firmware, on ``targets``.

    Empty sequences mean all. Nothing is built; files are hashed, and programs that compile models are asked for their
    version. Raises ``UsageError`` for an unknown name, and as ``target_jobs`` and ``compile_action``.
    """
    wrong = next((name for name in names if name not in project.models and name not in project.firmware), None)
    if wrong is not None:
        raise unknown("model or firmware", wrong, [*project.models, *project.firmware]).error(project.path)
    jobs = target_jobs(project, targets)
    chosen = {*names} or {*project.models, *project.firmware}
    archives = {(job.target, job.model): _of_archive(job) for target in jobs for job in target.models}
    images = [job for job in firmware_jobs(project, jobs) if job.name in chosen]
    steps = {
        job.model: job.quantize for target in jobs for job in target.models if job.quantize and job.model in chosen
    }
    return [
        *map(_of_quantized, steps.values()),
        *(found for (_, model), found in archives.items() if model in chosen),
        *(_of_verification(job) for job in _verifications(project, jobs) if job.model.model in chosen),
        *(_of_evaluation(job) for job in evaluate_jobs(project, jobs) if job.model.model in chosen),
        *(_of_image(job, [archives[job.target.name, model] for model in job.models]) for job in images),
    ]


def _of_archive(job: CompileJob) -> Explanation:
    record = archive_record(job)
    changes = tuple(differences(record.inputs, compile_action(job).inputs)) if record else ()
    here = stays(job) if job.jobs.engine == DASK else ""
    return Explanation(job.title, "archive", job.archive, _state(job.archive, record, changes), record, changes, here)


def _of_quantized(step: QuantizeStep) -> Explanation:
    record = quantize_record(step)
    changes = tuple(differences(record.inputs, quantize_action(step).inputs)) if record else ()
    return Explanation(step.model, "quantised model", step.made, _state(step.made, record, changes), record, changes)


def _verifications(project: Project, targets: Sequence[TargetJob]) -> list[VerifyJob]:
    try:
        return verify_jobs(project, targets, project.root / BUILD_FOLDER)
    except MlfError:  # no model has vectors, or those that it has fit no module: `verify` says so
        return []


def _of_verification(job: VerifyJob) -> Explanation:
    state = str(verified_state(job)["state"])
    changes = tuple(verified_changes(job)) if state == "outdated" else ()
    return Explanation(f"verification of {job.title}", "verification", job.folder, state, None, changes)


def _of_evaluation(job: EvaluateJob) -> Explanation:
    state = str(evaluated_state(job)["state"])
    changes = tuple(evaluated_changes(job)) if state == "outdated" else ()
    return Explanation(f"evaluation of {job.title}", "evaluation", job.folder, state, None, changes)


def _of_image(job: FirmwareJob, models: Sequence[Explanation]) -> Explanation:
    record = link_record(job)
    stale = [model.title for model in models if model.state != "current"]
    changes = (
        *(InputChange(f"model {title}", "", "") for title in stale),
        *(differences(record.inputs, inputs_now(job, record)) if record else ()),
    )
    here = staying(job) if any(model.jobs.engine == DASK for model in job.target.models) else ""
    return Explanation(job.title, "image", job.elf, _state(job.elf, record, changes), record, changes, here)


def _state(result: Path, record: ActionRecord | None, changes: Sequence[InputChange]) -> str:
    if not result.is_file():
        return "missing"
    if record is None:
        return "unknown"
    if changes:
        return "outdated"
    return "current" if hash_of(result) == record.sha256 else "edited"


def explanation_lines(found: Explanation) -> Iterator[str]:
    """Yield the explanation as lines of text: the state, then the reasons, each indented."""
    verb = "link" if found.kind == "image" else "make"
    text = _CHECKED.get(found.kind, _NEXT)[found.state]
    yield f"{found.title}: {text.format(verb=verb, kind=found.kind)}"
    for change in found.changes:
        yield f"  changed: {_change(change)}"
    if found.record is not None:
        yield f"  last {_made(found.record)}"
        for change in found.record.because:
            yield f"    because: {_change(change)}"
    if found.here:
        yield f"  on no worker of the farm: {found.here}"


_OUTDATED = {"outdated": "an input changed since the last one", "never": "there was none"}
_CHECKED = {
    "verification": {
        "passed": "all outputs are right, and nothing changed since",
        "failed": "an output is wrong, and nothing changed since",
        **_OUTDATED,
    },
    "evaluation": {
        "passed": "no limit is missed, and nothing changed since",
        "failed": "a limit is missed, and nothing changed since",
        **_OUTDATED,
    },
}
_NEXT = {
    "current": "the {kind} is up to date",
    "outdated": "the next build {verb}s the {kind} again",
    "edited": "the {kind} is not the one that mlfbuild made",
    "missing": "the next build {verb}s the {kind}, which does not exist",
    "unknown": "no build has recorded how the {kind} was made; the next one {verb}s it",
}


def _made(record: ActionRecord) -> str:
    if record.origin == COPIED:
        return "copied from the same archive of another target"
    if record.origin in ("local", "remote"):
        return f"taken from the {'cache of this machine' if record.origin == 'local' else 'shared cache'}"
    where = f" on {record.worker}" if record.worker else " here"
    return f"{record.origin}{where} in {record.seconds:.2f} s"


def _change(change: InputChange) -> str:
    if not change.before and not change.now:
        return change.name
    return f"{change.name}: {_value(change.before)} -> {_value(change.now)}"


def _value(value: str) -> str:
    """Return ``value`` for people: the first digits of a digest, and words for a value that is missing."""
    return value[:_SHOWN] if SHA256.fullmatch(value) else value or "none"
