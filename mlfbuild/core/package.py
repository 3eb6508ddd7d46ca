"""mlfbuild's own files, on which every output of a build depends."""

from __future__ import annotations

import functools
import hashlib
import os
from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


@functools.cache
def package_fingerprint() -> str:
    """Return the SHA-256, in hexadecimal, of mlfbuild's own files: each path in the package, and each content.

    It is computed once in a process. Keys of stored results contain it, so that another version of mlfbuild, or an
    edited one, makes archives and measurements again.
    """
    digest = hashlib.sha256()
    for file in package_files():
        digest.update(f"{file.relative_to(_PACKAGE).as_posix()}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


@functools.cache
def package_files() -> tuple[Path, ...]:
    """Return mlfbuild's own files, sorted, without Python's byte code."""
    # Every null build lists a thousand files: os.walk asks the system for types once a folder, rglob once a file.
    found = (Path(folder, name) for folder, _, names in os.walk(_PACKAGE) for name in names if not name.endswith(".pyc"))
    return tuple(sorted(found))
