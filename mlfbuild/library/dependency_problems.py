"""Check external dependencies against the pre-RFC and TVM."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from mlfbuild.library.value import ExternalDependency

ARCHIVE_FOLDER = "mlf_path"
URL_TYPES = ("path", "url", "git", ARCHIVE_FOLDER)
"""A folder of the build machine, a file to download, a repository, and, only in TVM, a folder of the archive."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.+|[\w.-]+@[\w.-]+:.+", re.ASCII)


def archive_folder(dependency: ExternalDependency) -> PurePosixPath | None:
    """Return the folder of the archive with ``dependency``, ``None`` if it is not in the archive.

    The path is that of the metadata and may lead out of the archive; ``problems`` reports that.
    """
    return PurePosixPath(dependency.url) if dependency.url_type == ARCHIVE_FOLDER else None


def problems(dependency: ExternalDependency) -> Sequence[str]:
    """Return the problems of ``dependency``, each with its key; empty if it is valid.

    Each is a clause such as ``url is empty``. They are those of version 7 of the format; nothing is looked up, so a
    valid URL may lead nowhere.
    """
    # White space counts as empty: it would make a folder or a target without a name.
    found = [f"{key} is empty" for key in ("short_name", "url", "url_type") if not getattr(dependency, key).strip()]
    if any(not getattr(dependency, key).isprintable() for key in ("short_name", "url", "url_type", "version_spec")):
        found.append("a value holds control characters")
    kind = dependency.url_type
    if kind.strip() and kind not in URL_TYPES:
        found.append(f"url_type {kind!a} is none of {', '.join(URL_TYPES)}")
    if kind == "git" and not dependency.version_spec.strip():
        found.append("version_spec is missing, and url_type git needs a branch, a tag or a commit")
    if dependency.url.strip():
        found.extend(_url_problems(dependency))
    return found


def _url_problems(dependency: ExternalDependency) -> Sequence[str]:
    url, kind = dependency.url, dependency.url_type
    # Backslashes count as separators, because Windows takes them for such.
    parts = url.replace("\\", "/").split("/")
    if kind == "url" and not _SCHEME.fullmatch(url):
        return [f"url {url!a} has no scheme such as https://"]
    if kind == ARCHIVE_FOLDER and (url.startswith("/") or ".." in parts or _SCHEME.fullmatch(url)):
        return [f"url {url!a} is not a folder of the archive, such as ./runtime"]
    return []
