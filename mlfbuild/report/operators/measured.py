"""Measure the cycles of a model on the device of its target, and keep them for reports.

The hook before each operator is in the code only if the model has ``options: {hook: true}``. For the measurement, the
native compiler therefore compiles the model again with this option; the kernels are the same. mlfbuild's executor of
graphs also calls a hook. Other modules are measured as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy.typing as npt

from mlfbuild.archive import open_archive_with_id
from mlfbuild.compilers import HOOK, compiler_called
from mlfbuild.core import MlfError, OnProgress, make_folder, package_fingerprint, read_bytes, sha256, write_atomic
from mlfbuild.executor import chosen_module, module_network
from mlfbuild.jobs import ProfileJob, run_placement, target_dependencies
from mlfbuild.jobs.tree import DEPENDENCIES_FOLDER, RECORD, subject_of, unpack, write_dependencies
from mlfbuild.library import Library, Module, Network
from mlfbuild.report.operators.operator_runs import ModelRun
from mlfbuild.verify import SECONDS_A_CASE, Connection, CycleRuns, Spread, chosen_counter, measure_cycles
from mlfbuild.verify.emulator import build_harness

_RECORD = "measured.json"


def measured_run(
    run: ModelRun,
    job: ProfileJob,
    inputs: Sequence[npt.NDArray[Any]],
    connection: Connection,
    runs: int,
    on_progress: OnProgress,
) -> ModelRun:
    """Return ``run`` with the cycles of ``runs`` runs on the device of ``connection``, and keep them for reports.

    ``inputs`` are the case that was counted. Raises as ``build_harness`` and ``measure_cycles``.
    """
    folder = job.folder / run.profile.module / "measured"
    device, target = connection.device, job.target
    counter = chosen_counter(target.cpu, device.keys.counter, device.place)
    module = _hooked_tree(job, run.profile.module, folder)
    image = build_harness(
        folder / "tree", module, device.board, target.toolchain, folder, twice=False, device=device, counter=counter,
        placement=run_placement(target, job.model, job.folder, on_device=True), on_progress=on_progress,
    )  # fmt: skip
    subject = subject_of(module, device.name, device.ram_for_data)
    clock = target.mcu.clock if target.mcu else None
    found = measure_cycles(
        connection, image, subject, inputs, runs, counter, folder, SECONDS_A_CASE, clock=clock, on_progress=on_progress
    )
    found = _of_calls(run, found, module_network(module))
    record = {"key": _key(job, run.inputs), "measured": asdict(found)}
    write_atomic(folder / _RECORD, json.dumps(record).encode())
    return with_measured(run, found)


def last_measured(run: ModelRun, job: ProfileJob) -> ModelRun:
    """Return ``run`` with the cycles that ``mlfbuild profile`` measured last, if the model has not changed since."""
    path = job.folder / run.profile.module / "measured" / _RECORD
    try:
        found = json.loads(path.read_bytes())
        if job.target.runner is None or found["key"] != _key(job, run.inputs):
            return run
        measured = found["measured"]
        spreads = {"total": Spread(**measured["total"])}
        operators = tuple(Spread(**each) for each in measured["operators"])
        return with_measured(run, CycleRuns(**{**measured, **spreads, "operators": operators}))
    # A measurement that cannot be read is not shown; nothing else depends on it.
    except (OSError, ValueError, LookupError, TypeError, AttributeError, MlfError):
        return run


def with_measured(run: ModelRun, found: CycleRuns) -> ModelRun:
    """Return ``run`` with ``found``, and its operators with their parts if ``found`` has one for each of them."""
    operators = run.operators
    if found.operators and len(found.operators) == len(operators):
        operators = tuple(replace(each, measured=one) for each, one in zip(operators, found.operators, strict=True))
    return replace(run, measured=found, operators=operators)


def _of_calls(run: ModelRun, found: CycleRuns, network: Network | None) -> CycleRuns:
    """Return ``found`` with the operators that ``run`` has: hooks are also called before those without a function."""
    if network is not None and len(found.operators) == len(network.operators):
        numbers = [each.number for each in run.operators if each.number is not None]
        return replace(found, operators=tuple(found.operators[number] for number in numbers))
    return found if len(found.operators) == len(run.operators) else replace(found, operators=())


def _key(job: ProfileJob, inputs: str) -> str:
    """Return the hash of everything that decides a measurement, besides the device itself."""
    setup = job.target.runner.setup if job.target.runner else None
    files = [*job.vectors.values(), *([setup] if setup else [])]
    parts = [read_bytes(job.model.tree / RECORD, "record"), *(read_bytes(path, "file") for path in files)]
    # The runner is part of the key, because another board may have another clock or flash.
    own = f"{job.target.runner} {job.target.cpu.name} {inputs} {package_fingerprint()}"
    return sha256(b"".join(sha256(part).encode() for part in (*parts, own.encode())))


def _hooked_tree(job: ProfileJob, name: str, folder: Path) -> Module:
    """Unpack the model into ``folder / "tree"``, with hooks if that is possible, and return its module ``name``."""
    library, archive_id = open_archive_with_id(job.model.archive)
    module = chosen_module(library, name, str(job.model.archive))
    if not module.hook and job.model.compiler == "native":
        options = {**job.model.request.options, HOOK: True}
        library = compiler_called("native").compile(replace(job.model.request, options=options))
    elif not module.hook:
        hooked = [replace(each, hook=each.hook or each.executor == "graph") for each in library.modules]
        library = Library(tuple(hooked))
    make_folder(folder)
    placement, optimize = job.model.request.placement, job.model.optimize
    unpack(
        library, folder / "tree", archive_id=archive_id, model=job.model.model, placement=placement, optimize=optimize
    )
    write_dependencies(folder / DEPENDENCIES_FOLDER, target_dependencies(job.target))
    return chosen_module(library, name, str(job.model.archive))
