"""Whether an archive is firmware by itself: called through the C interface, with all that its code asks for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

from mlfbuild.c_analysis import CXX_SUFFIXES, SOURCE_SUFFIXES
from mlfbuild.core import UnsupportedModelError, listed, shown
from mlfbuild.executor import PROVIDED_HEADERS, STANDARD_HEADER
from mlfbuild.library import ARCHIVE_FOLDER, Library, Module, Wish, dependency_of_header, known_dependency, wishes
from mlfbuild.project import git_problem, is_local_path
from mlfbuild.requirements import is_range, lines_to_add, same_version, title, unsound

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]*)[>"]', re.MULTILINE)


def require_c_interface(library: Library, path: Path) -> None:
    """Raise ``UnsupportedModelError`` for a module that firmware cannot call with a C compiler alone."""
    for module in library.modules:
        reason = next(_obstacles(module, library), None)
        if reason:
            raise UnsupportedModelError(f"{path}: module {module.name} {reason}")


def _obstacles(module: Module, library: Library) -> Iterator[str]:
    export = "export it with --executor=aot --executor-aot-interface-api=c --executor-aot-unpacked-api=1"
    if module.interface != "c":
        yield f"has no C interface, and no code to make one for; {export}"
    if not module.inputs or not module.outputs:
        yield "does not tell its inputs and outputs; export it again, with TVM 0.8 or later"
    if module.devices:
        yield f"wants a driver of {', '.join(module.devices)} from its caller; export it for the CPU alone"
    if module.workspace_io:
        yield "has its inputs and outputs in memory pools of its caller; export it without tir.usmp.use_workspace_io"
    for pool in module.pools:
        if pool.external and (pool.kind != "workspace" or pool.size is None):
            yield f"wants the memory pool {pool.name} from its caller, with constants in it; export it without"
    if not module.model_id:
        yield from _missing(module, library)


def _missing(module: Module, library: Library) -> Iterator[str]:
    """Say what the code asks for that is neither in the archive nor with a C compiler."""
    there = [*(str(file.path) for file in module.codegen), *(str(file.path) for file in library.other_files)]
    absent: dict[str, None] = {}
    for file in module.codegen:
        if file.path.suffix in CXX_SUFFIXES:
            yield f"has C++ code ({file.path}), and the templates build C; export it for the target c"
        if file.path.suffix not in SOURCE_SUFFIXES:
            continue
        data = file.data
        known = (
            *PROVIDED_HEADERS,
            *(name for name in _includes(data) if any(path.endswith(f"/{name}") for path in there)),
        )
        absent |= {name: None for name in _includes(data) if name not in known and not STANDARD_HEADER.fullmatch(name)}
    needed = {wish.name for wish in wishes(module)}
    if all(known_dependency(name) for name in needed):  # or else headers may be those of a library that only it names
        absent = {name: None for name in absent if not _is_of(name, needed)}
        if absent:
            names = f"{listed(tuple(absent))}, which {'is' if len(absent) == 1 else 'are'}"
            yield f"includes {names} not in the archive; export it for the target c alone, without other libraries"


def _is_of(header: str, libraries: Collection[str]) -> bool:
    known = dependency_of_header(header)
    return known is not None and known.name in libraries


def provisions_of(library: Library, path: Path) -> tuple[str, ...]:
    """Return the lines of ``dependencies`` in a project file that has what the code of ``library`` needs.

    Raises ``UnsupportedModelError`` for what nobody but its author can state: a version that is not known, two
    versions, or a library that is in no public repository.
    """
    found: dict[str, Wish] = {}
    for wish in (wish for module in library.modules for wish in wishes(module) if wish.url_type != ARCHIVE_FOLDER):
        is_public = wish.url_type == "git" and not is_local_path(wish.url) and git_problem(wish.url) is None
        one = found.setdefault(wish.name, wish)
        if not wish.version:
            reason = ", in a version that is not known"
        elif is_range(wish.version):
            reason = f" in a version of {shown(wish.version)}"
        elif not same_version(wish.version, one.version):
            reason = f" in two versions, {shown(one.version)} and {shown(wish.version)}"
        elif not is_public or unsound(wish) is not None:
            reason = ", which no public repository has"
        else:
            continue
        raise UnsupportedModelError(
            f"{path}: module {shown(wish.origin)} needs {title(wish.name)}{reason}; write mlfbuild.yml yourself, with "
            f"dependencies: `{lines_to_add([wish])}`"
        )
    return tuple(lines_to_add([wish]) for wish in found.values())


def _includes(data: bytes) -> list[str]:
    return [name.decode(errors="replace") for name in dict.fromkeys(_INCLUDE.findall(data))]
