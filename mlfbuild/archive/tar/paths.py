"""What files of an archive may be called: nothing that leads elsewhere, or that two file systems take unlike."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_MAX_PART = 255  # bytes between slashes, what file systems take
_MAX_DEPTH = 32
_DRIVE = re.compile(r"[A-Za-z]:", re.ASCII)  # of Windows, where such a path is absolute


def plain_path(name: str) -> str:
    """Return the name of a member without ``.`` and empty parts: ``./codegen//host/`` is ``codegen/host``."""
    return "/".join(part for part in name.split("/") if part not in {"", "."})


def name_fault(name: str, *, folder: bool = False) -> str | None:
    """Return what is wrong with the name of a member, ready to follow it in a message, or ``None``."""
    parts = plain_path(name).split("/")
    if name.startswith("/") or _DRIVE.match(plain_path(name)):
        return "is an absolute path"
    if ".." in parts:
        return "leads out of the archive"
    if not name.isprintable() or "\\" in name:
        return "has a name with control characters, backslashes or bad UTF-8"
    if len(parts) > _MAX_DEPTH or any(len(part.encode()) > _MAX_PART for part in parts):
        return "has too long a name"
    return "has no name" if parts == [""] and not folder else None


def first_fault(paths: Iterable[str]) -> tuple[str, str] | None:
    """Return the first of ``paths`` that an archive of them all cannot hold, and what is wrong with it, or ``None``."""
    seen = Paths()
    for path in paths:
        fault = name_fault(path) or seen.fault(path)
        if fault is not None:
            return path, fault
    return None


class Paths:
    """The paths of one archive, so that no two of them are one on a disk that does not tell case apart."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}

    def fault(self, path: str) -> str | None:
        """Add the plain relative ``path`` of a file; returns what is wrong with it beside the others, or ``None``."""
        key = _folded(path)
        if key in self._files:
            other = self._files[key]
            return "stands twice in the archive" if other == path else f"differs from {other!a} only in case"
        if key in self._folders:
            return f"is a file, but others lie in {self._folders[key]!a}"
        self._files[key] = path
        return self._folder_fault(path)

    def _folder_fault(self, path: str) -> str | None:
        while "/" in path:
            path = path.rpartition("/")[0]
            key = _folded(path)
            if key in self._files:
                return f"lies in {self._files[key]!a}, which is a file"
            known = self._folders.setdefault(key, path)
            if known != path:
                return f"lies in {path!a}, which differs from {known!a} only in case"
        return None


def _folded(path: str) -> str:
    return path.casefold() if path.isascii() else unicodedata.normalize("NFC", path).casefold()
