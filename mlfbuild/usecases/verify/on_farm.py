"""Verify models on a farm: each module is a task that builds its test firmware and runs it where the worker is.

A result of an emulated board or of a worker itself depends on nothing but the inputs of its action, so that it is kept
in the cache and not run again. A device is a resource of its worker, ``board:<target>``, which one task has at a time,
and its results are never kept: a board may be another one tomorrow.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mlfbuild import verify
from mlfbuild.cache import ResultCache, shared_cache
from mlfbuild.core import MlfError, read_bytes, sha256
from mlfbuild.farm import FarmResult, FarmSettings, FarmTask, program_versions
from mlfbuild.jobs import Action, FarmWork, Progress, board_resource, programs_of, read_files, run_on_farm, tree_files
from mlfbuild.usecases.verify.jobs import REPORT, VerifyJob


def can_travel(job: VerifyJob) -> bool:
    """Return whether a worker can verify ``job``: test firmware that requires no library of this machine."""
    return job.image is None and not job.target.providers


def verified_on_farm(
    jobs: Sequence[VerifyJob], root: Path, settings: FarmSettings, watch: Progress
) -> dict[int, verify.VerifyReport | MlfError]:
    """Return number in ``jobs`` -> report or error of those that can travel, whose models have been built.

    ``root`` is the project's folder. Raises as ``run_on_farm``.
    """
    found: dict[int, verify.VerifyReport | MlfError] = {}
    travelling = {number: job for number, job in enumerate(jobs) if can_travel(job)}
    programs = {name for job in travelling.values() for name in programs_of(job.target)}
    versions = program_versions(sorted(programs))
    works: dict[int, FarmWork] = {}
    for number, job in travelling.items():
        action = _action(job, versions)
        known = _kept(job, action)
        if known is None:
            end = functools.partial(_end, job, action, watch, functools.partial(found.__setitem__, number))
            works[number] = FarmWork(_task(job, action, root), job.task, end, "could not be checked")
        else:
            watch.start(job.task)
            found[number] = known
            watch.finish(job.task, "passed (from the cache)")
    errors = run_on_farm(settings, works.values(), watch, programs)
    return found | {number: errors[place] for place, number in enumerate(works) if place in errors}


def _end(
    job: VerifyJob,
    action: Action,
    watch: Progress,
    found: Callable[[verify.VerifyReport], None],
    result: FarmResult,
) -> None:
    report = _read(result.outputs[REPORT])
    found(report)
    if report.passed:
        watch.finish(job.task, f"passed on {result.worker}")
        _keep(job, action, result)
    else:
        watch.fail(job.task, "FAILED")


def _task(job: VerifyJob, action: Action, root: Path) -> FarmTask:
    return FarmTask(
        key=action.key,
        title=f"verify {job.title}",
        function="mlfbuild.usecases.verify.verifying:verify_here",
        argument=job,
        root=root,
        # The model file is only read if an output is wrong, to look for the operator.
        files=[job.vectors, *tree_files(job.model, job.target), *read_files(job.model)],
        resources=board_resource(job.target),
    )


def _action(job: VerifyJob, versions: Mapping[str, str]) -> Action:
    files = {"archive": job.model.archive, "vectors": job.vectors}
    digests = {name: sha256(read_bytes(path, name)) for name, path in files.items()}
    toolchains = {path.name: sha256(read_bytes(path, "toolchain file")) for path in job.target.toolchain_files}
    unpacked = {"settings": job.settings(), "tree": job.model.unpack_settings(), "timeout": str(job.timeout)}
    return Action("verify", {**digests, **toolchains, **unpacked, **versions})


def _kept(job: VerifyJob, action: Action) -> verify.VerifyReport | None:
    cache = _cache_of(job)
    found = cache.fetch(action.key) if cache else None
    try:
        return _read(found.outputs[REPORT]) if found else None
    except (ValueError, LookupError, TypeError):  # who may write to the cache may write anything
        return None


def _keep(job: VerifyJob, action: Action, result: FarmResult) -> None:
    cache = _cache_of(job)
    if cache is not None:
        cache.store(action.key, result.outputs, worker=result.worker, seconds=result.seconds)


def _cache_of(job: VerifyJob) -> ResultCache | None:
    keys = job.model.cache
    return None if keys is None or job.target.runner is not None else shared_cache(keys, lambda _: None)


def _read(data: bytes) -> verify.VerifyReport:
    found = json.loads(data)
    wrong = tuple((int(case), int(output)) for case, output in found["wrong"])
    lines = {name: tuple(map(str, found[name])) for name in ("problems", "remarks")}
    return verify.VerifyReport(**{**found, **lines, "wrong": wrong})
