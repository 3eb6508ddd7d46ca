"""Recognise tar files by their first bytes, because archives may have any suffix, such as ``kws.model-lib``."""

from __future__ import annotations

from pathlib import Path

_MAGIC, _MAGIC_AT = b"ustar", 257
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0")


def looks_like_archive(path: Path) -> bool:
    """Return whether the file ``path`` starts like a tar file, plain or compressed; False if it cannot be read."""
    start = _start(path)
    return start.startswith(_COMPRESSED) or start[_MAGIC_AT:] == _MAGIC


def is_plain_tar(path: Path) -> bool:
    """Return whether the file ``path`` starts like a tar file that is not compressed; False if it cannot be read."""
    return _start(path)[_MAGIC_AT:] == _MAGIC


def _start(path: Path) -> bytes:
    """Return the first bytes of the file, up to the end of the magic number; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_MAGIC_AT + len(_MAGIC))
    except OSError:
        return b""
