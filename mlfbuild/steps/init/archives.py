"""Whether an archive is firmware by itself: called through the C interface, with all that its code asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mlfbuild.code.files import CXX_SUFFIXES, SOURCE_SUFFIXES
from mlfbuild.errors import UnsupportedModelError
from mlfbuild.executor.executable import PROVIDED_HEADERS
from mlfbuild.executor.headers import STANDARD_HEADER
from mlfbuild.library import Library, Module
from mlfbuild.messages import listed

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
    if absent:
        names = f"{listed(tuple(absent))}, which {'is' if len(absent) == 1 else 'are'}"
        yield f"includes {names} not in the archive; export it for the target c alone, without other libraries"


def _includes(data: bytes) -> list[str]:
    return [name.decode(errors="replace") for name in dict.fromkeys(_INCLUDE.findall(data))]
