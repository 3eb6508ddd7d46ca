"""Merge several archives into one, from the names of modules down to the symbols of their code.

If several archives bundle the same library, each has the files for its modules, and the result has all of them.
Generated files of several archives may have the same path.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from mlfbuild.archive.conversion import convert
from mlfbuild.archive.merge.conflicts import conflicts, resolved
from mlfbuild.archive.merge.names import (
    check_archives,
    check_dependencies,
    check_module_names,
    merged_other_files,
    merged_unknown_fields,
    with_each_dependency_once,
    with_runtime_of_archives,
)
from mlfbuild.archive.merge.parts import MergedModule, SymbolTable, source_text, with_one_context, with_own_kernels
from mlfbuild.archive.merge.registry import (
    check_system_libraries,
    system_libraries,
    with_merged_library,
    without_registries,
)
from mlfbuild.c_analysis import HEADER_SUFFIXES, LINKED_SUFFIXES, TEXT_SUFFIXES, tokens
from mlfbuild.core import CheckFailedError
from mlfbuild.library import (
    ArchiveFile,
    CodegenFile,
    DifferentBundlesError,
    Library,
    Module,
    ResolvedLibrary,
    all_files,
    bundle_files,
    bundles,
    description_path,
    device_of,
    united,
    with_files,
)


def with_merged_bundles(libraries: Sequence[tuple[str, Library]]) -> list[tuple[str, Library]]:
    """Return ``libraries``, (name of the archive, library), with the same merged description of each shared bundle.

    Raises ``CheckFailedError``, with both archives as its place, if two bundles are not parts of the same library, and
    ``InputFileError`` if a description is invalid.
    """
    found: defaultdict[str, list[tuple[str, ResolvedLibrary]]] = defaultdict(list)
    for archive, library in libraries:
        for name, bundle in bundles(library, archive).items():
            found[name].append((archive, bundle))
    merged = {name: _merged(parts) for name, parts in found.items() if len(parts) > 1}
    return [(archive, _described(library, merged)) for archive, library in libraries]


def _merged(parts: Sequence[tuple[str, ResolvedLibrary]]) -> ResolvedLibrary:
    try:
        return united(parts)
    except DifferentBundlesError as error:
        reason = f"the archives bundle different libraries named {parts[0][1].name}: {error.reason}"
        place, hint = f"{error.first} and {error.second}", "bundle the same library in both"
        raise CheckFailedError("merged-bundles-differ", place=place, reason=reason, hint=hint) from None


def _described(library: Library, merged: dict[str, ResolvedLibrary]) -> Library:
    """Return ``library`` with its descriptions replaced by those of ``merged``."""
    descriptions = {description_path(name): next(iter(bundle_files(bundle))) for name, bundle in merged.items()}
    return replace(library, other_files=tuple(descriptions.get(file.path, file) for file in library.other_files))


_INCLUDED = re.compile(r'include\s*["<]([^">\n]*)[">]')


def with_unique_paths(parts: Sequence[MergedModule]) -> list[MergedModule]:
    """Return ``parts`` such that different generated files have different paths; equal files may share one.

    The module's name is added to the names of sources, objects and blobs, as in TVM's names. Headers are included by
    their names and keep them. Raises ``CheckFailedError``, with both modules as its place.
    """
    conflicting = _conflicting(parts)
    return [_renamed(part, parts, conflicting) for part in parts] if conflicting else list(parts)


def _conflicting(parts: Sequence[MergedModule]) -> set[str]:
    """Return the paths, in lower case, of more than one file."""
    known: dict[str, CodegenFile] = {}
    files = [file for part in parts for file in part.module.codegen]
    return {
        str(file.path).lower()
        for file in files
        # In lower case: some file systems take paths that differ only in case for one file.
        if (first := known.setdefault(str(file.path).lower(), file)) != file and first is not file
    }


def _renamed(part: MergedModule, parts: Sequence[MergedModule], conflicting: set[str]) -> MergedModule:
    taken = {str(file.path).lower() for other in parts for file in other.module.codegen}
    own = {
        path: path.with_name(f"{part.module.name}_{path.name}") for path in _paths(part) if _is_in(path, conflicting)
    }
    included = set(_included(part)) if own else set()

    def change(file: CodegenFile) -> CodegenFile:
        if file.path not in own or file.path.name.startswith(f"{part.module.name}_lib"):
            return file
        blob = device_of(file.path) is not None and file.path.suffix not in HEADER_SUFFIXES
        movable = (blob or file.path.suffix in LINKED_SUFFIXES) and file.path.name not in included
        if not movable or _is_in(own[file.path], taken):
            raise _refused(part, file, parts)
        return CodegenFile(own[file.path], file.content)

    return part.with_codegen(change)


def _paths(part: MergedModule) -> list[PurePosixPath]:
    return [file.path for file in part.module.codegen]


def _is_in(path: PurePosixPath, lowered: set[str]) -> bool:
    return str(path).lower() in lowered


def _refused(part: MergedModule, file: CodegenFile, parts: Sequence[MergedModule]) -> CheckFailedError:
    """Return the error for a file of ``part`` if another part has a different file with the same path."""
    lower = str(file.path).lower()
    others = [(other, own) for other in parts for own in other.module.codegen if str(own.path).lower() == lower]
    other, own = next((other, own) for other, own in others if other is not part and own != file)
    reason = f"they have different files codegen/{file.path}, which the code includes by that name"
    if own.path != file.path:
        reason = f"they have codegen/{file.path} and codegen/{own.path}, which differ only in case"
    return part.refused(other, "merge-file-conflict", reason, "export one of them again with other file names")


def _included(part: MergedModule) -> Iterator[str]:
    """Yield the names, without folders, of the files that the module's sources include."""
    for file in part.of_kind(*TEXT_SUFFIXES):
        for token in tokens(source_text(file, part.archive)):
            found = _INCLUDED.search(token.text[:500]) if token.kind == "directive" else None
            if found is not None:
                yield PurePosixPath(found[1]).name


