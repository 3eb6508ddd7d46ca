"""Check, compile and measure a model, and then write its vectors and its entry in the project file."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlfbuild.archive.describe import interface_text
from mlfbuild.core import (
    InputFileError,
    Mistake,
    ProjectFileError,
    StorageError,
    ToolNotFoundError,
    UnsupportedModelError,
    UsageError,
    open_binary,
    read_bytes,
    recognised,
    require_extra,
    storage_error,
    write_atomic,
)
from mlfbuild.jobs import (
    Progress,
    chosen_names,
    compiled_library,
    default_compiler,
    default_name,
    firmware_jobs,
    load,
    target_jobs,
    toolchain_of,
)
from mlfbuild.library import Library
from mlfbuild.project import (
    MODEL_NAME,
    VECTORS_FOLDER,
    FirmwareSpec,
    ModelSpec,
    Project,
    TargetSpec,
    load_project,
    source_problem,
)
from mlfbuild.report import image_sizes
from mlfbuild.targets import CPUS, emulated_board
from mlfbuild.usecases.build import build_project
from mlfbuild.usecases.init import call_c, callable_library, interface_names
from mlfbuild.usecases.vectors import recompute_vectors
from mlfbuild.verify import load_vectors

_APP = "sizes"
"""The firmware that is linked only to measure the model."""
_MAIN = "\nint main(void)\n{{\n    return {calls} != 0;\n}}\n"


@dataclass(frozen=True)
class AddedModel:
    """A model that was added, and what its firmware needs to know."""

    name: str
    project: Path
    """The project file."""
    interface: str
    """Its inputs and outputs as a table."""
    code: str
    """C that calls it."""
    budget: Mapping[str, int]
    """Bytes of ``flash`` and ``ram``: the largest of today's sizes, and a tenth of it; empty without a budget."""
    written: tuple[Path, ...]
    notes: tuple[str, ...]


