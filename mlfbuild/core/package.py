"""mlfbuild's own files, on which every output of a build depends."""

from __future__ import annotations

import functools
import hashlib
import sys
from pathlib import Path
from typing import Any

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
    return tuple(sorted(path for path in _PACKAGE.rglob("*") if path.is_file() and path.suffix != ".pyc"))


def table_of_package(path: Path) -> dict[str, Any]:
    """Return the values in ``path``, a TOML file of the package: data that a module keeps beside its code."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    return table
