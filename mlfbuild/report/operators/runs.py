"""Instructions and cycles of each model's operators on emulated boards: build test firmware, run it, count once.

Cycles are also measured on the device of a model's target, and kept for reports. The hook before each operator is in
the code only if the model has ``options: {hook: true}``. For the measurement, the native compiler therefore compiles
the model again with this option; the kernels are the same. mlfbuild's executor of graphs also calls a hook. Other
modules are measured as a whole.
"""

from __future__ import annotations

import contextlib
import functools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.archive import open_archive, open_archive_with_id
from mlfbuild.compilers import HOOK, compiler_called
from mlfbuild.core import (
    CheckFailedError,
    MlfError,
    OnProgress,
    UnsupportedModelError,
    find_tool,
    listed,
    make_folder,
    no_progress,
    package_fingerprint,
    read_bytes,
    sha256,
    write_atomic,
)
from mlfbuild.core.keys import size_text
from mlfbuild.executor import callable_modules, chosen_module, module_network, ram_size
from mlfbuild.jobs import (
    BUILD_FOLDER,
    ProfileJob,
    Progress,
    TargetJob,
    modelled_sections,
    profile_jobs,
    run_placement,
    target_dependencies,
    watched,
)
from mlfbuild.jobs.tree import DEPENDENCIES_FOLDER, RECORD, TreeSettings, subject_of, unpack, write_dependencies
from mlfbuild.library import Library, Module, Network, dtype_called, symbol_prefix
from mlfbuild.project import Project
from mlfbuild.report.operators.operator_runs import ModelRun, operator_runs
from mlfbuild.report.operators.profile import Profile, profile_module
from mlfbuild.report.sizes.image import Image, read_image
from mlfbuild.targets import Board
from mlfbuild.verify import (
    SECONDS_A_CASE,
    Connection,
    CycleRuns,
    Spread,
    chosen_counter,
    connected,
    control_registers,
    device_of,
    load_inputs,
    measure_cycles,
)
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
    found = replace(found, registers=control_registers(connection.runner, target.mcu))
    record = {"key": _measurement_key(job, run.inputs), "measured": asdict(found)}
    write_atomic(folder / _RECORD, json.dumps(record).encode())
    return with_measured(run, found)


def last_measured(run: ModelRun, job: ProfileJob) -> ModelRun:
    """Return ``run`` with the cycles that ``mlfbuild profile`` measured last, if the model has not changed since."""
    path = job.folder / run.profile.module / "measured" / _RECORD
    try:
        found = json.loads(path.read_bytes())
        if job.target.runner is None or found["key"] != _measurement_key(job, run.inputs):
            return run
        measured = found["measured"]
        spreads = {"total": Spread(**measured["total"])}
        operators = tuple(Spread(**each) for each in measured["operators"])
        registers = {int(address): word for address, word in measured["registers"].items()}
        return with_measured(run, CycleRuns(**{**measured, **spreads, "operators": operators, "registers": registers}))
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


def _measurement_key(job: ProfileJob, inputs: str) -> str:
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
    settings = TreeSettings(job.model.model, job.model.request.placement, optimize=job.model.optimize)
    unpack(library, folder / "tree", archive_id=archive_id, settings=settings)
    write_dependencies(folder / DEPENDENCIES_FOLDER, target_dependencies(job.target))
    return chosen_module(library, name, str(job.model.archive))


Array = npt.NDArray[Any]

MEASURED_RUNS = 5
"""Default of the runs that a device measures."""


def profiles(
    project: Project, targets: Sequence[TargetJob], progress: Progress | None = None, runs: int = MEASURED_RUNS
) -> Iterator[ModelRun]:
    """Yield one run of each module of each model of ``targets``, whose trees have been built, on each board.

    A model runs the first case of its vectors, or zeros if it has none. If the target has a device, ``runs`` runs are
    also measured there. Raises ``CheckFailedError`` if no target has a board, and as ``model_runs``.
    """
    watch = progress or Progress()
    if not any(target.run_board for target in targets):
        raise nothing_to_profile([target.name for target in targets], project.path)
    for target in targets:
        jobs = profile_jobs(project, target, project.root / BUILD_FOLDER)
        with _device(target, f"{project.path}: targets.{target.name}.runner") as connection:
            for job in jobs:
                yield from watched_runs(job, watch, connection, runs)


def runs_of(job: ProfileJob, place: str, runs: int) -> list[ModelRun]:
    """Return the runs of the job's model, measured on the device of its target if it has one.

    ``place`` is that of the target's runner in the project file. Raises as ``model_runs``.
    """
    with _device(job.target, place) as connection:
        return list(model_runs(job, connection=connection, runs=runs))


