"""Which release of a library a folder holds, by what its own headers say: copies and archives have no Git to ask."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from mlfbuild.core import ProjectFileError
from mlfbuild.library import KnownDependency, known_dependency
from mlfbuild.project import Provision
from mlfbuild.requirements.types import Source
from mlfbuild.requirements.versions import same_version

_REVISION = re.compile(rb"\$Revision:\s*(V\.[\d.]+)")
_BEGINNING = 4096
"""Bytes in which a header names its revision."""


def check_release(source: Source, provision: Provision) -> None:
    """Raise ``ProjectFileError`` where the headers of ``source`` are those of another release than is stated.

    That is where all of them are known, and both releases are: what lies between two releases is nobody's mistake.
    """
    known = known_dependency(source.name)
    if known is None or not any(same_version(source.version, release) for release in known.revisions):
        return
    found = _release_of(source, known)
    if found and not same_version(found, source.version):
        stated = f"{provision.place} is stated to be {source.version}, but its headers are those of {found}"
        advice = f"correct the version, or provide {source.version}"
        raise ProjectFileError([f"{provision.where or source.name}: {stated}; {advice}"])


def _release_of(source: Source, known: KnownDependency) -> str:
    """Return the release that all marked headers are of, empty where there is none."""
    headers = {PurePosixPath(path).name: content for path, content in source.files.items() if path.endswith(".h")}
    for release, marks in known.revisions.items():
        if marks.keys() <= headers.keys() and all(_revision(bytes(headers[name])) == marks[name] for name in marks):
            return release
    return ""


def _revision(header: bytes) -> str:
    found = _REVISION.search(header[:_BEGINNING])
    return found[1].decode() if found else ""
