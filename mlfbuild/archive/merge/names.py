"""What of several archives must differ, and what must agree, before any code is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from mlfbuild.archive.describe.readme import README
from mlfbuild.archive.merge.parts import Part
from mlfbuild.core import CheckFailedError, UsageError
from mlfbuild.library import (
    ARCHIVE_FOLDER,
    OPERATOR,
    STANDALONE_CRT,
    ArchiveFile,
    ExternalDependency,
    Library,
    Module,
    short_name,
)

_RUNTIME = ("runtime", "templates")
_MERGEABLE_ONCE = {README}  # text for people about one archive says nothing of the merged one


def check_archives(libraries: Sequence[tuple[str, Library]]) -> None:
    """Refuse no archive, one that is given twice, and operators.

    Raises ``UsageError`` and ``CheckFailedError``.
    """
    if not libraries:
        raise UsageError("nothing to merge; name one archive at least")
    for name, count in Counter(name for name, _ in libraries).items():
        if count > 1:
            raise UsageError(f"{name}: is given twice; name each archive once")
    for name, library in libraries:
        for module in library.modules:
            if module.style == OPERATOR:
                raise CheckFailedError(
                    f"{name}: module {module.name}: is a single operator (style operator), which the format keeps in "
                    "an archive of its own; leave this archive out"
                )


def check_module_names(parts: Iterable[Part]) -> None:
    """Refuse two modules whose names are equal but for case: headers, structs and macros have none.

    Raises ``CheckFailedError``, which names both archives.
    """
    seen: dict[str, Part] = {}
    for part in parts:
        first = seen.setdefault(part.module.name.lower(), part)
        if first is not part:
            names = sorted({first.module.name, part.module.name})
            called = (
                f"called {names[0]}"
                if len(names) == 1
                else f"whose names differ in case alone, {names[0]} and {names[1]}"
            )
            raise CheckFailedError(
                f"{first.archive} and {part.archive}: both hold a module {called}; give one of them another name with "
                "`mlfbuild convert --module-name`"
            )


def check_dependencies(parts: Iterable[Part]) -> None:
    """Refuse two external dependencies of one ``short_name``, however it is spelt, that differ in any other field.

    Raises ``CheckFailedError``, which names both archives and the field.
    """
    seen: dict[str, tuple[Part, ExternalDependency]] = {}
    for part in parts:
        for dependency in part.module.external_dependencies:
            first, known = seen.setdefault(short_name(dependency.short_name), (part, dependency))
            for key, value in vars(known).items():
                other = getattr(dependency, key)
                if value != other and key != "short_name":  # which may be spelt in two ways
                    mixed = (known.url_type == ARCHIVE_FOLDER) != (dependency.url_type == ARCHIVE_FOLDER)
                    advice = "bundle it in both, or in neither" if mixed else "export both with the same one"
                    raise first.refused(
                        part,
                        f"they need the external dependency {known.short_name} with {key} {value!a} and {other!a}; "
                        f"{advice}",
                    )


def with_each_dependency_once(module: Module) -> Module:
    """Return ``module`` without external dependencies that say the same again."""
    return replace(module, external_dependencies=tuple(dict.fromkeys(module.external_dependencies)))


def merged_other_files(libraries: Sequence[tuple[str, Library]]) -> tuple[ArchiveFile, ...]:
    """Return what stands beside the modules; equal files collapse.

    ``runtime/`` and ``templates/`` are one whole each, as they belong to one release of TVM. Raises
    ``CheckFailedError``, which names both archives, where two archives hold different ones, or two different files of
    one path.
    """
    for folder in _RUNTIME:
        _check_folder(folder, libraries)
    merged: dict[PurePosixPath, tuple[str, ArchiveFile]] = {}
    left_out = {PurePosixPath(path) for path in _MERGEABLE_ONCE} if len(libraries) > 1 else set()
    for archive, library in libraries:
        for file in library.other_files:
            first, known = merged.setdefault(file.path, (archive, file))
            if known.content != file.content and file.path not in left_out:
                raise CheckFailedError(
                    f"{first} and {archive}: hold different files called {file.path}; remove or rename one of them"
                )
    return tuple(file for path, (_, file) in merged.items() if path not in left_out)


def _check_folder(folder: str, libraries: Sequence[tuple[str, Library]]) -> None:
    holding = [(name, library, files) for name, library in libraries if (files := _files_in(folder, library))]
    for name, library, files in holding[1:]:
        first, known, expected = holding[0]
        different = next(_differences(expected, files), None)
        if different is not None:
            raise CheckFailedError(
                f"{first} and {name}: their {folder}/ folders differ ({different}), so they come from different "
                f"{_releases(_crt_version(known), _crt_version(library))}; export both with one"
            )


def _releases(first: str, second: str) -> str:
    return f"builds of TVM {first}" if first == second else f"releases of TVM, {first} and {second}"


def _files_in(folder: str, library: Library) -> dict[str, ArchiveFile]:
    return {str(file.path): file for file in library.other_files if file.path.is_relative_to(folder)}


def _differences(left: Mapping[str, ArchiveFile], right: Mapping[str, ArchiveFile]) -> Iterator[str]:
    yield from sorted(left.keys() ^ right.keys())
    yield from (path for path in left if left[path].content != right[path].content)


def _crt_version(library: Library) -> str:
    """Return the version of the C runtime that the archive records."""
    dependencies = (item for module in library.modules for item in module.external_dependencies)
    found = sorted({item.version_spec for item in dependencies if item.short_name == STANDALONE_CRT})
    return " and ".join(found) or "of unknown version"
