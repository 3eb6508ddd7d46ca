"""Build and measure every point of a model's space, and record what came of it.

A point is the project with other values of some keys, built as any project is, in ``build/explore/<model>``. Points
with the same inputs of the compiler share one compilation, and those with the same code one measurement. Archives and
figures are kept there and in the cache by the key of their action, so that a second run repeats nothing, and one that
was killed goes on where it was.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from mlfbuild.cache import CacheSettings, ResultCache, open_cache, shared_cache
from mlfbuild.core import MlfError, ProjectFileError, sha256, write_atomic
from mlfbuild.exploration import (
    Exploration,
    ExploredPoint,
    Setting,
    exploration_path,
    read_explorations,
    settings_text,
    write_explorations,
)
from mlfbuild.farm import FarmResult, FarmSettings, FarmTask
from mlfbuild.jobs import (
    BUILD_FOLDER,
    COMPILED,
    COPIED,
    Action,
    FarmWork,
    Progress,
    QuantizeStep,
    SharedArchive,
    TargetJob,
    Task,
    archive_record,
    changes_of,
    compile_action,
    compile_once,
    explore_mistakes,
    explored_inputs,
    folder_locked,
    is_current,
    is_quantized,
    load,
    make_on_farm,
    make_quantized,
    map_in_workers,
    profile_jobs,
    programs_of,
    quantize_action,
    raise_first,
    record_action,
    run_on_farm,
    target_jobs,
    trees_locked,
)
from mlfbuild.project import DASK, Project
from mlfbuild.report import nothing_to_profile
from mlfbuild.usecases.evaluate import evaluate_jobs
from mlfbuild.usecases.explore.measuring import RESULT, MeasureJob, measure_action, measure_here
from mlfbuild.usecases.explore.space import axes_of, points_of
from mlfbuild.usecases.verify import without_runners

_FOLDER, _RESULTS = "explore", "results"
_SHOWN = 12
_OF_A_POINT = (1, 2, 4, 7)
"""Exit codes of errors that a point can cause; others, such as a missing compiler, end the exploration."""
_KEPT = (1, 2, 4)
"""Those of them that depend on nothing but the inputs of the point."""


@dataclass(frozen=True)
class ExploreResult:
    """An exploration, and what was done for it now."""

    exploration: Exploration
    path: Path
    """The file in which it is recorded."""
    omitted: tuple[str, ...]
    """Keys that were left out of the usual space."""
    compiled: int
    """Compilations."""
    measured: int
    """Measurements; all others were known."""


@dataclass
class _Point:
    settings: Mapping[str, Setting]
    targets: Sequence[TargetJob] = ()
    job: MeasureJob | None = None
    problem: str = ""
    key: str = ""
    """The key of its measurement."""


def explore_model(
    project: Project, name: str, targets: Sequence[str] = (), *, jobs: int = 1, progress: Progress | None = None
) -> ExploreResult:
    """Explore the model ``name`` for ``targets``, by default all that QEMU emulates, and record the result.

    ``project`` was loaded without the changes of its goals. Up to ``jobs`` points are built at a time, here or on a
    farm. A point that cannot be built or measured has its reason. Budgets are not checked.

    Raises ``ProjectFileError`` for explored values that are not possible, ``CheckFailedError`` if no target can be
    emulated, ``UsageError`` as ``axes_of`` and ``target_jobs``, errors
    that no point causes, such as a missing compiler, and as ``read_explorations`` and ``write_explorations``.
    """
    watch, model = progress or Progress(), project.models[name]
    path, folder = exploration_path(project.path), project.root / BUILD_FOLDER / _FOLDER / name
    problems = project.problems(explore_mistakes(replace(project, models={name: model})))
    if problems:
        raise ProjectFileError(problems)
    recorded = read_explorations(path)  # before minutes of work
    chosen = [target for target in target_jobs(project, targets, [name]) if target.models]
    if not any(target.run_board for target in chosen):
        raise nothing_to_profile([target.name for target in chosen], project.path)
    axes, omitted = axes_of(model, mcu=any(target.mcu for target in chosen))
    with folder_locked(folder, lambda _: None):
        run = _Run(project, name, folder, jobs, watch)
        points = [run.point(settings, [target.name for target in chosen]) for settings in points_of(axes)]
        run.quantize(points)
        run.compile(points)
        run.measure(points)
    raise_first(run.errors, watch)
    found = _exploration(project, name, points, run.known)
    write_explorations(path, {**{key: each for key, each in recorded.items() if key in project.models}, name: found})
    return ExploreResult(found, path, tuple(omitted), run.compiled, run.measured)


def _exploration(
    project: Project, name: str, points: Sequence[_Point], known: Mapping[str, Mapping[str, Any]]
) -> Exploration:
    """Return what is known of ``points``, the last of which is the project as it is."""
    groups: dict[str, list[_Point]] = defaultdict(list)
    for number, point in enumerate(points):
        groups[point.key or str(number)].append(point)
    current, keys = points[-1], project.models[name].evaluate
    explored = []
    for group in groups.values():
        first, facts = group[0], known.get(group[0].key, {})
        explored.append(
            ExploredPoint(
                first.settings,
                facts.get("targets", {}),
                facts.get("accuracy"),
                tuple(facts.get("missed", ())),
                first.problem,
                current=current in group,
                same=tuple(each.settings for each in group[1:] if each.settings),
            )
        )
    made_of = {target.name: explored_inputs(target, target.models[0]) for target in current.targets}
    smaller = keys is not None and keys.smaller_is_better
    return Exploration(name, made_of, tuple(explored), keys.metric if keys else "", smaller)


@dataclass
class _Run:
    """The work of one exploration; ``errors`` are those that no point causes."""

    project: Project
    name: str
    folder: Path
    workers: int
    watch: Progress
    compiled: int = 0
    measured: int = 0
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Figures, or the reason why there are none, by the key of the action."""
    errors: dict[int, MlfError] = field(default_factory=dict)

    def point(self, settings: Mapping[str, Setting], targets: Sequence[str]) -> _Point:
        """Return the jobs of a point for those of ``targets`` (names) that QEMU emulates."""
        point = _Point(settings)
        build = self.folder / sha256(json.dumps(settings, sort_keys=True).encode())[:_SHOWN]
        try:
            changed = replace(load(self.project.path, changes=changes_of(self.name, settings)), jobs=self.project.jobs)
            found = without_runners(target_jobs(changed, targets, [self.name], build))
        except ProjectFileError as error:
            # Without the changes the file has no mistakes, so that the first one is about them.
            first = error.problems[0]
            point.problem = first if isinstance(first, str) else first.reason
            return point
        except MlfError as error:
            self._fail([point], error)
            return point
        point.targets = [target for target in found if target.run_board and target.models]
        profiles = [job for target in point.targets for job in profile_jobs(changed, target, build)]
        evaluations = [replace(job, folder=build / "evaluate") for job in evaluate_jobs(changed, point.targets)]
        point.job = MeasureJob(settings, tuple(profiles), evaluations[0] if evaluations else None)
        return point

    def quantize(self, points: Sequence[_Point]) -> None:
        """Make the quantised file of each point, once for all with the same inputs."""
        groups: dict[str, list[tuple[QuantizeStep, _Point]]] = defaultdict(list)
        for point in points:
            step = point.targets[0].models[0].quantize if point.targets else None
            if step is not None:
                groups[quantize_action(step).key].append((step, point))
        stale = {id(group[0][0]): group for group in groups.values() if not is_quantized(group[0][0])}
        tasks = [self._task("quantize", group[0][1].settings) for group in stale.values()]
        for step, error in self._each(_quantized, [group[0][0] for group in stale.values()], tasks):
            if isinstance(error, MlfError):
                self._fail([point for _, point in stale[id(step)]], error)
        # Their inputs are equal, and so would be the files: the others are copies.
        for (made, first), *others in groups.values():
            for step in (step for step, _ in others if not first.problem and not is_quantized(step)):
                write_atomic(step.made, made.made.read_bytes())
                record_action(step.record, quantize_action(step), step.made, COPIED)

    def compile(self, points: Sequence[_Point]) -> None:
        """Make the archives of ``points``, each once for all with the same inputs."""
        groups: dict[str, SharedArchive] = {}
        of: dict[str, list[_Point]] = defaultdict(list)
        for point in points:
            for job in (target.models[0] for target in point.targets if not point.problem):
                try:
                    key = compile_action(job).key
                except MlfError as error:
                    self._fail([point], error)
                    break
                groups.setdefault(key, SharedArchive([], [])).jobs.append(job)
                of[key].append(point)
        stale = {key: group for key, group in groups.items() if not all(map(is_current, group.jobs))}
        kept = {key: _refusal_key(key, group) for key, group in stale.items()}
        for key in [key for key in stale if (self._kept(kept[key]) or {}).get("problem")]:
            for point in of[key]:
                point.problem = self.known[kept[key]]["problem"]
            del stale[key]
        if self.project.jobs.engine == DASK and stale:
            self._compile_on_farm([*stale.values()])
        numbers = {id(group): key for key, group in stale.items()}
        tasks = [self._task("compile", of[key][0].settings, group.jobs[0].target) for key, group in stale.items()]
        for group, made in self._each(_compiled, [*stale.values()], tasks):
            if isinstance(made, MlfError):
                self._fail(of[numbers[id(group)]], made, kept[numbers[id(group)]])
            else:
                self.compiled += made

    def _compile_on_farm(self, groups: Sequence[SharedArchive]) -> None:
        settings = FarmSettings(self.project.jobs.address, self.workers)
        try:
            make_on_farm(settings, groups, self.watch, lambda _: None)
        except MlfError as error:
            # What a point causes is found again, and becomes its reason.
            if error.exit_code not in _OF_A_POINT:
                raise
        made = [archive_record(job) for group in groups for job in group.jobs if is_current(job)]
        self.compiled += sum(record is not None and record.origin == COMPILED for record in made)

    def measure(self, points: Sequence[_Point]) -> None:
        """Measure ``points`` whose archives exist, each code once."""
        of: dict[str, list[_Point]] = defaultdict(list)
        for point in points:
            if point.job is not None and not point.problem:
                try:
                    point.key = measure_action(point.job).key
                except MlfError as error:
                    self._fail([point], error)
                    continue
                of[point.key].append(point)
        new = {key: group[0].job for key, group in of.items() if self._kept(key) is None and group[0].job is not None}
        for key, group in of.items():
            for point in group:
                point.problem = self.known.get(key, {}).get("problem", "")
        outcome = partial(self._ended, of)
        travelling = {key: job for key, job in new.items() if self.project.jobs.engine == DASK and job.can_travel}
        if travelling:
            self._measure_on_farm(travelling, outcome)
        keys = {id(job): key for key, job in new.items() if key not in travelling}
        left = [job for job in new.values() if id(job) in keys]
        for job, found in self._each(_measured, left, [self._task("measure", job.settings) for job in left]):
            outcome(keys[id(job)], found)

    def _ended(self, of: Mapping[str, Sequence[_Point]], key: str, found: Mapping[str, bytes] | MlfError) -> None:
        if isinstance(found, MlfError):
            self._fail(of[key], found, key)
        else:
            self.measured += 1
            self._keep(key, found[RESULT])

    def _measure_on_farm(
        self, jobs: Mapping[str, MeasureJob], outcome: Callable[[str, Mapping[str, bytes] | MlfError], None]
    ) -> None:
        function = f"{measure_here.__module__}:{measure_here.__name__}"

        def work_of(key: str, job: MeasureJob) -> FarmWork:
            title = f"measure {settings_text(job.settings)}"
            task = FarmTask(key, title, function, job, self.project.root, job.files)
            shown = self._task("measure", job.settings)

            def end(result: FarmResult) -> None:
                outcome(key, result.outputs)
                self.watch.finish(shown, f"done on {result.worker}")

            return FarmWork(task, shown, end)

        self.watch.expect(len(jobs))
        programs = {name for job in jobs.values() for each in job.profiles for name in programs_of(each.target)}
        settings = FarmSettings(self.project.jobs.address, self.workers)
        errors = run_on_farm(settings, [work_of(key, job) for key, job in jobs.items()], self.watch, programs)
        for place, key in enumerate(jobs):
            if place in errors:
                outcome(key, errors[place])

    def _each(
        self,
        function: Callable[[Any, Callable[[Any], None]], Any],
        things: Sequence[Any],
        shown: Sequence[Task],
    ) -> Iterator[tuple[Any, Any]]:
        """Yield each of ``things`` with the result of ``function``, or with its error; show the work as tasks."""
        self.watch.expect(len(things))
        tasks = {id(thing): task for thing, task in zip(things, shown, strict=True)}

        def started(thing: Any, _: Any) -> None:
            self.watch.start(tasks[id(thing)])

        for thing, result in map_in_workers(partial(_guarded, function), things, self.workers, started):
            # An error as such is that of a worker process; that of the function is in a list (``_guarded``).
            found = result if isinstance(result, MlfError) else result[0]
            if isinstance(found, MlfError):
                self.watch.fail(tasks[id(thing)])
            else:
                self.watch.finish(tasks[id(thing)], "done")
            yield thing, found

    def _task(self, verb: str, settings: Mapping[str, Setting], target: str = "") -> Task:
        title = f"{self.name} for {target}" if target else self.name
        return Task(verb, f"{title} ({settings_text(settings)})", target, model=self.name)

    def _fail(self, points: Iterable[_Point], error: MlfError, key: str = "") -> None:
        """Note why ``points`` have no figures; keep it by ``key`` if that cannot be otherwise the next time."""
        if error.exit_code not in _OF_A_POINT:
            self.errors[len(self.errors)] = error
        for point in points:
            point.problem = error.reason
        if key and error.exit_code in _KEPT:
            self._keep(key, json.dumps({"problem": error.reason}).encode())

    def _kept(self, key: str) -> dict[str, Any] | None:
        """Return the figures that were kept by ``key``."""
        own, *shared = self._caches()
        found = own.fetch(key) or next(filter(None, (cache.fetch(key) for cache in shared)), None)
        if found is None or {*found.outputs} != {RESULT}:
            return None
        # A result from the shared cache is kept here too, so that it survives when that cache is cleared.
        own.store(key, found.outputs)
        self.known[key] = json.loads(found.outputs[RESULT])
        return self.known[key]

    def _keep(self, key: str, content: bytes) -> None:
        self.known[key] = json.loads(content)
        for cache in self._caches():
            cache.store(key, {RESULT: content})

    def _caches(self) -> list[ResultCache]:
        """Return the cache of this exploration, which goes on where it was killed, and the one of all projects."""
        own = open_cache(CacheSettings(self.folder / _RESULTS), lambda _: None)
        shared = shared_cache(self.project.cache.settings(), lambda _: None)
        return [own, *([] if shared is None else [shared])]


def _guarded(
    function: Callable[[Any, Callable[[Any], None]], Any], thing: Any, send: Callable[[Any], None]
) -> list[Any]:
    """Return the result of ``function`` or its error in a list: an error as such would end the work of all."""
    send(None)
    try:
        return [function(thing, send)]
    except MlfError as error:
        return [error]


def _refusal_key(key: str, group: SharedArchive) -> str:
    """Return the key of the reason why no archive of ``group`` can be made, whose compilation has the ``key``."""
    rooms = sorted("" if job.ram_limit is None else str(job.ram_limit) for job in group.jobs)
    return Action("explore", {"compile": key, "ram": " ".join(rooms)}).key


def _quantized(step: QuantizeStep, _send: Callable[[Any], None]) -> bool:
    return make_quantized(step) is not None


def _compiled(group: SharedArchive, _send: Callable[[Any], None]) -> int:
    with trees_locked(group.jobs):
        records = compile_once(group.jobs, group.lenders)
    return sum(record.origin == COMPILED for record in records.values())


def _measured(job: MeasureJob, _send: Callable[[Any], None]) -> dict[str, bytes]:
    return measure_here(job)
