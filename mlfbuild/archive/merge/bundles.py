"""Required libraries that several of the merged archives bundle: the merged archive has the files of all of them."""

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
    """Return ``libraries``, (name of the archive, content), with equal descriptions of bundles that several have.

    The descriptions then cover the files of all archives. Raises ``CheckFailedError``, which names both archives, if
    two bundles are not parts of one library, and ``InputFileError`` for a damaged description.
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
    """Return ``library`` with the descriptions of ``merged`` in place of its own."""
    descriptions = {description_path(name): next(iter(bundle_files(bundle))) for name, bundle in merged.items()}
    return replace(library, other_files=tuple(descriptions.get(file.path, file) for file in library.other_files))
