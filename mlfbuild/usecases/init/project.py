"""Write the files of a project for a request."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlfbuild.archive import open_archive
from mlfbuild.core import ProjectFileError, UnsupportedModelError, UsageError, holds, quoted, write_atomic
from mlfbuild.jobs import committed, load, target_jobs
from mlfbuild.project import TEMPLATE_FILE
from mlfbuild.targets import BOARDS
from mlfbuild.usecases.build import build_project
from mlfbuild.usecases.init.devices import ProjectDevice, project_devices
from mlfbuild.usecases.init.project_network import EXAMPLE, read_network
from mlfbuild.usecases.init.renewal import outdated_files
from mlfbuild.usecases.init.repo import Repo
from mlfbuild.usecases.init.sample import sample_of, why_no_verify
from mlfbuild.usecases.init.staging import staged
from mlfbuild.usecases.init.templates import CMAKE_FILE, PLAIN, SCONS_TOOL, TEMPLATES, TREE, filled, template_called
from mlfbuild.usecases.init.user_template import UserTemplate, chosen_values, user_template

DEFAULT_BOARD = "mps2-an386"
BOARD_FACT = "board"
"""The extension of an archive that names its board."""


@dataclass(frozen=True)
class InitRequest:
    """The wanted project; model and archive exclude each other, and without both it contains an example."""

    folder: Path
    template: str
    """One of mlfbuild, or the folder or address of another."""
    board: str | None
    """``None`` selects that of the template, if there are no other devices."""
    model: Path | None = None
    """A model file, or an archive."""
    archive: Path | None = None
    vectors: Path | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """Values of the template's variables."""
    boards: tuple[str, ...] = ()
    """Further boards that QEMU emulates."""
    cpus: tuple[str, ...] = ()
    """Cores, each on the board that QEMU emulates for it."""
    mcus: tuple[str, ...] = ()
    """Microcontrollers of the user."""
    base: str = ""
    """The template of mlfbuild whose files a user's template replaces and adds to; empty for the simplest."""


@dataclass(frozen=True)
class InitReport:
    """The files that were written."""

    written: tuple[Path, ...]
    """All files, those for the user to edit first."""
    generated: int
    """Number of files at the end that are the model as C."""
    commands: dict[str, str]
    """Commands to run next: ``build``, ``run``, ``lock`` if there are dependencies, ``verify`` if there are vectors."""
    notes: tuple[str, ...]
    """Notes for the user."""


def init_project(request: InitRequest) -> InitReport:
    """Write the project that ``request`` describes: all of its files, or none.

    Raises ``UsageError`` for an unknown template or board, ``ProjectFileError`` for mistakes in a template,
    ``InputFileError`` and ``UnsupportedModelError`` for models that cannot run by themselves, ``ConflictError`` if a
    file would be overwritten, and ``StorageError``. A template at an address is fetched, as by ``fetch_version``.
    """
    own = user_template(request.template)
    _check_options(request, own)
    settings = {} if own is None else chosen_values(own, request.settings)
    template = template_called(request.template) if own is None else template_called(request.base or PLAIN)
    recorded, ignored = _recorded_board(request)
    boards = [request.board, *request.boards] if request.board else []
    if not (boards or request.cpus or request.mcus):
        boards = [recorded or (own.keys.board if own else DEFAULT_BOARD)]
    devices = project_devices(boards, request.cpus, request.mcus)
    _check_devices(request, devices, allowed=own is None and template.device_files is not None)
    network = read_network(request.archive or request.model or EXAMPLE, devices, archive=request.archive is not None)
    if template.commits_tree and network.dependencies:
        raise UnsupportedModelError(
            "template-without-dependencies",
            place=network.path,
            reason=f"the model requires {network.dependencies[0].partition(':')[0]}, and projects of the template "
            f"{request.template} contain all code that they compile",
            hint="choose --template scons or cmake",
        )
    emulated = next(device.board for device in devices if device.is_emulated)
    sample = sample_of(network, request.vectors, emulated)
    repo = Repo(_title(request.folder), template, network, sample, devices)
    files = own.overlay(repo.files(), {**repo.values, **settings}) if own else repo.files()
    in_place = {path for path in (network.file, repo.vectors) if _is_own(request, request.folder / path)}
    # Everything that may fail without writing comes before: reading the template, the board and the model.
    with staged(request.folder) as stage:
        for path, data in files.items():
            write_atomic(stage / path, data)
        if own:
            _check_project(stage, own)
        tree = _write_tree(stage, repo.target) if template.commits_tree else []
        for path in in_place:
            # Needed in the stage, where the project is loaded and compiled, but the user's file is already in its place
            # and would be in the way.
            (stage / path).unlink()
    return InitReport(
        written=tuple(request.folder / path for path in (*files, *tree) if path not in in_place),
        generated=len(tree),
        commands={**repo.commands, **(own.keys.commands if own else {})},
        notes=(*([own.note] if own and own.note else []), *ignored, *network.notes, *_about_vectors(repo)),
    )


