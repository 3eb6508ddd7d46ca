"""Replace the file of a model by a newer one, if firmware that uses the model stays right.

The archives of both versions are compared: interface, sizes, and instructions on emulated boards.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mlfbuild import report
from mlfbuild.archive import open_archive
from mlfbuild.archive.interface import header_file
from mlfbuild.core import (
    ToolNotFoundError,
    UsageError,
    quoted,
    read_bytes,
    signature_path,
    write_atomic,
    write_if_changed,
)
from mlfbuild.jobs import BUILD_FOLDER, CompileJob, Progress, TargetJob, profile_jobs, target_jobs
from mlfbuild.library import Library, TensorInfo, blob_file
from mlfbuild.library.cgen import member_name
from mlfbuild.native import SourceFiles, read_network
from mlfbuild.project import ModelSpec, Project, source_suffix
from mlfbuild.report.budgets import check_profiles
from mlfbuild.requirements import lock_path
from mlfbuild.usecases.build import build_project
from mlfbuild.usecases.lock.locking import lock_project
from mlfbuild.usecases.update.differences import ModelUpdate, PortDifference, UpdatedFigure, output_differences
from mlfbuild.usecases.vectors import renewed_vectors
from mlfbuild.verify import vectors_origin


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
    notes = list(_in_the_field(before.libraries, now.libraries))
    instructions = tuple(_instructions(before, now, watch, notes))
    outputs = tuple(output_differences(before.libraries[0], now.libraries[0], vectors, notes, given=given))
    return replace(found, figures=found.figures + instructions, outputs=outputs, notes=tuple(notes))


def _in_the_field(before: Sequence[Library], now: Sequence[Library]) -> Iterator[str]:
    """Yield whether firmware in the field can get the new version as a blob, if its parameters are replaceable."""
    old, new = ([blob_file(module, "txt") for each in side for module in each.modules] for side in (before, now))
    if any(old):
        same = "the same structure: firmware in the field can get it as a blob, see mlfbuild parameters"
        yield same if old == new else "another structure: firmware in the field needs a new image"


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


def update_model(
    project: Project,
    name: str,
    new: Path,
    targets: Sequence[str] = (),
    *,
    vectors: Path | None = None,
    check: bool = False,
    accept: bool = False,
    offline: bool = False,
    jobs: int = 1,
    progress: Progress | None = None,
) -> ModelUpdate:
    """Compare the model ``name`` with the file ``new`` on ``targets``; replace its file, and write the lock.

    ``vectors`` are those of the new version and replace the model's; without them, those that mlfbuild computed are
    computed again, and others stay, which a note says. Nothing is written with ``check``, or if the
    interface differs, which ``problem`` of the result reports, unless it is to be accepted. If ``new`` is the model's
    own file, it is compared with the archive of the last build.

    Raises ``UsageError`` for an unknown model or a file of another format, ``CheckFailedError`` if the new version does
    not have the outputs of ``vectors``, ``OverBudgetError`` for its instructions, and as ``build_project`` and
    ``lock_project``.
    """
    chosen = [target for target in target_jobs(project, targets, [name]) if target.models]
    spec = project.models[name]
    _check_file(project, spec, new, vectors)
    # Read once: what is compared and what is written are the same bytes, even if a training script writes the file
    # again.
    content = read_bytes(new, "model")
    in_place = new.exists() and spec.source.exists() and new.samefile(spec.source)
    _check_content(chosen[0].models[0], new)
    # The old version is then only in the archive of the last build, and a build now would replace it.
    if in_place:
        _check_built(chosen, new)
    else:
        build_project(chosen, lenders=target_jobs(project), jobs=jobs, progress=progress)
    # The new version is built elsewhere, so that neither the project's build folder nor its files change before the
    # comparison has succeeded.
    with tempfile.TemporaryDirectory(prefix="mlfbuild-update-") as folder:
        other = _staged(project, spec, new, content, vectors, Path(folder))
        build = Path(folder, "build")
        built = [target for target in target_jobs(other, targets, [name], build) if target.models]
        build_project(built, jobs=jobs, progress=progress)
        sides = Side(project, chosen), Side(other, built, build)
        expected, given = other.models[name].vectors, vectors is not None
        found = compared(name, *sides, expected, progress or Progress(), given=given, in_place=in_place)
    own = spec.vectors.get("")
    computed = own is not None and own.is_file() and vectors_origin(own) is not None
    found = replace(found, renewable=not given and computed)
    if check or (found.problem is not None and not accept):
        return found
    written, notes = _written(spec, None if in_place else new, content, vectors), found.notes
    if vectors is None:
        renewed, remarks = _renewed(project, name)
        written, notes = written + renewed, notes + remarks
    # With a lock file, entries of other models stay as they are; a first lock file needs all of them.
    only = [name] if lock_path(project.path).is_file() else []
    locked = lock_project(project, models=only, offline=offline, jobs=jobs, progress=progress)
    return replace(found, written=tuple(written), notes=notes, locked=locked)


def _check_file(project: Project, spec: ModelSpec, new: Path, vectors: Path | None) -> None:
    wanted = source_suffix(spec.source.name)
    if source_suffix(new.name) != wanted:
        raise UsageError(
            "update-of-another-format",
            place=new,
            reason=f"model {spec.name} is a {wanted or quoted(spec.source.name)} file",
            hint=f"name a {wanted} file, or change `source` in {project.path.name}" if wanted else "",
        )
    if vectors is not None and list(spec.vectors) != [""]:
        raise UsageError(
            "update-without-vectors",
            place=f"--vectors {vectors}",
            reason=f"model {spec.name} has {'vectors for each module' if spec.vectors else 'no vectors to replace'}",
            hint="replace them by hand" if spec.vectors else f"add `vectors` to the model in {project.path.name}",
        )


def _staged(
    project: Project, spec: ModelSpec, new: Path, content: bytes, vectors: Path | None, folder: Path
) -> Project:
    """Return ``project`` with the model ``spec`` as a copy of ``new`` in ``folder``, and with its ``vectors``."""
    staged = folder / spec.source.name  # the name is in the generated code
    write_atomic(staged, content)
    _copy_weights(new, folder)
    _copy_signature(spec, new, staged)
    chosen = spec.vectors if vectors is None else {"": vectors}
    return replace(project, models={**project.models, spec.name: replace(spec, source=staged, vectors=chosen)})


def _written(spec: ModelSpec, new: Path | None, content: bytes, vectors: Path | None) -> list[Path]:
    """Replace the file of the model by ``new``, whose bytes are ``content``, and its vectors; return what changed."""
    written = []
    if new is not None:
        write_atomic(spec.source, content)
        written = [spec.source, *_copy_weights(new, spec.source.parent), *_copy_signature(spec, new, spec.source)]
    if vectors is not None and write_if_changed(spec.vectors[""], read_bytes(vectors, "vectors file")):
        written.append(spec.vectors[""])
    return written


def _renewed(project: Project, name: str) -> tuple[list[Path], tuple[str, ...]]:
    """Compute the vectors of the model again; return the files that were written, and remarks."""
    renewed = renewed_vectors(project, name)
    if isinstance(renewed, str):
        return [], (renewed,) if renewed else ()
    return list(renewed.written), renewed.notes


def _copy_weights(model: Path, folder: Path) -> list[Path]:
    """Copy the files with weights of ``model`` to the same places in ``folder``; return the copies."""
    copies = []
    for name, path in SourceFiles(model).weights.items():
        copies.append(folder / name)
        copies[-1].parent.mkdir(parents=True, exist_ok=True)
        write_atomic(copies[-1], read_bytes(path, "weights"))
    return copies


def _copy_signature(spec: ModelSpec, new: Path, copy: Path) -> list[Path]:
    """Copy the signature of ``new`` beside ``copy`` if the project requires one; return the copy."""
    if spec.trust is None:
        return []
    write_atomic(signature_path(copy), read_bytes(signature_path(new), "signature"))
    return [signature_path(copy)]


def _check_content(job: CompileJob, new: Path) -> None:
    """Read the new file under its own name, so that an error does not name its copy."""
    if job.compiler == "native":
        read_network(replace(job.request, source=new))
    elif job.compiler == "archive":
        open_archive(new, job.request.trust)


def _check_built(targets: Iterable[TargetJob], new: Path) -> None:
    for job in (job for target in targets for job in target.models):
        if not job.archive.is_file():
            raise UsageError(
                "update-without-old-version",
                place=new,
                reason=f"this is the model's own file, and {job.title} was not built before it changed",
                hint="restore the old file, and name the new one",
            )
