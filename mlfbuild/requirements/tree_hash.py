"""The content hash of a folder: one SHA-256 of the names and contents of all files and links in it.

``mlfbuild lock`` records it for each repository, and builds compute it again before they use files from the cache.
Permissions and times do not count, because copying a cache to another machine loses them; nor do empty folders.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mlfbuild.core import file_sha256, real_place, sha256


def tree_sha256(folder: Path) -> str:
    """Return the content hash of ``folder``, empty if it is missing or cannot be read.

    It is the SHA-256 of one line per file or link, sorted by path as bytes: ``f`` or ``l``, the SHA-256 of the content
    or of the link's target, and the path, separated by blanks and ended by a zero byte.
    """
    try:
        # By path, which follows the kind, the 64 digits and two blanks: scandir's order differs between file systems.
        lines = sorted(_lines(os.fsencode(folder), b""), key=lambda line: line[67:])
    except OSError:
        return ""
    return sha256(line + b"\0" for line in lines) if lines else ""


def _lines(folder: bytes, prefix: bytes) -> Iterator[bytes]:
    with os.scandir(folder) as found:
        entries = list(found)
    for entry in entries:
        path = prefix + entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _lines(entry.path, path + b"/")
        # Links are hashed as links: following them could leave the folder or never end.
        elif entry.is_symlink():
            yield b"l %s %s" % (sha256(os.readlink(entry.path)).encode(), path)  # noqa: PTH115 - the name may be any bytes
        elif entry.is_file():
            with open(entry.path, "rb") as file:  # noqa: PTH123 - the name may be any bytes
                yield b"f %s %s" % (file_sha256(file).encode(), path)
        else:
            # A device or a pipe has no content that could be hashed; the caller takes any error for a wrong hash.
            raise OSError(f"{path!r}: neither a file nor a folder")


def leading_out(folder: Path) -> str:
    """Return the first link in ``folder`` that leads out of it, empty if there is none.

    The path is relative to ``folder``. Absolute links count, even if they lead into the folder: it will be moved.
    """
    inside = real_place(folder)
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in (*folders, *files)):
            absolute = path.is_symlink() and path.readlink().is_absolute()
            if absolute or (path.is_symlink() and not real_place(path).is_relative_to(inside)):
                return str(path.relative_to(folder))
    return ""
