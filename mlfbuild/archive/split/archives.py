"""Split an archive, from its code down to the files of no module.

A file that belongs to no module goes to every module that needs it. A table of functions that several modules share is
divided, so that each gets a table of its own functions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from mlfbuild.archive.merge.parts import (
    MergedModule,
    SymbolTable,
    source_bytes,
    source_text,
    with_strong_context,
    with_usual_kernels,
)
from mlfbuild.archive.merge.registry import RegistryTable, SystemLibrary, parse_registry, system_libraries
from mlfbuild.c_analysis import repeated_declarations
from mlfbuild.core import CheckFailedError, listed
from mlfbuild.library import ArchiveFile, CodegenFile, Library, archive_folder, bundle_name, description_path
from mlfbuild.library.cgen import LICENCE, registry_source

_RUNTIME, _TEMPLATES = PurePosixPath("runtime"), PurePosixPath("templates")
_NAMED = frozenset({"parameters", "src", "executor-config", "runtime-config"})
"""Folders of files that are called like their module, such as a second form of its parameters."""


def files_by_module(library: Library) -> dict[str, tuple[ArchiveFile, ...]]:
    """Return the files of no module that each module of ``library`` needs, by its name.

    A folder of an external dependency belongs to the modules that name the dependency, ``templates/`` to those that
    need TVM's runtime, and any other file to all modules.
    """
    users = _users(library)
    names = [module.name for module in library.modules]
    found: dict[str, list[ArchiveFile]] = {name: [] for name in names}
    for file in library.other_files:
        for name in _owners(file.path, users, found):
            found[name].append(file)
    return {name: tuple(files) for name, files in found.items()}


def _users(library: Library) -> Mapping[PurePosixPath, Collection[str]]:
    """Return the modules that use each folder, and each description of a bundle."""
    users: defaultdict[PurePosixPath, dict[str, None]] = defaultdict(dict)
    for module in library.modules:
        if module.runtime:
            users[_RUNTIME][module.name] = None
        for dependency in module.external_dependencies:
            folder, bundle = archive_folder(dependency), bundle_name(dependency)
            if folder is not None:
                users[folder][module.name] = None
            if bundle:
                users[description_path(bundle)][module.name] = None
    if _RUNTIME in users:
        # The template of the runtime's configuration is there, which a build with the bundled runtime includes.
        users.setdefault(_TEMPLATES, users[_RUNTIME])
    return users


def _owners(
    path: PurePosixPath, users: Mapping[PurePosixPath, Collection[str]], names: Collection[str]
) -> Collection[str]:
    place = next((place for place in (path, *path.parents) if place in users), None)
    if place is not None:
        return users[place]
    return [path.stem] if path.parts[0] in _NAMED and path.stem in names else names


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
            # A function without a definition may be that of a library, which every module may need.
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
    return part.with_added(added)


def split(library: Library, archive: str) -> dict[str, Library]:
    """Return a library for each module of ``library``, by the module's name; ``archive`` is its name in errors.

    A library of one module is returned as it is. Raises ``CheckFailedError`` if modules share a table of functions in a
    form that cannot be divided, and ``InputFileError`` if an object file is damaged.
    """
    if len(library.modules) < 2:
        return {module.name: library for module in library.modules}
    parts = with_own_registries([MergedModule(archive, module) for module in library.modules])
    # The only module of an archive needs neither the weak variable nor the separate folder that merging gave it.
    parts = [with_usual_kernels(with_strong_context(part)) for part in parts]
    others = files_by_module(library)
    return {
        part.module.name: replace(library, modules=(part.module,), other_files=others[part.module.name])
        for part in parts
    }