def check_case(parts: Sequence[MergedModule], others: Sequence[ArchiveFile]) -> None:
    """Raise ``CheckFailedError`` if two paths of the merged archive differ only in case."""
    seen: dict[str, tuple[str, str]] = {}
    paths = [(f"codegen/{path}", part.shown) for part in parts for path in _paths(part)]
    for path, owner in [*paths, *((str(file.path), "a file of no module") for file in others)]:
        first, other = seen.setdefault(path.lower(), (path, owner))
        if first != path:
            raise CheckFailedError(
                "merge-paths-differ-in-case",
                place=f"{first} ({other}) and {path} ({owner})",
                reason="the paths differ only in case, so some file systems cannot hold both",
                hint="rename one of them",
            )


_VERSION = 7  # the first version with several modules


def merge(libraries: Sequence[tuple[str, Library]]) -> Library:
    """Return one library, of version 7, with the modules of all ``libraries``: (name of the archive, library).

    The modules change only if an image could not hold them otherwise: their system libraries become one, in a new file,
    and functions that only one module uses are renamed if another module defines the same name. The order of
    ``libraries`` has no effect. Raises ``CheckFailedError``, with both archives or modules as its place, if two of them
    cannot be merged, ``UsageError`` if there is no archive or the same one twice, and ``InputFileError`` if an object
    file is damaged.
    """
    # By name, so that neither the result nor the first conflict depends on the order of the arguments.
    libraries = sorted(libraries, key=lambda pair: pair[0])
    check_archives(libraries)
    libraries = [(name, convert(library, _VERSION)) for name, library in libraries]
    parts = [
        MergedModule(name, _of_one_device(with_each_dependency_once(module)))
        for name, library in libraries
        for module in library.modules
    ]
    parts.sort(key=lambda part: (part.module.name, part.archive))
    # Before the code is read, which takes most of the time: an error about names comes at once.
    check_module_names(parts)
    parts = with_runtime_of_archives(parts)
    check_dependencies(parts)
    others = merged_other_files(with_merged_bundles(libraries))
    # Kernel headers first: these can get a folder for each module, and any other header with two contents is refused.
    parts = with_unique_paths(with_own_kernels(parts))
    check_case(parts, others)
    parts = _linkable(parts)
    modules = tuple(with_files(part.module, part.module.codegen) for part in parts)
    return Library(modules, _VERSION, others, merged_unknown_fields(libraries))


def _of_one_device(module: Module) -> Module:
    """Return ``module`` with the code of all devices in one list: it may also be linked into one image."""
    return replace(module, codegen=all_files(module), device_files=())


def _linkable(parts: list[MergedModule]) -> list[MergedModule]:
    """Return ``parts`` with changes that let all of their code link into one image."""
    table = SymbolTable(parts)
    libraries = system_libraries(parts, table)
    check_system_libraries(libraries, parts, table)
    parts = with_one_context(parts, table)
    # Sources with the variable have changed; files that have not are not read again.
    table = SymbolTable(parts, table)
    found = conflicts(parts, table)
    # A single table of functions stays as TVM wrote it, unless it names a function that gets a new name below.
    registered = [(library, library.registry) for library in libraries if library.registry is not None]
    renamed = {conflict.symbol for conflict in found}
    named = (function for _, registry in registered for _, function in registry.functions)
    rebuilt = registered if len(libraries) > 1 or not renamed.isdisjoint(named) else []
    parts = without_registries(parts, rebuilt)
    parts, renames = resolved(parts, found, table)
    return with_merged_library(parts, rebuilt, renames) if rebuilt else parts
