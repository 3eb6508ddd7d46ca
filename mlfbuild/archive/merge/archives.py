"""Merge several archives into one, from the names of modules down to the symbols of their code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlfbuild.archive.conversion import convert
from mlfbuild.archive.merge.bundles import with_merged_bundles
from mlfbuild.archive.merge.conflicts import conflicts, resolved
from mlfbuild.archive.merge.context import with_one_context
from mlfbuild.archive.merge.kernels import with_own_kernels
from mlfbuild.archive.merge.names import (
    check_archives,
    check_dependencies,
    check_module_names,
    merged_other_files,
    merged_unknown_fields,
    with_each_dependency_once,
    with_runtime_of_archives,
)
from mlfbuild.archive.merge.parts import MergedModule, SymbolTable
from mlfbuild.archive.merge.same_paths import check_case, with_unique_paths
from mlfbuild.archive.merge.system_lib import (
    SystemLibrary,
    check_system_libraries,
    system_libraries,
    with_merged_library,
    without_registries,
)
from mlfbuild.library import Library, Module, all_files, with_files

_VERSION = 7  # the first version with several modules


def merge(libraries: Sequence[tuple[str, Library]]) -> Library:
    """Return one library, of version 7, with the modules of all ``libraries``: (name of the archive, library).

    The modules change only if an image could not hold them otherwise: their system libraries become one, in a new file,
    and functions that only one module uses are renamed if another module defines the same name. The order of
    ``libraries`` has no effect. Raises ``CheckFailedError``, with both archives or modules as its place, if two of them
    cannot be merged, ``UsageError`` if there is no archive or the same one twice, and ``InputFileError`` if an object
    file is damaged.
    """
    libraries = sorted(libraries, key=lambda pair: pair[0])
    check_archives(libraries)
    libraries = [(name, convert(library, _VERSION)) for name, library in libraries]
    parts = [
        MergedModule(name, _of_one_device(with_each_dependency_once(module)))
        for name, library in libraries
        for module in library.modules
    ]
    parts.sort(key=lambda part: (part.module.name, part.archive))
    check_module_names(parts)
    parts = with_runtime_of_archives(parts)
    check_dependencies(parts)
    others = merged_other_files(with_merged_bundles(libraries))
    parts = with_unique_paths(with_own_kernels(parts))
    check_case(parts, others)
    parts = _linkable(parts)
    modules = tuple(with_files(part.module, part.module.codegen) for part in parts)
    return Library(modules, _VERSION, others, merged_unknown_fields(libraries))


def _of_one_device(module: Module) -> Module:
    """Return ``module`` with the code of all devices in one list: it may be linked into one image, too."""
    return replace(module, codegen=all_files(module), device_files=())


def _linkable(parts: list[MergedModule]) -> list[MergedModule]:
    """Return ``parts`` with changes that let all of their code link into one image."""
    table = SymbolTable(parts)
    libraries = system_libraries(parts, table)
    check_system_libraries(libraries, parts, table)
    parts = with_one_context(parts, table)
    table = SymbolTable(parts, table)
    found = conflicts(parts, table)
    rebuilt = libraries if len(libraries) > 1 or _registered(libraries, {conflict.symbol for conflict in found}) else []
    parts = without_registries(parts, rebuilt)
    parts, renames = resolved(parts, found, table)
    return with_merged_library(parts, rebuilt, renames) if rebuilt else parts


def _registered(libraries: Sequence[SystemLibrary], symbols: set[str]) -> bool:
    """Return whether a registry has one of ``symbols``, and must be written again if they are renamed."""
    registries = [library.registry for library in libraries if library.registry is not None]
    return any(function in symbols for registry in registries for _, function in registry.functions)
