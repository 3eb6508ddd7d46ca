"""Check the names of members: paths must stay inside the archive and be valid and distinct on all file systems."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_MAX_PART = 255  # bytes between slashes, the limit of file systems
_MAX_DEPTH = 32
_GIT = re.compile(r"(\.git|git~1)[. ]*(:.*)?", re.IGNORECASE | re.DOTALL)
"""A repository's folder in the spellings of all file systems; Git would run the hooks in it."""
_DRIVE = re.compile(r"[A-Za-z]:", re.ASCII)  # an absolute path on Windows


def plain_path(name: str) -> str:
    """Return the name of a member without ``.`` and empty parts: ``./codegen//host/`` is ``codegen/host``.

    A leading slash is lost and ``..`` stays: check the name with ``name_fault`` before. The result is empty for the
    archive itself (``./``).
    """
    return "/".join(part for part in name.split("/") if part not in {"", "."})


def name_fault(name: str, *, folder: bool = False) -> str | None:
    """Return the problem with the name of a member as a predicate for messages, or ``None`` if the name is valid.

    Refused are absolute paths, ``..``, control characters and backslashes, names that Git takes for a repository, and
    names that are too long or too deep. Whether two names collide is for ``Paths``.

    The predicate continues a sentence about the member, such as ``is ...``. ``folder`` permits the empty name that tar
    programs give to ``.``, the root.
    """
    parts = plain_path(name).split("/")
    # With a drive letter, Windows takes a path for absolute even without a slash.
    if name.startswith("/") or _DRIVE.match(plain_path(name)):
        return "has an absolute path"
    if ".." in parts:
        return "leads out of the archive"
    # Surrogates, which stand for bytes that are not UTF-8, are not printable either, so `encode` below cannot fail.
    if not name.isprintable() or "\\" in name:
        return "has a name with control characters, backslashes or invalid UTF-8"
    if any(_GIT.fullmatch(part) for part in parts):
        return "would be taken for a Git repository"
    if len(parts) > _MAX_DEPTH or any(len(part.encode()) > _MAX_PART for part in parts):
        return "has a name that is too long"
    return "has no name" if parts == [""] and not folder else None


def first_fault(paths: Iterable[str]) -> tuple[str, str] | None:
    """Return the first of ``paths`` that an archive with all of them cannot hold, and its problem, or ``None``.

    Both checks apply: ``name_fault`` for each path, and ``Paths`` for conflicts between them.
    """
    seen = Paths()
    for path in paths:
        fault = name_fault(path) or seen.fault(path)
        if fault is not None:
            return path, fault
    return None


class Paths:
    """The paths of one archive, which must be distinct on file systems that ignore case."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}

    def fault(self, path: str) -> str | None:
        """Add the plain relative ``path`` of a file; returns its conflict with the paths so far, or ``None``.

        Two paths are in conflict if some file system cannot hold both: they are equal, differ only in case or in the
        composition of letters (NFC), or one is a file where the other needs a folder. The text follows a name in a
        sentence: ``occurs twice in the archive``.
        """
        key = _folded(path)
        if key in self._files:
            other = self._files[key]
            return "occurs twice in the archive" if other == path else f"differs from {other!a} only in case"
        if key in self._folders:
            return f"is a file, but other files are in the folder {self._folders[key]!a}"
        self._files[key] = path
        return self._folder_fault(path)

    def _folder_fault(self, path: str) -> str | None:
        while "/" in path:
            path = path.rpartition("/")[0]
            key = _folded(path)
            if key in self._files:
                return f"is inside {self._files[key]!a}, which is a file"
            known = self._folders.setdefault(key, path)
            if known != path:
                return f"is inside {path!a}, which differs from {known!a} only in case"
        return None


def _folded(path: str) -> str:
    # NFC, because file systems of macOS take the composed and the decomposed spelling of a letter for the same name.
    return path.casefold() if path.isascii() else unicodedata.normalize("NFC", path).casefold()