@contextlib.contextmanager
def _device(target: TargetJob, place: str) -> Iterator[Connection | None]:
    """Connect to the device of ``target`` for the block, if it has one."""
    if target.runner is None:
        yield None
        return
    device = device_of(target, place)
    chosen_counter(target.cpu, device.keys.counter, place)  # before anything is connected
    with connected(device) as connection:
        yield connection


def nothing_to_profile(targets: Sequence[str], place: object = "") -> CheckFailedError:
    """Return the error for ``targets`` (names) without an emulated board, or for a project without firmware."""
    return CheckFailedError(
        "nothing-to-profile",
        place=place,
        reason=f"no board that QEMU emulates for {listed(targets)}" if targets else "the project has no firmware",
        hint="add `board` or `mcu` to a target" if targets else "use `mlfbuild profile`, which needs no firmware",
    )


def watched_runs(
    job: ProfileJob, watch: Progress, connection: Connection | None = None, runs: int = MEASURED_RUNS
) -> list[ModelRun]:
    """Return the runs of the job's model and show their progress; raises as ``model_runs``.

    ``watch`` gets one task for the model. Without ``connection``, runs are counted on the emulator only, and
    ``runs`` is not used.
    """
    task = job.model.task("profile")
    with watched(watch, task):
        found = list(model_runs(job, functools.partial(watch.step, task), connection, runs))
    watch.finish(task, "measured" if connection else "counted")
    return found


def model_runs(
    job: ProfileJob,
    on_progress: OnProgress = no_progress,
    connection: Connection | None = None,
    runs: int = MEASURED_RUNS,
) -> Iterator[ModelRun]:
    """Yield one run of each module of the job's model, whose tree has been built.

    CMake and Ninja bring the test firmware up to date each time; it runs only if it or its input changed since the last
    count. On the device of ``connection``, ``runs`` runs are measured; without one, runs have the last measurement.
    ``on_progress`` receives progress. Raises ``ToolNotFoundError``, ``InputFileError`` for vectors that do not fit,
    ``UnsupportedModelError`` if a module cannot be called, and ``ProcessFailedError`` if its run fails.
    """
    board = job.target.run_board
    assert board is not None  # the verb has refused targets without one
    emulator = find_tool(board.emulator)  # before anything is built
    where = str(job.model.archive)
    library = open_archive(job.model.archive)
    for name in [called.name for module in library.modules for called in callable_modules(module)]:
        module = chosen_module(library, name, where)
        run, inputs = _run(job, module, board, emulator, on_progress)
        if connection is None:
            run = last_measured(run, job)
        else:
            run = measured_run(run, job, inputs, connection, runs, on_progress)
        yield _as_set(run, job, module, board, emulator, on_progress)


def _as_set(
    run: ModelRun, job: ProfileJob, module: Module, board: Board, emulator: Path, on_progress: OnProgress
) -> ModelRun:
    """Return ``run`` with cycles that are modelled for the settings that the device had when it was measured."""
    mcu, measured = job.target.mcu, run.measured
    if mcu is None or measured is None or not measured.registers:
        return run
    found = mcu.as_set(measured.registers.__getitem__)
    other = "" if found == mcu else f"; the description of {mcu.name} has {mcu.settings()}"
    if found != mcu:
        as_set = replace(job, target=replace(job.target, mcu=found))
        run, _ = _run(as_set, module, board, emulator, on_progress, record="counts_as_set.json")
        run = with_measured(run, measured)
    return replace(run, settings=f"{found.settings()}{other}")


def _run(
    job: ProfileJob,
    module: Module,
    board: Board,
    emulator: Path,
    on_progress: OnProgress,
    record: str = "counts.json",
) -> tuple[ModelRun, Sequence[Array]]:
    """Return the run on the emulated board, which is kept in the file ``record``, and its inputs."""
    target, folder = job.target, job.folder / module.name
    placement = run_placement(target, job.model, job.folder)
    image = build_harness(
        job.model.tree, module, board, target.toolchain, folder, twice=False, placement=placement,
        on_progress=on_progress,
    )  # fmt: skip
    # Before the run: cycles of a memory that the data cannot be in would be wrong, and a run takes seconds.
    _check_memories(job, module, image)
    path = job.vectors.get("") or job.vectors.get(module.name)
    inputs = _first_case(path, module)
    places = placed_extents(job, image)
    key = _key(image, inputs, emulator, f"{target.mcu} {places}")
    profile = _recorded(folder / record, key)
    if profile is None:
        on_progress("running", 0, 0)
        profile = profile_module(module, image, board, inputs, SECONDS_A_CASE, target.mcu, places)
        write_atomic(folder / record, json.dumps({"key": key, "profile": asdict(profile)}).encode())
    operators = operator_runs(profile, module_network(module), target.cpu)
    return ModelRun(target.name, job.model.model, path.name if path else "", profile, operators), inputs


