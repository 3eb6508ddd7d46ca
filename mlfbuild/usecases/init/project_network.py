"""Read the model file or archive of a new project, and check it before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlfbuild.compilers import compiler_called
from mlfbuild.core import UnsupportedModelError, read_bytes
from mlfbuild.executor import with_c_interface
from mlfbuild.jobs import default_compiler, default_name
from mlfbuild.jobs.tree import parts_of
from mlfbuild.library import CompileRequest, Library
from mlfbuild.project import SOURCES, source_suffix
from mlfbuild.targets import Board, Cpu
from mlfbuild.usecases.init.archives import dependency_lines, require_c_interface
from mlfbuild.usecases.init.devices import ProjectDevice

EXAMPLE = Path(__file__).resolve().parents[2] / "templates" / "example" / "tones.tflite"
"""The network of projects without ``--model``; scripts/make_tones.py made it."""


@dataclass(frozen=True)
class ProjectNetwork:
    """The model of a new project."""

    name: str
    """Name in the project file."""
    path: Path
    """The user's file."""
    compiler: str
    """``native`` or ``archive``."""
    file: str
    """Path in the project."""
    content: bytes
    """The content of ``file``."""
    library: Library
    notes: tuple[str, ...] = ()
    """Notes for the user, such as a changed name."""
    dependencies: tuple[str, ...] = ()
    """Lines of the project file with the libraries that its code requires."""


def read_network(path: Path, devices: Sequence[ProjectDevice], *, archive: bool) -> ProjectNetwork:
    """Read the model file at ``path``; ``archive`` states that it is an archive.

    Raises ``InputFileError`` for files that cannot be read, ``UnsupportedModelError`` for models that cannot run on
    one of ``devices`` by themselves, and ``UsageError`` for an archive that was exported for another CPU.
    """
    compiler = "archive" if archive else default_compiler(path)
    read = _from_archive if compiler == "archive" else _from_model
    network, *_ = (read(path, device.cpu) for device in devices)
    for device in devices:
        _check_memory(network, device.board)
    return network


def _from_model(path: Path, cpu: Cpu) -> ProjectNetwork:
    name = default_name(path)
    library = compiler_called("native").compile(CompileRequest(name, path, cpu))
    content = read_bytes(path, "model")
    suffix = source_suffix(path.name)
    stem = path.name[: len(path.name) - len(suffix)]
    file = f"models/{name}{suffix if SOURCES.get(suffix) == 'native' else '.tflite'}"
    return ProjectNetwork(name, path, "native", file, content, library, _renamed("model", stem, name))


def _from_archive(path: Path, cpu: Cpu) -> ProjectNetwork:
    name = default_name(path)
    library = compiler_called("archive").compile(CompileRequest(name, path, cpu))
    library = callable_library(library, path)
    dependencies = dependency_lines(library, path)
    if len(library.modules) == 1:
        name = default_name(Path(library.modules[0].name))
    suffix = source_suffix(path.name)
    file = f"models/{name}{suffix if SOURCES.get(suffix) == 'archive' else '.tar'}"
    notes = _renamed("module", library.modules[0].name, name) if len(library.modules) == 1 else ()
    return ProjectNetwork(name, path, "archive", file, read_bytes(path, "archive"), library, notes, dependencies)


def callable_library(library: Library, path: Path) -> Library:
    """Return ``library``, the content of ``path``, as firmware calls it: with a C interface for each module.

    Raises ``UnsupportedModelError`` if firmware cannot call it, or if build files cannot contain its names.
    """
    parts_of(library)
    library = replace(library, modules=tuple(with_c_interface(module) for module in library.modules))
    require_c_interface(library, path)
    return library


def _renamed(what: str, old: str, new: str) -> tuple[str, ...]:
    return () if old == new else (f"the {what} {old!r} is named {new} in the project, as names become part of C",)


def _check_memory(network: ProjectNetwork, board: Board) -> None:
    arena = max(
        sum(main.workspace_size for main in module.main) + module.state_size for module in network.library.modules
    )
    constants = sum(main.constants_size for module in network.library.modules for main in module.main)
    for need, memory, what in ((arena, board.ram, "RAM"), (constants, board.flash, "flash")):
        if need > memory.size:
            raise UnsupportedModelError(
                "board-too-small",
                place=network.path,
                reason=f"the model requires {need} bytes of {what}, and {board.name} has {memory.size}",
                hint="choose a larger board with --board, or a smaller model",
            )
