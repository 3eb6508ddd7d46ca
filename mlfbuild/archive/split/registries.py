"""Divide a table of functions that several modules share, so that each gets a table of its own functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from mlfbuild.archive.merge.parts import MergedModule, SymbolTable, source_bytes, source_text
from mlfbuild.archive.merge.registry import RegistryTable, parse_registry
from mlfbuild.archive.merge.system_lib import SystemLibrary, system_libraries
from mlfbuild.c_analysis import repeated_declarations
from mlfbuild.core import CheckFailedError, listed
from mlfbuild.library import CodegenFile
from mlfbuild.library.cgen import LICENCE, registry_source

_Function = tuple[str, str]
"""(registered name, C function)."""


def with_own_registries(parts: Sequence[MergedModule]) -> list[MergedModule]:
    """Return ``parts``, the modules of one archive, with a table in each of those that share one.

    A function that no module defines is in the tables of all of them. Raises ``CheckFailedError`` if a shared table
    does not have TVM's form.
    """
    table = SymbolTable(parts)
    divided = list(parts)
    for library in system_libraries(parts, table):
        if len(library.owners) < 2:
            continue
        registry = _registry(library, parts)
        defined = {number: _defined(table, number, library.file.path) for number in library.owners}
        anywhere = frozenset[str]().union(*defined.values())
        for number, own in defined.items():
            functions = [pair for pair in registry.functions if pair[1] in own or pair[1] not in anywhere]
            divided[number] = _with_registry(divided[number], library.file.path, functions, registry)
    return divided


def _registry(library: SystemLibrary, parts: Sequence[MergedModule]) -> RegistryTable:
    if library.registry is None or not library.registry.rest_is_empty:
        names = listed([parts[number].module.name for number in library.owners])
        raise CheckFailedError(
            "split-system-library-form",
            place=f"{parts[0].archive}: codegen/{library.file.path}",
            reason=f"the modules {names} share this table of functions, which does not have the form that TVM writes",
            hint="use the archives that were merged",
        )
    return library.registry


def _defined(table: SymbolTable, number: int, shared: PurePosixPath) -> Collection[str]:
    """Return the functions that the files of a part define, except the ``shared`` one."""
    symbols = [item for path, item in table.of_part[number].items() if path != shared]
    return frozenset[str]().union(*(item.defined | item.weak for item in symbols))


def _with_registry(
    part: MergedModule, shared: PurePosixPath, functions: Iterable[_Function], registry: RegistryTable
) -> MergedModule:
    """Return ``part`` with a table of ``functions`` instead of the ``shared`` file.

    TVM writes it at the beginning of ``<module>_lib0``. If that file declares one of the functions in another way, the
    table gets a file of its own, the next one.
    """
    text = registry_source(functions, registry.count_bytes, [part.module.name])
    part = part.with_codegen(lambda file: None if file.path == shared else file)
    first = shared.with_name(f"{part.module.name}_lib0.c")
    files = {file.path: file for file in part.module.codegen}
    if first in files:
        # Without the comment before it, which merging again would leave.
        joined = text[text.index("#include") :] + source_text(files[first], part.archive)
        if not repeated_declarations(joined) and parse_registry(joined) is not None:
            return part.with_codegen(
                lambda file: CodegenFile(first, source_bytes(joined)) if file.path == first else file
            )
    names = (shared.with_name(f"{part.module.name}_lib{number}.c") for number in range(len(files) + 1))
    added = CodegenFile(next(path for path in names if path not in files), source_bytes(f"{LICENCE}{text}"))
    return replace(part, module=replace(part.module, codegen=(*part.module.codegen, added)))