def _first_case(path: Path | None, module: Module) -> list[Array]:
    """Return the inputs of one case: arrays (1, elements) in call order."""
    if path is not None:
        return [array[:1] for array in load_inputs(path, module)[1]]
    # Zeros: the instructions of most kernels do not depend on the values, and no data of the user is needed.
    types = [(dtype_called(tensor.dtype), tensor.size) for tensor in module.inputs]
    return [np.zeros((1, size // dtype.itemsize), dtype) for dtype, size in types]


def _key(image: Path, inputs: Sequence[Array], emulator: Path, modelled: str) -> str:
    """Return the hash of everything that decides a run: image, input, emulator, this package, and what is modelled."""
    # Time and size of QEMU stand for its version: starting it to ask would take longer than reading the record.
    program = emulator.stat()
    parts = [sha256(read_bytes(image, "image")), *(sha256(array.tobytes()) for array in inputs)]
    parts += [f"{program.st_size} {program.st_mtime_ns}", package_fingerprint(), modelled]
    return sha256("\n".join(parts).encode())


def _recorded(path: Path, key: str) -> Profile | None:
    """Return the last profile if it was counted with the same ``key``."""
    try:
        found = json.loads(path.read_bytes())
        return Profile.from_dict(found["profile"]) if found["key"] == key else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _check_memories(job: ProfileJob, module: Module, image: Path) -> None:
    """Raise ``UnsupportedModelError`` if the microcontroller has no room for the module's constants or RAM.

    Their cycles would be those of a memory that they cannot be in.
    """
    mcu = job.target.mcu
    if mcu is None:
        return
    first, second = list(mcu.memories)[:2]
    found = read_image(image)
    extents = {section.name: section.size for section in found.sections}
    placed = [
        (section.memory, memory, sum(extents.get(name, 0) for name in section.names))
        for section, memory in modelled_sections(job.target, job.model)
    ]
    # The first memory of a part is its flash, the second its RAM (targets/data).
    taken = Counter({first: sum(main.constants_size for main in module.main)})
    taken[second] += ram_size(module) + _copied(job, module, found)
    for is_memory, memory, size in placed:
        # Counted above for the default memory, so a placed section is moved to its own.
        taken[second if is_memory else first] -= size
        taken[memory] += size
    for memory, size in taken.items():
        if size > mcu.memories[memory].size:
            raise UnsupportedModelError(
                "microcontroller-too-small",
                place=f"{module.name} for {job.target.name}",
                reason=f"takes {size_text(size)} of {memory}, but that of {mcu.name} has "
                f"{size_text(mcu.memories[memory].size)}",
                hint="place code or data in another memory, or choose another mcu",
            )


def _copied(job: ProfileJob, module: Module, image: Image) -> int:
    """Return the bytes of the module's code and constants that the firmware's start-up code copies to RAM."""
    code = job.model.request.placement.code if job.target.board is None else None
    sections = [section for section in image.sections if section.copied or section.name == code]
    return sum(
        symbol.size
        for symbol in image.symbols
        if (symbol.function or symbol.name.startswith((symbol_prefix(module.name), f"mlf_{module.name}_")))
        and any(0 <= symbol.address - section.address < section.size for section in sections)
    )


def placed_extents(job: ProfileJob, image: Path) -> list[tuple[int, int, str]]:
    """Return the first and last address of each placed section, with its memory of the microcontroller.

    The scripts of boards copy only ``.ramfunc`` to RAM. Code in a section that the firmware's own script copies counts
    as the second memory, wherever the linker put it.
    """
    target, code = job.target, job.model.request.placement.code
    sections = modelled_sections(job.target, job.model)
    places = [(name, memory) for section, memory in sections for name in section.names]
    if target.mcu is not None and target.board is None and code is not None:
        places.append((code, list(target.mcu.memories)[1]))
    extents = {section.name: section for section in read_image(image).sections}
    return [
        (extent.address, extent.address + extent.size - 1, memory)
        for name, memory in places
        if (extent := extents.get(name)) is not None  # the model has nothing of this kind, or .ramfunc is in .data
    ]
