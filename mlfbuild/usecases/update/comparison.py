"""Compare the archives of two versions of a model: interface, sizes, and instructions on emulated boards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild import report
from mlfbuild.archive import open_archive
from mlfbuild.archive.interface import header_file
from mlfbuild.core import ToolNotFoundError
from mlfbuild.jobs import BUILD_FOLDER, CompileJob, Progress, TargetJob, profile_jobs
from mlfbuild.library import Library, TensorInfo
from mlfbuild.library.cgen import member_name
from mlfbuild.project import Project
from mlfbuild.report.budgets import check_profiles
from mlfbuild.usecases.update.model_update import ModelUpdate, PortDifference, UpdatedFigure
from mlfbuild.usecases.update.outputs import output_differences


class Side:
    """One version of the model: its archive for each target."""

    def __init__(self, project: Project, targets: Sequence[TargetJob], build: Path | None = None) -> None:
        self.project = project
        self.targets = targets
        self.build = build or project.root / BUILD_FOLDER
        self.jobs: list[CompileJob] = [job for target in targets for job in target.models]
        self.libraries: list[Library] = [open_archive(job.archive) for job in self.jobs]

    @property
    def archives(self) -> list[bytes]:
        """The content of each archive."""
        return [job.archive.read_bytes() for job in self.jobs]

    def runs(self, watch: Progress) -> Iterator[report.ModelRun]:
        """Yield the runs of the model on the boards of its targets."""
        for target in self.targets:
            for job in profile_jobs(self.project, target, self.build):
                yield from report.watched_runs(job, watch)


def compared(
    name: str,
    before: Side,
    now: Side,
    vectors: Mapping[str, Path],
    watch: Progress,
    *,
    given: bool,
    in_place: bool = False,
) -> ModelUpdate:
    """Return the differences between two versions of the model ``name``; ``vectors`` are by module.

    If the file was replaced ``in_place`` and a build of the new version came first, nothing is run.
    If the vectors are ``given`` for the new version, raises ``CheckFailedError`` if it does not have their outputs.
    Raises ``OverBudgetError`` for the instructions of the new version.
    """
    interface = [
        difference
        for old, new in zip(before.libraries, now.libraries, strict=True)
        for difference in _interface(old, new)
    ]
    found = ModelUpdate(
        name,
        before.project.models[name].source,
        tuple(dict.fromkeys(interface)),
        _headers(before.libraries) == _headers(now.libraries),
        tuple(_sizes(before, now)),
        (),
        (),
        _hint(before.jobs[0], interface),
    )
    if found.problem is not None:  # the inputs of one version may not fit the other
        return replace(found, notes=("instructions and outputs were not compared, because the interface differs",))
    if in_place and not given and before.archives == now.archives:  # the vectors may be of the version before it
        return replace(found, notes=("the last build has this version already, so there is nothing to compare",))
    notes: list[str] = []
    instructions = tuple(_instructions(before, now, watch, notes))
    outputs = tuple(output_differences(before.libraries[0], now.libraries[0], vectors, notes, given=given))
    return replace(found, figures=found.figures + instructions, outputs=outputs, notes=tuple(notes))


def _hint(job: CompileJob, interface: Sequence[PortDifference]) -> str:
    named = {each.port: each for each in interface if each.breaking}
    # As many names as before, so that the names of the old version can be given to the new one.
    renamed = all(each.before.count(",") == each.now.count(",") for each in named.values())
    if job.compiler == "native" and not named.keys() - {"inputs", "outputs"} and renamed:
        chosen = ", ".join(f"{kind}: [{each.before}]" for kind, each in named.items())
        return f"add `interface: {{{chosen}}}` to the model, or change the firmware and add --accept"
    return "correct the model, or change the firmware and add --accept"


def _headers(libraries: Iterable[Library]) -> list[bytes]:
    files = (header_file(module) for library in libraries for module in library.modules)
    return [b"" if file is None else file.data for file in files]


def _interface(before: Library, now: Library) -> Iterator[PortDifference]:
    names = [[module.name for module in library.modules] for library in (before, now)]
    if names[0] != names[1]:
        yield PortDifference("modules", ", ".join(names[0]), ", ".join(names[1]), breaking=True)
        return
    for old, new in zip(before.modules, now.modules, strict=True):
        yield from _ports("input", old.inputs, new.inputs)
        yield from _ports("output", old.outputs, new.outputs)


def _ports(kind: str, before: Sequence[TensorInfo], now: Sequence[TensorInfo]) -> Iterator[PortDifference]:
    members = [[member_name(tensor.name) for tensor in side] for side in (before, now)]
    if members[0] != members[1]:
        yield PortDifference(f"{kind}s", ", ".join(members[0]), ", ".join(members[1]), breaking=True)
    # The project file chooses the names in C, so they stay if the new version has two inputs in another order. The
    # firmware would still compile, and fill each of them with the values of the other.
    in_file = [[tensor.source_name or tensor.name for tensor in side] for side in (before, now)]
    if members[0] == members[1] and in_file[0] != in_file[1] and sorted(in_file[0]) == sorted(in_file[1]):
        yield PortDifference(
            f"order of {kind}s in the file", ", ".join(in_file[0]), ", ".join(in_file[1]), breaking=True
        )
    if len(before) != len(now):
        return
    for name, old, new in zip(members[0], before, now, strict=True):
        types = [f"{tensor.dtype} {_shape(tensor)}" for tensor in (old, new)]
        if types[0] != types[1]:
            yield PortDifference(f"{kind} {name}", types[0], types[1], breaking=True)
        scales = [f"scale {tensor.scale}, zero point {tensor.zero_point}" for tensor in (old, new)]
        if scales[0] != scales[1]:
            yield PortDifference(f"{kind} {name}", scales[0], scales[1], breaking=False)


def _shape(tensor: TensorInfo) -> str:
    return f"of {tensor.size} bytes" if tensor.shape is None else str(list(tensor.shape))


def _sizes(before: Side, now: Side) -> Iterator[UpdatedFigure]:
    for job, old, new in zip(before.jobs, before.libraries, now.libraries, strict=True):
        figures = [_memory(library) for library in (old, new)]
        for name in figures[0]:
            if any(side[name] for side in figures):
                yield UpdatedFigure(job.target, name, figures[0][name], figures[1][name])


def _memory(library: Library) -> dict[str, int]:
    main = [entry for module in library.modules for entry in module.main]
    macs = [module.network.macs for module in library.modules if module.network]
    return {
        "constants": sum(entry.constants_size for entry in main),
        "workspace": sum(entry.workspace_size for entry in main),
        "state": sum(module.state_size for module in library.modules),
        "MACs": sum(count or 0 for count in macs),
    }


def _instructions(before: Side, now: Side, watch: Progress, notes: list[str]) -> Iterator[UpdatedFigure]:
    """Yield the figures of a run on each target; raises ``OverBudgetError`` for those of the new version."""
    if not any(target.run_board for target in now.targets):
        notes.append("instructions were not counted: no target has a board that QEMU emulates, or an mcu")
        return
    try:
        runs = [list(side.runs(watch)) for side in (before, now)]
    except ToolNotFoundError as error:
        notes.append(f"instructions were not counted: {error}")
        return
    check_profiles(now.project, runs[1])
    for target in (target.name for target in now.targets if target.run_board):
        old, new = (report.figures_of([run for run in side if run.target == target])[""] for side in runs)
        for key, name in (("instructions", "instructions"), ("cycles", "modelled cycles")):
            if key in old and key in new:
                yield UpdatedFigure(target, name, old[key], new[key])
