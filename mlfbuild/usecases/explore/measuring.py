"""Measure one point, whose archives have been made: sizes of linked code, instructions, cycles, and accuracy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mlfbuild.archive import open_archive, pack_archive
from mlfbuild.core import UsageError, package_fingerprint, sha256
from mlfbuild.evaluation import METRICS
from mlfbuild.executor import chosen_module, ram_size
from mlfbuild.exploration import Setting
from mlfbuild.farm import program_versions
from mlfbuild.jobs import (
    Action,
    ProfileJob,
    finish_target,
    flat,
    hash_of,
    programs_of,
    target_dependencies,
    tree_files,
    unpack_job,
)
from mlfbuild.report import ARENA, STATE, ModelRun, Owner, any_image_sizes, runs_of
from mlfbuild.usecases.evaluate.evaluating import evaluate_action, evaluate_job
from mlfbuild.usecases.evaluate.jobs import EvaluateJob, evaluated_files

RESULT = "explored.json"
"""The output of a measurement, for workers and in the cache."""


@dataclass(frozen=True)
class MeasureJob:
    """The model of one point for each of its targets."""

    settings: Mapping[str, Setting]
    profiles: tuple[ProfileJob, ...]
    evaluate: EvaluateJob | None

    @property
    def files(self) -> list[Path]:
        """The files that a worker needs."""
        found = [file for job in self.profiles for file in (*tree_files(job.model, job.target), *job.vectors.values())]
        if self.evaluate is not None:
            found += evaluated_files(self.evaluate)
        return list(dict.fromkeys(found))

    @property
    def can_travel(self) -> bool:
        """Whether a worker of a farm can measure it: it needs no library and no module of this machine."""
        own = self.evaluate is not None and self.evaluate.keys.metric not in METRICS
        return not own and not any(job.target.providers for job in self.profiles)


def measure_action(job: MeasureJob) -> Action:
    """Return everything that decides the figures of ``job``: equal code on equal targets is measured once.

    Raises as ``evaluate_action`` and ``data_digest``.
    """
    inputs: dict[str, Any] = {"mlfbuild": package_fingerprint()}
    for each in job.profiles:
        target = each.target
        files = [*target.toolchain_files, *each.vectors.values()]
        inputs[target.name] = {
            "code": _code_digest(each.model.archive),
            "digests": sorted(hash_of(path) for path in files),
            "tree": each.model.unpack_settings(),
            "board": repr(target.run_board),
            "mcu": repr(target.mcu),
            "placed": [asdict(section) for section in target.placed],
            **program_versions(sorted(set(programs_of(target)))),
        }
    if job.evaluate is not None:
        limits = {name: value for name, value in asdict(job.evaluate.keys).items() if name != "data"}
        inputs["evaluate"] = {**evaluate_action(job.evaluate).inputs, "archive": "", "keys": repr(limits)}
    return Action("explore", dict(flat(inputs)))


def _code_digest(path: Path) -> str:
    """Return the hash of an archive without remarks, which differ between options that change nothing else."""
    library = open_archive(path)
    modules = tuple(replace(module, notes=()) for module in library.modules)
    try:
        return sha256(pack_archive(replace(library, modules=modules)))
    except UsageError:  # of another compiler, in a version that is not written
        return hash_of(path)


def measure_here(job: MeasureJob) -> dict[str, bytes]:
    """Measure ``job`` in this process; return its figures as JSON.

    Raises as ``unpack_job``, ``runs_of`` and ``evaluate_job``.
    """
    found: dict[str, Any] = {"targets": {each.target.name: _figures(each) for each in job.profiles}}
    if job.evaluate is not None:
        report = evaluate_job(job.evaluate)
        found |= {"accuracy": report.result.value, "missed": list(report.missed.values())}
    return {RESULT: json.dumps(found).encode()}


def _figures(job: ProfileJob) -> dict[str, int]:
    """Return the figures of a model on one target, of the test firmware that runs it."""
    only = replace(job.target, models=(job.model,), others=())
    unpack_job(job.model)
    finish_target(only, target_dependencies(only))
    runs = runs_of(job, "", 1)
    names = [run.profile.module for run in runs]
    owners = [owner for name in names for owner in any_image_sizes(_image(job, name)).sizes.models]
    figures = {
        "flash": sum(owner.flash for owner in owners),
        "ram": sum(owner.ram for owner in owners) + _of_callers(job, names, owners),
        "stack": max(run.profile.stack for run in runs),
        "instructions": sum(run.profile.instructions for run in runs),
    }
    return {**figures, **_modelled(runs)}


def _of_callers(job: ProfileJob, modules: Sequence[str], owners: Sequence[Owner]) -> int:
    """Return the bytes of workspaces that the firmware passes to a model, as with the option ``io: arena``."""
    library, where = open_archive(job.model.archive), str(job.model.archive)
    needed = sum(ram_size(chosen_module(library, name, where)) for name in modules)
    return max(0, needed - sum(owner.of_kind(kind) for owner in owners for kind in (ARENA, STATE)))


def _image(job: ProfileJob, module: str) -> Path:
    return job.folder / module / "build" / "verify.elf"


def _modelled(runs: Sequence[ModelRun]) -> dict[str, int]:
    """Return cycles and latency of ``runs`` if they are modelled."""
    part = runs[0].profile.part
    cycles = [run.profile.cycles for run in runs]
    if part is None or None in cycles:
        return {}
    total = sum(each.total for each in cycles if each is not None)
    return {"cycles": total, "latency": part.latency(total)}
