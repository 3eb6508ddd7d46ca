"""The settings that a model with the key ``goal`` gets from what ``mlfbuild explore`` recorded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from mlfbuild.compilers import compiler_called
from mlfbuild.core import Mistake, ProjectFileError
from mlfbuild.exploration import (
    WITHOUT,
    Exploration,
    Setting,
    best_for,
    exploration_path,
    read_explorations,
    setting_path,
)
from mlfbuild.jobs.actions import differences, flat
from mlfbuild.jobs.model_job import CompileJob, TargetJob
from mlfbuild.jobs.project_jobs import target_jobs
from mlfbuild.native import SourceFiles
from mlfbuild.project import Changes, KeyPath, ModelSpec, Project, load_project


def changes_of(model: str, settings: Mapping[str, Setting]) -> dict[KeyPath, object]:
    """Return explored ``settings`` of ``model`` as changes of its project file."""
    return {setting_path(model, key): _written(value) for key, value in settings.items()}


def _written(value: Setting) -> object:
    """Return a value as in a project file; ``None`` for one that stands for the absence of the key."""
    if isinstance(value, tuple):
        return list(value) or None
    return None if value == WITHOUT else value


def explored_inputs(target: TargetJob, job: CompileJob) -> dict[str, str]:
    """Return what an exploration of the model of ``job`` for ``target`` is of: its file and its settings, by name.

    Versions of programs do not count: figures of another compiler differ, but the settings can still be used. Raises
    ``InputFileError`` for a model file that cannot be read.
    """
    source: Path = job.request.source if job.quantize is None else job.quantize.source
    own: dict[str, object] = {
        "optimize": job.optimize,
        "board": target.board and target.board.name,
        "mcu": target.mcu and target.mcu.name,
        "clock": target.mcu and target.mcu.clock,
        "quantize": {} if job.quantize is None else job.quantize.settings(),
    }
    return {"file": SourceFiles(source).read().identity, **dict(flat(job.named_settings())), **dict(flat(own))}


def explore_mistakes(project: Project) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield the explored values that a model cannot have, each tried by itself in the project file.

    Combinations of values that exclude each other are points without figures, and no mistakes.
    """
    for model in project.models.values():
        for key, values in model.explore.items():
            for index, value in enumerate(values):
                mistake = _value_mistake(project.path, model.name, key, value)
                if mistake is not None:
                    yield ("models", model.name, "explore", key, index), mistake


def _value_mistake(path: Path, name: str, key: str, value: Setting) -> Mistake | None:
    try:
        model = load_project(path, changes=changes_of(name, {key: value})).models[name]
    except ProjectFileError as error:
        first = error.problems[0]
        # Not its place, which is where the value would be without explore.
        return Mistake("value-not-possible", reason=first if isinstance(first, str) else first.reason)
    return next((mistake for _, mistake in compiler_called(model.compiler).check_options(model.options)), None)


def goal_changes(project: Project) -> Changes:
    """Return what the goals of ``project``, whose models are as in its file, change in it.

    Raises ``ProjectFileError`` for a goal of a model that was not explored or has changed since, or that no point
    reaches, ``InputFileError`` for a damaged record, and as ``target_jobs``.
    """
    recorded = read_explorations(exploration_path(project.path))
    changes: dict[KeyPath, object] = {}
    mistakes: list[tuple[KeyPath, Mistake]] = []
    for model in project.models.values():
        # A file that is missing is reported with all that are.
        if model.goal is None or not model.source.is_file():
            continue
        place = ("models", model.name, "goal")
        found = recorded.get(model.name)
        mistake = _why_unusable(project, model, found)
        best = best_for(found, model.goal) if found and mistake is None else None
        if best is None:
            reason = f"no explored point of {model.name} could be measured and keeps the limits of evaluate"
            mistakes.append(
                (place, mistake or Mistake("goal-not-reached", reason=reason, hint="explore other settings"))
            )
            continue
        for way, value in changes_of(model.name, best.settings).items():
            if changes.setdefault(way, value) != value:
                reason = f"{'.'.join(map(str, way))} is {changes[way]} for another goal, and {value} here"
                mistakes.append((place, Mistake("goals-differ", reason=reason, hint="write the key without goal")))
    if mistakes:
        raise ProjectFileError(project.problems(mistakes))
    return changes


def _why_unusable(project: Project, model: ModelSpec, found: Exploration | None) -> Mistake | None:
    """Return why ``found`` is not an exploration of ``model`` as it is in the project file."""
    hint = f"run `mlfbuild explore {model.name}`"
    if found is None:
        return Mistake("goal-without-exploration", reason=f"{model.name} was not explored", hint=hint)
    for name, before in found.made_of.items():
        if name not in model.targets:
            return Mistake("exploration-outdated", reason=f"was explored for {name}, not a target of it", hint=hint)
        (target,) = target_jobs(project, [name], [model.name])
        changed = differences(before, explored_inputs(target, target.models[0]))
        if changed:
            first = changed[0]
            what = "its file" if first.name == "file" else f"{first.name} ({first.before or 'none'})"
            return Mistake("exploration-outdated", reason=f"was explored with another value of {what}", hint=hint)
    return None