def _check_options(request: InitRequest, template: UserTemplate | None) -> None:
    """Raise ``UsageError`` for options of which one lacks or excludes another."""
    if template is None and request.settings:
        raise UsageError.needs_another(
            "--set",
            f"the template {request.template} has no variables",
            f"omit it, or name a folder or repository with {TEMPLATE_FILE}",
        )
    if request.model and request.archive:
        raise UsageError.exclusive(
            "--model and --archive", "a project starts with one of them", "omit one, and add it to mlfbuild.yml later"
        )
    if request.vectors and not (request.model or request.archive):
        raise UsageError.needs_another(
            f"--vectors {request.vectors}", "vectors belong to a network", "name it with --model or --archive"
        )


def _check_devices(request: InitRequest, devices: Sequence[ProjectDevice], *, allowed: bool) -> None:
    """Raise ``UsageError`` for several devices or a microcontroller with a template of one board."""
    if not allowed and (len(devices) > 1 or request.mcus):
        names = [name for name, template in TEMPLATES.items() if template.device_files is not None]
        raise UsageError(
            "template-of-one-board",
            place=f"--template {request.template}",
            reason="its projects have one target, a board that QEMU emulates",
            hint=f"choose --template {' or '.join(names)}, or name one board",
        )


def init_cmake(folder: Path) -> InitReport:
    """Write the file with which the CMake build of the existing repository ``folder`` finds mlfbuild's CMake package.

    Nothing is written if the file is there. Raises ``ConflictError`` if it has another content, and ``StorageError``.
    """
    return _written_alone(folder, CMAKE_FILE, filled(CMAKE_FILE))


def init_scons(folder: Path) -> InitReport:
    """Write the file with which SCons finds the tool ``mlf`` in the existing repository ``folder``.

    Nothing is written if the file is there. Raises ``ConflictError`` if it has another content, and ``StorageError``.
    """
    return _written_alone(folder, SCONS_TOOL, filled("scons/mlf.py.in"))


def _written_alone(folder: Path, name: str, text: str) -> InitReport:
    path, content = folder / name, text.encode()
    if holds(path, content):
        return InitReport((), 0, {}, (f"{path} is up to date",))
    with staged(folder) as stage:
        write_atomic(stage / name, content)
    return InitReport((path,), 0, {}, ())


def init_update(folder: Path) -> InitReport:
    """Write the ``outdated_files`` of the repository ``folder`` again; raises ``StorageError``.

    If no file is outdated, nothing is written, and ``notes`` of the result say so. ``folder`` is that of the project
    file.
    """
    outdated = outdated_files(folder / "mlfbuild.yml")
    for path, text in outdated.items():
        write_atomic(path, text.encode())
    return InitReport(tuple(outdated), 0, {}, () if outdated else ("no file is of another version of mlfbuild",))


def _is_own(request: InitRequest, path: Path) -> bool:
    """Return whether ``path`` is a file that the user named and that is already in its place."""
    named = (request.model, request.archive, request.vectors)
    return path.is_file() and any(own is not None and own.samefile(path) for own in named)


def _recorded_board(request: InitRequest) -> tuple[str, tuple[str, ...]]:
    """Return the board that the archive records in its extensions if QEMU emulates it, and a note if it does not."""
    if request.board or request.archive is None:
        return "", ()
    found = (module.extensions.get(BOARD_FACT) for module in open_archive(request.archive).modules)
    board = next((str(each) for each in found if each is not None), "")
    # Not an error, as the archive's code may run on any board with its CPU.
    if board and board not in BOARDS:
        return "", (f"the archive is for the board {quoted(board)}, which QEMU does not emulate",)
    return board, ()


def _check_project(stage: Path, template: UserTemplate) -> None:
    """Make the files of ``template`` executable that are; raise ``ProjectFileError`` if its project file is wrong."""
    for name in template.executables():
        (stage / name).chmod(0o755)
    try:
        load(stage / "mlfbuild.yml")
    except ProjectFileError as error:
        # Without the path of the stage, which does not exist any more when the message is read.
        found = [each if isinstance(each, str) else str(each) for each in error.problems]
        raise ProjectFileError([each.replace(f"{stage}{os.sep}", f"{template.title}: ") for each in found]) from None


def _write_tree(folder: Path, target: str) -> list[str]:
    """Compile and unpack the project's models into its committed tree; returns the paths of its files."""
    project = load(folder / "mlfbuild.yml")
    with tempfile.TemporaryDirectory(prefix="mlfbuild-init-") as scratch:
        jobs = target_jobs(project, [target], build=Path(scratch))
        build_project([committed(project, jobs, folder / TREE)])
    return sorted(path.relative_to(folder).as_posix() for path in (folder / TREE).rglob("*") if path.is_file())


def _about_vectors(repo: Repo) -> list[str]:
    unverified = why_no_verify(repo.network, repo.board)
    if unverified:
        return [unverified]
    if repo.sample is None:
        return [f"outputs are not checked without vectors of {repo.network.name} (--vectors); see README.md"]
    if repo.sample.computed:
        command = f"mlfbuild vectors {repo.network.name}"
        return [f"mlfbuild computed the expected outputs itself: `{command}` has another implementation compute them"]
    return []


def _title(folder: Path) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", folder.resolve().name).strip("_-")
    return name if re.match("[A-Za-z]", name) else f"firmware_{name}".rstrip("_")
