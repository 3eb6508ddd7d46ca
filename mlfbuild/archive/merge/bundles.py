"""Merge the libraries that several archives bundle: each has the files for its modules, the result has all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from mlfbuild.core import CheckFailedError
from mlfbuild.library import Bundle, BundleFacts, Library, bundle_files, bundle_folder, bundles, description_path

_UNITED = ("sources", "include_dirs", "license_files")
"""Fields that may differ between two parts of the same library."""


def with_merged_bundles(libraries: Sequence[tuple[str, Library]]) -> list[tuple[str, Library]]:
    """Return ``libraries``, (name of the archive, library), with the same merged description of each shared bundle.

    Raises ``CheckFailedError``, with both archives as its place, if two bundles are not parts of the same library, and
    ``InputFileError`` if a description is invalid.
    """
    found: defaultdict[str, list[tuple[str, Bundle]]] = defaultdict(list)
    for archive, library in libraries:
        for name, bundle in bundles(library, archive).items():
            found[name].append((archive, bundle))
    merged = {name: _merged(name, parts) for name, parts in found.items() if len(parts) > 1}
    return [(archive, _described(library, merged)) for archive, library in libraries]


def _merged(name: str, parts: Sequence[tuple[str, Bundle]]) -> Bundle:
    first_archive, first = parts[0]
    files = dict(first.files)
    for archive, bundle in parts[1:]:
        for field in fields(BundleFacts):
            values = [getattr(each.facts, field.name) for each in (first, bundle)]
            if field.name not in _UNITED and values[0] != values[1]:
                raise _refused(first_archive, archive, name, f"{field.name} is {values[0]!a} and {values[1]!a}")
        for path, content in bundle.files.items():
            if files.setdefault(path, content) != content:
                raise _refused(first_archive, archive, name, f"{path} is not the same")
    facts = [bundle.facts for _, bundle in parts]
    united = replace(
        first.facts,
        sources=_union(each.sources for each in facts),
        include_dirs=_union(each.include_dirs for each in facts),
        license_files=_union(each.license_files for each in facts),
    )
    return Bundle(united, dict(sorted(files.items())))


def _union(lists: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the different items of ``lists`` in order of first appearance, because the order of includes matters."""
    return tuple(dict.fromkeys(item for each in lists for item in each))


def _refused(first: str, second: str, name: str, reason: str) -> CheckFailedError:
    return CheckFailedError(
        "merge-bundles-differ",
        place=f"{first} and {second}",
        reason=f"the archives bundle different versions of {name} in {bundle_folder(name)} ({reason})",
        hint="bundle the same one in both",
    )


def _described(library: Library, merged: dict[str, Bundle]) -> Library:
    """Return ``library`` with its descriptions replaced by those of ``merged``."""
    descriptions = {description_path(name): next(iter(bundle_files(bundle))) for name, bundle in merged.items()}
    return replace(library, other_files=tuple(descriptions.get(file.path, file) for file in library.other_files))
