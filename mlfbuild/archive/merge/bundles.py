"""Merge the libraries that several archives bundle: each has the files for its modules, the result has all of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from mlfbuild.core import CheckFailedError
from mlfbuild.library import (
    DifferentBundlesError,
    Library,
    ResolvedLibrary,
    bundle_files,
    bundles,
    description_path,
    united,
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
        raise CheckFailedError(
            "merged-bundles-differ",
            place=f"{error.first} and {error.second}",
            reason=f"the archives bundle different libraries named {parts[0][1].name}: {error.reason}",
            hint="bundle the same library in both",
        ) from None


def _described(library: Library, merged: dict[str, ResolvedLibrary]) -> Library:
    """Return ``library`` with its descriptions replaced by those of ``merged``."""
    descriptions = {description_path(name): next(iter(bundle_files(bundle))) for name, bundle in merged.items()}
    return replace(library, other_files=tuple(descriptions.get(file.path, file) for file in library.other_files))