def add_model(
    file: Path,
    source: Path,
    name: str | None = None,
    targets: Sequence[str] = (),
    *,
    jobs: int = 1,
    progress: Progress | None = None,
) -> AddedModel:
    """Add the model file or archive ``source`` to the project file ``file``, for ``targets`` (by default all).

    The model gets ``name``, or that of its file. It is compiled for its targets and linked into an image on the board
    that QEMU emulates for each core, whose sizes and a tenth of them become its budget. Vectors that exist are kept. If
    anything fails, all files are as before.

    Raises ``ToolNotFoundError`` if a compiler or ruamel.yaml is missing, ``ProjectFileError`` for mistakes in the
    project file, ``UsageError`` for a name or target that is not possible, a model that the project has already or that
    is outside of its folder, ``InputFileError`` and ``UnsupportedModelError`` for the model, and ``StorageError``.
    """
    require_extra("edit", file, "editing a project file")
    from mlfbuild.usecases.add.project_text import is_list

    project = _project(file, source)
    text = read_bytes(file, "project file").decode()
    if not os.access(file, os.W_OK):
        raise StorageError("cannot-write", place=file, reason="cannot write: it is read-only", hint="make it writable")
    spec, in_list = _spec(project, source, name, targets), is_list(text)
    if in_list:
        _check_options(project, spec, "--target" if targets else "--name" if spec.name != default_name(source) else "")
    extended = replace(project, models={**project.models, spec.name: spec})
    # Sizes come from a build in a folder of its own: that of the project is for what the project file has.
    with tempfile.TemporaryDirectory(prefix="mlfbuild-add-") as scratch:
        first, *_ = target_jobs(extended, spec.targets, [spec.name], Path(scratch))
        library = callable_library(compiled_library(first.models[0]), spec.source)
        code = call_c(library)
        sizes = {} if in_list else _sizes(extended, spec, code, library, Path(scratch), jobs, progress)
    # A budget of 0 would refuse the first byte of a later arena, of which a tenth more is also 0.
    budget = {memory: -(-size * 11 // 10) for memory, size in sizes.items() if size}
    with _vectors(extended, spec, library) as (vectors, is_new, about_vectors):
        names = interface_names(library) if spec.compiler == "native" else {}
        notes = _write(project, text, spec, bool(targets), {"interface": names, "vectors": vectors, "budget": budget})
    written = (file, *([vectors] if vectors and is_new else []))
    return AddedModel(spec.name, file, interface_text(library), code, budget, written, (about_vectors, *notes))


def _project(file: Path, source: Path) -> Project:
    """Return the project of ``file``, which may have no model; raises as ``load``."""
    from mlfbuild.usecases.add.project_text import with_only_model

    try:
        return load(file, changes={})  # what is written must not depend on goals
    except ProjectFileError as error:
        # All other keys are checked in a project whose only model is the one that is added.
        text = with_only_model(file, source.resolve()) if source.is_file() else None
        if text is None:
            raise
        with trial_file(file, text) as trial:
            try:
                found = load(trial, changes={})
            except ProjectFileError:
                raise error from None
    return replace(found, path=file, models={})


def _spec(project: Project, source: Path, name: str | None, targets: Sequence[str]) -> ModelSpec:
    """Return the model; raises for everything that can be said before it is read."""
    with open_binary(source, "model"):
        pass
    place, root = source.resolve(), project.root.resolve()
    mistake = recognised(source) or source_problem(source.name)
    if mistake is not None:
        raise InputFileError(mistake.code, place=source, reason=mistake.reason, hint=mistake.hint)
    if not place.is_relative_to(root):
        hint = f"copy it there, for example to {project.root / 'models' / source.name}"
        raise UsageError(
            "model-outside-project", place=source, reason=f"is not in the project's folder {root}", hint=hint
        )
    known = next((model.name for model in project.models.values() if model.source.resolve() == place), None)
    if known is not None:
        hint = f"`mlfbuild update {known} FILE` replaces it by a newer version"
        raise UsageError(
            "model-already-added", place=source, reason=f"is the model {known} of {project.path}", hint=hint
        )
    chosen = name or default_name(source)
    if chosen in project.models:
        reason = f"{project.path} has another model of this name"
        raise UsageError("model-name-taken", place=f"model {chosen}", reason=reason, hint="choose another with --name")
    wrong: Mistake | None = MODEL_NAME.check(chosen)
    if wrong is not None:
        raise UsageError(wrong.code, place=f"model {chosen!r}", reason=wrong.reason, hint=f"{wrong.hint}, with --name")
    compiler = default_compiler(source)
    return ModelSpec(
        name=chosen,
        source=project.root / place.relative_to(root),
        compiler=compiler,
        trust=project.trust_in(compiler),
        targets=tuple(chosen_names("target", targets, project.targets)),
        folder=project.root,
    )


def _check_options(project: Project, spec: ModelSpec, option: str) -> None:
    """Raise ``UsageError`` if there is an ``option`` that a model in a list cannot have."""
    if option:
        raise UsageError(
            "list-of-models",
            place=option,
            reason=f"the models of {project.path} are a list: they have the names of their files, and all targets",
            hint=f"omit it, or write the list as a mapping: `models: {{{spec.name}: {spec.source.name}}}`",
        )


def _sizes(
    project: Project,
    spec: ModelSpec,
    code: str,
    library: Library,
    folder: Path,
    jobs: int,
    progress: Progress | None,
) -> dict[str, int]:
    """Return the bytes of flash and RAM that the model takes in an image, the largest of its targets."""
    boards = {
        name: board.name
        for name in spec.targets
        if toolchain_of(project.targets[name]) and (board := emulated_board(CPUS[project.targets[name].cpu]))
    }
    if not boards:
        return {}
    main = folder / "main.c"
    calls = " + ".join(f"run_{module.name}()" for module in library.modules)
    write_atomic(main, (code + _MAIN.format(calls=calls)).encode())
    names = tuple(boards)
    measured = replace(
        project,
        targets={name: TargetSpec(name, project.targets[name].cpu, board) for name, board in boards.items()},
        models={spec.name: replace(spec, targets=names)},
        firmware={_APP: FirmwareSpec(_APP, sources=(main,), models=(spec.name,), targets=names)},
        share_workspace=(),
        concurrent=(),
        budget_file=None,
    )
    found = target_jobs(measured, build=folder)
    images = firmware_jobs(measured, found, folder)
    build_project(found, images, jobs=jobs, progress=progress)
    owners = [owner for image in images for owner in image_sizes(image).sizes.models]
    return {"flash": max(owner.flash for owner in owners), "ram": max(owner.ram for owner in owners)}


@contextlib.contextmanager
def _vectors(project: Project, spec: ModelSpec, library: Library) -> Iterator[tuple[Path | None, bool, str]]:
    """Write the vectors of a model that mlfbuild reads; remove the file if the ``with`` block fails.

    Yields their path, if there are any, whether the file is new, and a note about them.
    """
    path = project.root / VECTORS_FOLDER / f"{spec.name}.npz"
    if path.is_file():
        load_vectors(path, library.modules[0])
        yield path, False, f"{path} stays as it is: its inputs and outputs fit the model"
        return
    if spec.compiler != "native":
        yield None, False, "outputs are not checked: add `vectors`, with inputs and outputs of your training framework"
        return
    is_new = not path.parent.exists()
    try:
        try:
            found = recompute_vectors(project, spec.name)
        except (ToolNotFoundError, UnsupportedModelError):  # no other implementation is installed or runs the model
            found = recompute_vectors(project, spec.name, own=True)
        by = f"{found.origin.judge}" + ("" if found.origin.checked else ", not by a second implementation")
        yield path, True, f"{path}: {found.cases} cases of random inputs, outputs by {by}"
    except BaseException:
        with contextlib.suppress(OSError):
            path.unlink()
        if is_new:
            shutil.rmtree(path.parent, ignore_errors=True)
        raise


def _write(project: Project, text: str, spec: ModelSpec, selected: bool, values: Mapping[str, Any]) -> list[str]:
    """Write the project file with the model; return notes. Raises ``UsageError`` if its text cannot be changed."""
    from mlfbuild.usecases.add.project_text import is_list, with_model

    keys: dict[str, Any] = {"source": spec.source.relative_to(project.root).as_posix()}
    if selected:
        keys["targets"] = list(spec.targets)
    for key, value in values.items():
        if value:
            keys[key] = value.relative_to(project.root).as_posix() if isinstance(value, Path) else dict(value)
    changed = with_model(text, spec.name, keys)
    if changed is None or not _is_as_wanted(project, changed, spec):
        lines = ", ".join(f"{key}: {value}" for key, value in keys.items())
        raise UsageError(
            "project-file-not-editable",
            place=project.path,
            reason="the model cannot be added without changing other lines",
            hint=f"add it by hand: `{spec.name}: {{{lines}}}`",
        )
    write_project_text(project.path, changed)
    notes = []
    if is_list(text):
        notes.append(f"no budget: the models of {project.path} are a list")
    elif not values["budget"]:
        notes.append("no budget: no target of the model has images")
    listing = [each for each in project.firmware.values() if ("firmware", each.name, "models") in project.positions]
    return notes + [f"add {spec.name} to the models of firmware {each.name} to link it" for each in listing]


def _is_as_wanted(project: Project, text: str, spec: ModelSpec) -> bool:
    """Return whether ``text`` is the project file with the model and without any other change."""

    def is_wanted(found: Project) -> bool:
        models = dict(found.models)
        added = models.pop(spec.name, None)
        return added is not None and (models, found.targets) == (project.models, project.targets)

    return describes(project.path, text, is_wanted)


def describes(path: Path, text: str, is_wanted: Callable[[Project], bool]) -> bool:
    """Return whether ``text``, in the place of the project file ``path``, has no mistake and gives what is wanted.

    A ``ProjectFileError`` of ``is_wanted`` counts as a mistake. Raises ``StorageError``.
    """
    try:
        with trial_file(path, text) as trial:
            return is_wanted(load_project(trial))
    except ProjectFileError:
        return False


def write_project_text(path: Path, text: str) -> None:
    """Write the project file, or the file that it is a link to, and keep its mode; raises ``StorageError``."""
    file = path.resolve()
    mode = file.stat().st_mode
    write_atomic(file, text.encode())
    file.chmod(mode)


@contextlib.contextmanager
def trial_file(file: Path, text: str) -> Iterator[Path]:
    """Write ``text`` beside the project file ``file``, so that its paths have the same meaning, and remove it again."""
    trial = file.with_name(f".{file.name}.{os.urandom(6).hex()}")
    try:
        trial.write_bytes(text.encode())
        yield trial
    except OSError as error:
        raise storage_error(file, error) from None
    finally:
        trial.unlink(missing_ok=True)
