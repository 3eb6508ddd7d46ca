"""Check the archives to merge before their code is read: names must differ, shared files and requirements agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import PurePosixPath

from mlfbuild.archive.describe.readme import README
from mlfbuild.archive.merge.parts import MergedModule
from mlfbuild.core import CheckFailedError, UsageError, shown
from mlfbuild.library import (
    ARCHIVE_FOLDER,
    OPERATOR,
    STANDALONE_CRT,
    TVM_RUNTIME,
    ArchiveFile,
    ExternalDependency,
    Library,
    Module,
    UnknownField,
    archive_folder,
    short_name,
)

_RUNTIME = ("runtime", "templates")
_DROPPED = PurePosixPath(README)  # describes one archive, so it is wrong for the merged one


def check_archives(libraries: Sequence[tuple[str, Library]]) -> None:
    """Raise ``UsageError`` for no archive or the same one twice, and ``CheckFailedError`` for operators."""
    if not libraries:
        raise UsageError("merge-without-archives", reason="there are no archives to merge", hint="pass one or more")
    for name, count in Counter(name for name, _ in libraries).items():
        if count > 1:
            raise UsageError(
                "merge-archive-twice", place=name, reason="the archive is given twice", hint="pass each archive once"
            )
    for name, library in libraries:
        for module in library.modules:
            if module.style == OPERATOR:
                raise CheckFailedError(
                    "merge-operator",
                    place=f"{name}: module {module.name}",
                    reason="an operator (style operator) must be the only module of an archive",
                    hint="leave this archive out",
                )


def check_module_names(parts: Iterable[MergedModule]) -> None:
    """Raise ``CheckFailedError`` if the names of two modules differ only in case, which macros and headers lose."""
    seen: dict[str, MergedModule] = {}
    for part in parts:
        # The first one of a name stays, so that the error names the archives in the order of the command.
        first = seen.setdefault(part.module.name.lower(), part)
        if first is not part:
            names = sorted({first.module.name, part.module.name})
            raise CheckFailedError(
                "merge-module-names",
                place=f"{first.archive} and {part.archive}",
                reason=f"both archives have a module {names[0]}"
                if len(names) == 1
                else f"the names of the modules {names[0]} and {names[1]} differ only in case",
                hint="rename one of them with `mlfbuild convert --module-name`",
            )


def check_dependencies(parts: Iterable[MergedModule]) -> None:
    """Raise ``CheckFailedError`` if external dependencies with the same short name differ in another field."""
    seen: dict[str, tuple[MergedModule, ExternalDependency]] = {}
    for part in parts:
        for dependency in part.module.external_dependencies:
            # Short names are compared in the form in which builds make one library of them.
            first, known = seen.setdefault(short_name(dependency.short_name), (part, dependency))
            keys = ("url", "url_type", "version_spec")
            key = next((key for key in keys if getattr(known, key) != getattr(dependency, key)), None)
            if key is None:
                continue
            value, other = getattr(known, key), getattr(dependency, key)
            # A bundled copy and a download cannot be compared, so the way out is another one than for two versions.
            mixed = (known.url_type == ARCHIVE_FOLDER) != (dependency.url_type == ARCHIVE_FOLDER)
            raise first.refused(
                part,
                "merge-dependencies-differ",
                f"they require the external dependency {known.short_name} with {key} {value!a} and {other!a}",
                "bundle it in both, or in neither" if mixed else "export both with the same one",
            )


def with_runtime_of_archives(parts: Sequence[MergedModule]) -> list[MergedModule]:
    """Return ``parts``; modules of mlfbuild for TVM's executors require the runtime in an archive if there is one."""
    named = (item for part in parts for item in part.module.external_dependencies)
    # One entry for all: `check_dependencies` refuses two that differ.
    bundled = next((item for item in named if item.short_name == STANDALONE_CRT and archive_folder(item)), TVM_RUNTIME)

    def change(module: Module) -> Module:
        found = (bundled if item == TVM_RUNTIME else item for item in module.external_dependencies)
        return replace(module, external_dependencies=tuple(found))

    return [replace(part, module=change(part.module)) for part in parts]


def with_each_dependency_once(module: Module) -> Module:
    """Return ``module`` without repeated external dependencies."""
    return replace(module, external_dependencies=tuple(dict.fromkeys(module.external_dependencies)))


def merged_other_files(libraries: Sequence[tuple[str, Library]]) -> tuple[ArchiveFile, ...]:
    """Return the files that belong to no module; equal files are kept once.

    Raises ``CheckFailedError``, with both archives as its place, if two archives have different files with the same
    path, or folders ``runtime/`` or ``templates/`` that differ in any way, because each belongs to one release of TVM.
    """
    # Folders first: their error names the releases of TVM, which the difference of a single file would not.
    for folder in _RUNTIME:
        _check_folder(folder, libraries)
    merged: dict[PurePosixPath, tuple[str, ArchiveFile]] = {}
    dropped = _DROPPED if len(libraries) > 1 else None
    for archive, library in libraries:
        for file in library.other_files:
            # The first archive with a path provides the file; all others must agree with it.
            first, known = merged.setdefault(file.path, (archive, file))
            if known.content != file.content and file.path != dropped:
                raise CheckFailedError(
                    "merge-other-files-differ",
                    place=f"{first} and {archive}",
                    reason=f"the archives have different files {file.path}",
                    hint="remove or rename one of them",
                )
    return tuple(file for path, (_, file) in merged.items() if path != dropped)


def merged_unknown_fields(libraries: Sequence[tuple[str, Library]]) -> tuple[UnknownField, ...]:
    """Return the unknown fields of the metadata that belong to no module.

    Raises ``CheckFailedError``, with both archives as its place, if two archives have different values for one field.
    """
    merged: dict[str, tuple[str, UnknownField]] = {}
    for archive, library in libraries:
        for field in library.unknown:
            first, known = merged.setdefault(field.place, (archive, field))
            if known != field:
                raise CheckFailedError(
                    "merge-unknown-fields-differ",
                    place=f"{first} and {archive}",
                    reason=f"the metadata of the archives has different values in {shown(field.place)}",
                    hint="remove the field from one of them",
                )
    return tuple(merged[place][1] for place in sorted(merged))


def _check_folder(folder: str, libraries: Sequence[tuple[str, Library]]) -> None:
    files_of = [
        {str(file.path): file for file in library.other_files if file.path.is_relative_to(folder)}
        for _, library in libraries
    ]
    holding = [(*library, files) for library, files in zip(libraries, files_of, strict=True) if files]
    for name, library, files in holding[1:]:
        # Equality is transitive, so every archive is compared with the first one only.
        first, known, expected = holding[0]
        # A file that only one side has explains more than one that changed, so these come first.
        changed = (path for path in expected if expected[path].content != files[path].content)
        different = next(chain(sorted(expected.keys() ^ files.keys()), changed), None)
        if different is not None:
            one, two = _crt_version(known), _crt_version(library)
            releases = f"builds of TVM {one}" if one == two else f"releases of TVM, {one} and {two}"
            reason = f"the {folder}/ folders differ ({different}), so they come from different {releases}"
            hint = "export both with the same release of TVM"
            raise CheckFailedError("merge-runtimes-differ", place=f"{first} and {name}", reason=reason, hint=hint)


def _crt_version(library: Library) -> str:
    """Return the version of the C runtime in the metadata."""
    dependencies = (item for module in library.modules for item in module.external_dependencies)
    found = sorted({item.version_spec for item in dependencies if item.short_name == STANDALONE_CRT})
    return " and ".join(found) or "of unknown version"
