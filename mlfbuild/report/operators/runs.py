"""Instructions of each model's operators on the boards of a project: build test firmware, run it, count once."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.archive import open_archive
from mlfbuild.build import BUILD_FOLDER, ProfileJob, Progress, Silent, TargetJob, Task, profile_jobs, watched
from mlfbuild.core import (
    CheckFailedError,
    Tell,
    find_tool,
    listed,
    package_fingerprint,
    read_bytes,
    sha256,
    tell_nobody,
    write_atomic,
)
from mlfbuild.executor import callable_modules, chosen_module, module_network
from mlfbuild.library import Module, dtype_called
from mlfbuild.project import Project
from mlfbuild.report.operators.model_run import ModelRun
from mlfbuild.report.operators.operator_runs import operator_runs
from mlfbuild.report.operators.profile import CallCount, Profile, profile_module
from mlfbuild.report.text.runs import run_text
from mlfbuild.timing import CycleCount
from mlfbuild.verify import SECONDS_A_CASE, load_inputs
from mlfbuild.verify.emulator import build_harness

__all__ = ["ModelRun", "Profile", "model_runs", "profiles", "run_text", "watched_runs"]

Array = npt.NDArray[Any]

_EMULATOR = "qemu-system-arm"


def profiles(project: Project, targets: Sequence[TargetJob], progress: Progress | None = None) -> Iterator[ModelRun]:
    """Yield one run of each module of each model of ``targets``, whose trees have been built, on each board.

    A model runs the first case of its vectors, or zeros if it has none. Raises ``CheckFailedError`` if no target has a
    board, and as ``model_runs``.
    """
    watch = progress or Silent()
    if not any(target.board for target in targets):
        raise nothing_to_profile([target.name for target in targets], project.path)
    for job in (job for target in targets for job in profile_jobs(project, target, project.root / BUILD_FOLDER)):
        yield from watched_runs(job, watch)


def nothing_to_profile(targets: Sequence[str], place: object = "") -> CheckFailedError:
    """Return the error for ``targets`` (names) without an emulated board."""
    return CheckFailedError(
        "nothing-to-profile",
        place=place,
        reason=f"no board that QEMU emulates for {listed(targets) or 'any firmware'}",
        hint="add `board` to a target",
    )


def watched_runs(job: ProfileJob, watch: Progress) -> list[ModelRun]:
    """Return the runs of the job's model and show their progress; raises as ``model_runs``."""
    task = Task("profile", job.model.title, job.target.name, model=job.model.model)
    with watched(watch, task):
        runs = list(model_runs(job, functools.partial(watch.step, task)))
    watch.finish(task, "counted")
    return runs


def model_runs(job: ProfileJob, tell: Tell = tell_nobody) -> Iterator[ModelRun]:
    """Yield one run of each module of the job's model, whose tree has been built.

    CMake and Ninja bring the test firmware up to date each time; it runs only if it or its input changed since the last
    count. ``tell`` receives progress. Raises ``ToolNotFoundError``, ``InputFileError`` for vectors that do not fit,
    ``UnsupportedModelError`` if a module cannot be called, and ``ProcessFailedError`` if its run fails.
    """
    emulator = find_tool(_EMULATOR)  # before anything is built
    where = str(job.model.archive)
    library = open_archive(job.model.archive)
    for name in [called.name for module in library.modules for called in callable_modules(module)]:
        yield _run(job, chosen_module(library, name, where), emulator, tell)


def _run(job: ProfileJob, module: Module, emulator: Path, tell: Tell) -> ModelRun:
    target, folder = job.target, job.folder / module.name
    assert target.board is not None
    image = build_harness(
        job.model.tree, module, target.board, target.toolchain, folder,
        twice=False, placement=target.placement_fragment if target.placed else None, tell=tell,
    )  # fmt: skip
    path = job.vectors.get("") or job.vectors.get(module.name)
    inputs = _first_case(path, module)
    record = folder / "counts.json"
    key = _key(image, inputs, emulator)
    profile = _recorded(record, key)
    if profile is None:
        tell("running", 0, 0)
        profile = profile_module(module, image, target.board, inputs, SECONDS_A_CASE)
        write_atomic(record, json.dumps({"key": key, "profile": asdict(profile)}).encode())
    operators = operator_runs(profile, module_network(module), target.cpu)
    return ModelRun(target.name, job.model.model, path.name if path else "", profile, operators)


def _first_case(path: Path | None, module: Module) -> list[Array]:
    """Return the inputs of one case: arrays (1, elements) in call order."""
    if path is not None:
        return [array[:1] for array in load_inputs(path, module)[1]]
    types = [(dtype_called(tensor.dtype), tensor.size) for tensor in module.inputs]
    return [np.zeros((1, size // dtype.itemsize), dtype) for dtype, size in types]


def _key(image: Path, inputs: Sequence[Array], emulator: Path) -> str:
    """Return the hash of everything that decides a run: the image, its input, the emulator and this package."""
    program = emulator.stat()
    parts = [sha256(read_bytes(image, "image")), *(sha256(array.tobytes()) for array in inputs)]
    parts += [f"{program.st_size} {program.st_mtime_ns}", package_fingerprint()]
    return sha256("\n".join(parts).encode())


def _recorded(path: Path, key: str) -> Profile | None:
    """Return the last profile if it was counted with the same ``key``."""
    try:
        found = json.loads(path.read_bytes())
        profile = found["profile"]
        calls = tuple(
            CallCount(call["function"], call["instructions"], _cycles(call["cycles"])) for call in profile.pop("calls")
        )
        rest_cycles = _cycles(profile.pop("rest_cycles"))
        return Profile(calls=calls, rest_cycles=rest_cycles, **profile) if found["key"] == key else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _cycles(recorded: dict[str, int] | None) -> CycleCount | None:
    return None if recorded is None else CycleCount(**recorded)
