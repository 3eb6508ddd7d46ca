"""Dependencies that several archives bring along: each has what its own modules need, the merged one has all of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from mlfbuild.core import CheckFailedError
from mlfbuild.library import Bundle, BundleFacts, Library, bundle_files, bundle_folder, bundles, description_path

_UNITED = ("sources", "include_dirs", "license_files")
"""What may differ between two parts of one library."""


def with_merged_bundles(libraries: Sequence[tuple[str, Library]]) -> list[tuple[str, Library]]:
    """Return ``libraries``, (name of the archive, library), with equal descriptions of each bundle that several have.

    They then speak of all that the archives have of it together. Raises ``CheckFailedError``, which names both
    archives, where two are not parts of one library; ``InputFileError`` for a description that is unsound.
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
    """Return all that stands in ``lists``, as first met: the order of include folders decides what is found."""
    return tuple(dict.fromkeys(item for each in lists for item in each))


def _refused(first: str, second: str, name: str, reason: str) -> CheckFailedError:
    return CheckFailedError(
        f"{first} and {second}: bring along different {name} in {bundle_folder(name)} ({reason}); bundle the same one "
        "in both"
    )


def _described(library: Library, merged: dict[str, Bundle]) -> Library:
    """Return ``library`` with the descriptions of ``merged`` in place of its own."""
    descriptions = {description_path(name): next(iter(bundle_files(bundle))) for name, bundle in merged.items()}
    return replace(library, other_files=tuple(descriptions.get(file.path, file) for file in library.other_files))
