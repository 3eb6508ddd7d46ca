"""The models to evaluate: each with the key ``evaluate``, once on this machine, or on each target that is named."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlfbuild.core import CheckFailedError, Mistake, ProjectFileError, UsageError
from mlfbuild.datasets import data_files
from mlfbuild.evaluation import METRICS, EvaluateKeys
from mlfbuild.jobs import BUILD_FOLDER, CompileJob, TargetJob, Task
from mlfbuild.project import KeyPath, Project

THIS_MACHINE = "this machine"


@dataclass(frozen=True)
class EvaluateJob:
    """One model and its test set."""

    target: TargetJob
    """The target with whose archive it is evaluated."""
    model: CompileJob
    keys: EvaluateKeys
    folder: Path
    """Folder of the result."""
    root: Path
    """Folder of the project, which has the functions of the user."""
    runner_place: str = ""
    """Place of the target's runner in the project file."""
    on_target: bool = False
    """Whether it runs on the target's device or board rather than on this machine."""
    timeout: float | None = None
    """Time limit of a case in seconds; ``None`` for the default."""

    @property
    def title(self) -> str:
        """The name of the job in messages."""
        return self.model.title if self.on_target else self.model.model

    @property
    def task(self) -> Task:
        """The job as it is shown."""
        return Task("evaluate", self.title, self.target.name, model=self.model.model)

    @property
    def metric_module(self) -> Path | None:
        """The file of a metric that is a function of the user, which need not exist; ``None`` for other metrics."""
        if self.keys.metric in METRICS:
            return None
        return self.root / f"{self.keys.metric.partition(':')[0].replace('.', '/')}.py"

    def settings(self) -> str:
        """Return what the value depends on besides archive and data, as canonical JSON."""
        where = THIS_MACHINE
        if self.on_target:
            where = repr(self.target.runner or self.target.run_board)
        own = {"metric": self.keys.metric, "module": self.keys.module, "output": self.keys.output}
        return json.dumps({**own, "where": where, "optimize": self.model.optimize})


def evaluate_jobs(
    project: Project, targets: Sequence[TargetJob], *, on_targets: bool = False, timeout: float | None = None
) -> list[EvaluateJob]:
    """Return a job for each model of ``targets`` that has the key, in the order of the project file.

    A model is evaluated once, on this machine, with the archive of its target that is this machine, or else of its
    first one: the code of all of them also runs here. With ``on_targets``, it is evaluated on each target. A case may
    take ``timeout`` seconds. The list is empty if no model has the key. Raises ``UsageError`` for a target on which
    nothing can run.
    """
    pairs = [
        (target, model)
        for target in sorted(targets, key=lambda each: each.toolchain is not None)
        for model in target.models
        if project.models[model.model].evaluate is not None
    ]
    if on_targets:
        for target, _ in pairs:
            _check_can_run(target)
    else:
        # Reversed, so that of equal keys the first target remains, which is this machine if there is one.
        pairs = list({model.model: (target, model) for target, model in reversed(pairs)}.values())
    order = [*project.models]
    return [
        _job(project, target, model, keys, on_targets=on_targets and target.toolchain is not None, timeout=timeout)
        for target, model in sorted(pairs, key=lambda pair: order.index(pair[1].model))
        if (keys := project.models[model.model].evaluate) is not None
    ]


def _job(
    project: Project,
    target: TargetJob,
    model: CompileJob,
    keys: EvaluateKeys,
    *,
    on_targets: bool,
    timeout: float | None,
) -> EvaluateJob:
    folder = project.root / BUILD_FOLDER / "evaluate" / model.model
    return EvaluateJob(
        target,
        model,
        keys,
        folder / target.name if on_targets else folder,
        project.root,
        runner_place=f"{project.path}: targets.{target.name}.runner",
        on_target=on_targets,
        timeout=timeout,
    )


def _check_can_run(target: TargetJob) -> None:
    if target.toolchain is not None and target.runner is None and target.run_board is None:
        raise UsageError(
            "runner-missing",
            place=f"target {target.name}",
            reason="the target has no device and no board that QEMU emulates",
            hint="add a runner or a board to it, or omit --target to evaluate on this machine",
        )


def evaluated_files(job: EvaluateJob) -> list[Path]:
    """Return the files that decide the result besides the archive.

    They are those of the data, the module of a metric that is a function of the user, and the float network with which
    accuracy is compared.
    """
    found = data_files(job.keys.data)
    module = job.metric_module
    if module is not None and module.is_file():  # an installed one otherwise
        found.append(module)
    if job.keys.max_drop is not None and job.model.quantize is not None:
        found += job.model.quantize.reads
    return found


def missing_test_data(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield each test set that is missing, by its key; a build does not need it, as data are often not committed."""
    for name, model in project.models.items():
        if model.evaluate is not None and not model.evaluate.data.function and not model.evaluate.data.source.exists():
            reason = f"{model.evaluate.data.source}: no such file or folder"
            yield ("models", name, "evaluate", "data"), Mistake("no-such-file", reason=reason, hint="correct the path")


def check_test_data(project: Project, jobs: Sequence[EvaluateJob]) -> None:
    """Raise ``ProjectFileError`` if a test set of ``jobs`` is missing."""
    models = {job.model.model for job in jobs}
    problems = project.problems(found for found in missing_test_data(project) if found[0][1] in models)
    if problems:
        raise ProjectFileError(problems)


def check_any(project: Project, jobs: Sequence[EvaluateJob]) -> None:
    """Raise ``CheckFailedError`` if there are no ``jobs``: an evaluation of nothing must not pass."""
    if not jobs:
        raise CheckFailedError(
            "nothing-to-evaluate",
            place=project.path,
            reason="no model that is chosen has the key evaluate",
            hint="add evaluate: {data: data/test.npz, metric: top1} to a model",
        )


def needed_targets(targets: Sequence[TargetJob], jobs: Sequence[EvaluateJob]) -> list[TargetJob]:
    """Return ``targets`` with those models only that ``jobs`` evaluate, without targets of which none is left."""
    wanted = {(job.target.name, job.model.model) for job in jobs}
    needed = []
    for target in targets:
        models = tuple(model for model in target.models if (target.name, model.model) in wanted)
        others = tuple(model for model in target.models if model not in models)
        needed.append(replace(target, models=models, others=(*target.others, *others)))
    return [target for target in needed if target.models]
