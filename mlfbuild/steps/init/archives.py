"""Whether an archive is firmware by itself: called through the C interface, with all that its code includes.

The C of a TVM module with the C interface includes two headers of TVM's runtime, and takes one macro from them. An
archive without its ``runtime/`` folder gets headers that have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

from mlfbuild.archive import pack_archive
from mlfbuild.code.files import CXX_SUFFIXES, SOURCE_SUFFIXES
from mlfbuild.errors import UnsupportedModelError
from mlfbuild.library import OPERATOR, ArchiveFile, Library, Module
from mlfbuild.messages import listed

_HEADERS = Path(__file__).resolve().parents[2] / "templates" / "tvm"
_OURS = ("tvm/runtime/c_runtime_api.h", "tvm/runtime/c_backend_api.h")
_RUNTIME_INCLUDE = PurePosixPath("runtime/include")

_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"\n]*)[>"]', re.MULTILINE)
_RUNTIME = re.compile(rb"\b(?:TVM[A-Z][a-z]\w*|DLTensor)\b")
_STANDARD = re.compile(
    r"(?:assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdalign|stdarg|stdbool"
    r"|stddef|stdint|stdio|stdlib|stdnoreturn|string|tgmath|time|wchar|wctype|arm_acle|arm_mve)\.h"
)
"""Headers that a C compiler for Arm brings."""


def require_c_interface(library: Library, path: Path) -> None:
    """Raise ``UnsupportedModelError`` for a module that firmware cannot call with a C compiler alone."""
    for module in library.modules:
        reason = next(_obstacles(module, library), None)
        if reason:
            raise UnsupportedModelError(f"{path}: module {module.name} {reason}")


def _obstacles(module: Module, library: Library) -> Iterator[str]:
    export = "export it with --executor=aot --executor-aot-interface-api=c --executor-aot-unpacked-api=1"
    if module.style == OPERATOR:
        yield "is an operator, which TVM's runtime calls; export a whole network for the AOT executor"
    if module.executor != "aot":
        yield f"is for the {module.executor} executor, which needs TVM's runtime; {export}"
    if module.interface != "c":
        yield f"has the packed interface, which needs TVM's runtime; {export}"
    if not module.inputs or not module.outputs:
        yield "does not tell its inputs and outputs; export it again, with TVM 0.8 or later"
    if module.devices:
        yield f"wants a driver of {', '.join(module.devices)} from its caller; export it for the CPU alone"
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
        used = _RUNTIME.search(data)
        if used:
            yield (
                f"calls TVM's runtime ({used[0].decode()} in {file.path}), which is not in firmware; export it with "
                "--executor-aot-unpacked-api=1 and the unified static memory planner (USMP)"
            )
        known = (*_OURS, *(name for name in _includes(data) if any(path.endswith(f"/{name}") for path in there)))
        absent |= {name: None for name in _includes(data) if name not in known and not _STANDARD.fullmatch(name)}
    if absent:
        names = f"{listed(tuple(absent))}, which {'is' if len(absent) == 1 else 'are'}"
        yield f"includes {names} not in the archive; export it for the target c alone, without other libraries"


def _includes(data: bytes) -> list[str]:
    return [name.decode(errors="replace") for name in dict.fromkeys(_INCLUDE.findall(data))]


def completed(library: Library) -> tuple[bytes, tuple[str, ...]]:
    """Return the archive of ``library`` with headers of TVM's that it lacks, and their names; nothing where none is."""
    there = {str(file.path) for file in library.other_files}
    included = {
        name
        for module in library.modules
        if not module.model_id
        for file in module.codegen
        if file.path.suffix in SOURCE_SUFFIXES
        for name in _includes(file.data)
    }
    if not included & {*_OURS} or any(f"{_RUNTIME_INCLUDE}/{name}" in there for name in _OURS):
        return b"", ()
    files = [ArchiveFile(_RUNTIME_INCLUDE / name, (_HEADERS / PurePosixPath(name).name).read_bytes()) for name in _OURS]
    return pack_archive(replace(library, other_files=(*library.other_files, *files))), _OURS
