"""Read the model file or archive of a new project, and check it before anything is written.

Firmware must be able to call the archive through the C interface. The libraries that it requires become lines of the
project file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mlfbuild.c_analysis import CXX_SUFFIXES, SOURCE_SUFFIXES
from mlfbuild.compilers import compiler_called
from mlfbuild.core import UnsupportedModelError, listed, read_bytes, shown
from mlfbuild.executor import PROVIDED_HEADERS, STANDARD_HEADER, with_c_interface
from mlfbuild.jobs import default_compiler, default_name
from mlfbuild.jobs.tree import parts_of
from mlfbuild.library import (
    ARCHIVE_FOLDER,
    CompileRequest,
    Library,
    Module,
    Requirement,
    device_code,
    known_library,
    library_of_header,
    requirements_of,
)
from mlfbuild.project import SOURCES, git_problem, is_local_path, source_suffix
from mlfbuild.requirements import is_range, library_title, lines_to_add, same_version, unsound
from mlfbuild.targets import Board, Cpu
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


_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]*)[>"]', re.MULTILINE)


def require_c_interface(library: Library, path: Path) -> None:
    """Raise ``UnsupportedModelError`` for a module that firmware cannot call without other libraries or drivers."""
    for module in library.modules:
        obstacle = next(_obstacles(module, library), None)
        if obstacle:
            code, reason, hint = obstacle
            raise UnsupportedModelError(code, place=f"{path}: module {module.name}", reason=reason, hint=hint)


def _obstacles(module: Module, library: Library) -> Iterator[tuple[str, str, str]]:
    """Yield why firmware cannot call ``module``: code, reason and hint."""
    if module.interface != "c":
        hint = "export it with --executor=aot --executor-aot-interface-api=c --executor-aot-unpacked-api=1"
        yield "c-interface-missing", "the module has no C interface, and no code to make one for", hint
    if not module.inputs or not module.outputs:
        hint = "export it again with TVM 0.8 or later"
        yield "ports-unknown", "the archive does not list its inputs and outputs", hint
    if module.devices:
        reason = f"the caller must provide a driver of {', '.join(module.devices)}"
        yield "driver-required", reason, "export it for the CPU only"
    if module.workspace_io:
        reason = "its inputs and outputs are in memory pools of the caller"
        hint = "compile it with io: caller" if module.model_id else "export it without tir.usmp.use_workspace_io"
        yield "ports-in-pools", reason, hint
    for pool in module.pools:
        if pool.external and (pool.kind != "workspace" or pool.size is None):
            reason = f"the caller must provide the memory pool {pool.name} with constants in it"
            yield "constant-pool-required", reason, "export it without external pools for constants"
    for code in device_code(module):
        hint = "write the project file by hand, and declare the device there"
        yield "device-required", f"it has code for the device {code.name}, whose compiler is not known", hint
    # Code of mlfbuild's own compiler includes only its kernels and standard headers.
    if not module.model_id:
        yield from _missing(module, library)


def _missing(module: Module, library: Library) -> Iterator[tuple[str, str, str]]:
    """Yield an obstacle for headers that are neither in the archive nor part of a C compiler."""
    there = [*(str(file.path) for file in module.codegen), *(str(file.path) for file in library.other_files)]
    absent: dict[str, None] = {}
    for file in module.codegen:
        if file.path.suffix in CXX_SUFFIXES:
            reason = f"the archive has C++ code ({file.path}), and the templates build C"
            yield "code-not-c", reason, "export it for the target c"
        if file.path.suffix not in SOURCE_SUFFIXES:
            continue
        data = file.data
        known = (
            *PROVIDED_HEADERS,
            # A header may be included with or without a part of its path.
            *(name for name in _includes(data) if any(path.endswith(f"/{name}") for path in there)),
        )
        absent |= {name: None for name in _includes(data) if name not in known and not STANDARD_HEADER.fullmatch(name)}
    needed = {requirement.name for requirement in requirements_of(module)}
    if all(known_library(name) for name in needed):  # headers may be those of a library that is not known
        absent = {name: None for name in absent if not _is_of(name, needed)}
        if absent:
            reason = f"the code includes headers that are not in the archive: {listed(tuple(absent))}"
            yield "header-missing", reason, "export it for the target c, without other libraries"


def _is_of(header: str, libraries: Collection[str]) -> bool:
    known = library_of_header(header)
    return known is not None and known.name in libraries


def dependency_lines(library: Library, path: Path) -> tuple[str, ...]:
    """Return the lines of ``dependencies`` in a project file for the libraries that the code of ``library`` requires.

    Raises ``UnsupportedModelError`` for facts that only the user knows: an unknown version, two versions, a library
    that is not in a public repository, or unknown source files.
    """
    found: dict[str, Requirement] = {}
    required = (each for module in library.modules for each in requirements_of(module))
    # Libraries in the archive itself need no provider in the project.
    for each in (each for each in required if each.url_type != ARCHIVE_FOLDER):
        is_public = each.url_type == "git" and not is_local_path(each.url) and git_problem(each.url) is None
        # The first requirement of a name decides the version that all others must have.
        one = found.setdefault(each.name, each)
        if not each.version:
            reason = "its version is not known"
        elif is_range(each.version):
            reason = f"its version is not stated, only the range {shown(each.version)}"
        elif not same_version(each.version, one.version):
            reason = f"two versions are required, {shown(one.version)} and {shown(each.version)}"
        elif not is_public or unsound(each) is not None:
            reason = "the archive names no public repository of it"
        elif known_library(each.name) is None:
            reason = "its source files are not known"
        else:
            continue
        raise UnsupportedModelError(
            "init-library-unknown",
            place=f"{path}: module {shown(each.origin)}",
            reason=f"requires {library_title(each.name)}, and {reason}",
            hint=f"write mlfbuild.yml yourself, with dependencies: `{lines_to_add([each])}`",
        )
    return tuple(lines_to_add([each]) for each in found.values())


def _includes(data: bytes) -> list[str]:
    return [name.decode(errors="replace") for name in dict.fromkeys(_INCLUDE.findall(data))]
