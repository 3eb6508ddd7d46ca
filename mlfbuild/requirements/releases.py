"""Determine the release of a library by the ``$Revision`` lines of its headers, for copies without Git's data."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from mlfbuild.core import Diagnostic, ProjectFileError
from mlfbuild.library import KnownLibrary, ResolvedLibrary, known_library
from mlfbuild.project import Provider
from mlfbuild.requirements.versions import same_version

_REVISION = re.compile(rb"\$Revision:\s*(V\.[\d.]+)")
_BEGINNING = 4096
"""Bytes of a header that are searched for its revision."""


def check_release(library: ResolvedLibrary, provider: Provider) -> None:
    """Raise ``ProjectFileError`` if the headers of ``library`` are those of another release than stated.

    Only if the stated release and that of the headers are known: commits between two releases are not refused.
    """
    known = known_library(library.name)
    if known is None or not any(same_version(library.version, release) for release in known.revisions):
        return
    found = _release_of(library, known)
    if found and not same_version(found, library.version):
        raise ProjectFileError(
            [
                Diagnostic(
                    "release-other-headers",
                    place=provider.where or library.name,
                    reason=f"{provider.place} is stated to be {library.version}, but its headers are those of {found}",
                    hint=f"correct the version, or provide {library.version}",
                )
            ]
        )


def _release_of(library: ResolvedLibrary, known: KnownLibrary) -> str:
    """Return the release to which all marked headers belong, empty if there is none."""
    headers = {PurePosixPath(path).name: content for path, content in library.files.items() if path.endswith(".h")}
    for release, marks in known.revisions.items():
        if marks.keys() <= headers.keys() and all(_revision(bytes(headers[name])) == marks[name] for name in marks):
            return release
    return ""


def _revision(header: bytes) -> str:
    found = _REVISION.search(header[:_BEGINNING])
    return found[1].decode() if found else ""
