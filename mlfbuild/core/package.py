"""mlfbuild's own files, on which every output of a build depends."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).parents[1])
_IN_WHEELS = ("cmake/", "site_tools/")
"""Folders for CMake and SCons that ``force-include`` of pyproject.toml adds to the package."""


@functools.cache
def package_fingerprint() -> str:
    """Return the SHA-256, in hexadecimal, of mlfbuild's own files: each path in the package, and each content.

    It is computed once in a process. Keys of stored results contain it, so that another version of mlfbuild, or an
    edited one, makes archives and measurements again. A checkout and a wheel of it have the same: what only wheels
    contain, because a checkout has it elsewhere, is left out.
    """
    digest = hashlib.sha256()
    for name in _names():
        if name.startswith(_IN_WHEELS):
            continue
        digest.update(f"{name}\0".encode())
        with open(f"{_PACKAGE}/{name}", "rb", buffering=0) as file:  # noqa: PTH123 - a thousand Paths take 10 ms
            digest.update(hashlib.sha256(file.read()).digest())
    return digest.hexdigest()


@functools.cache
def package_files() -> tuple[Path, ...]:
    """Return mlfbuild's own files, sorted by their names as text, without Python's byte code."""
    return tuple(Path(_PACKAGE, name) for name in _names())


@functools.cache
def _names() -> tuple[str, ...]:
    """Return the paths of mlfbuild's own files relative to the package, with ``/``, sorted."""
    # Every null build lists a thousand files: os.walk asks the system for types once a folder, rglob once a file.
    found: list[str] = []
    for folder, folders, names in os.walk(_PACKAGE):
        folders[:] = [name for name in folders if name != "__pycache__"]
        below = folder[len(_PACKAGE) + 1 :].replace(os.sep, "/")
        found += (f"{below}/{name}" if below else name for name in names if not name.endswith(".pyc"))
    return tuple(sorted(found))


def table_of_package(path: Path) -> dict[str, Any]:
    """Return the values in ``path``, a TOML file of the package: data that a module keeps beside its code.

    The file is UTF-8. It belongs to the package, so that a mistake in it is a defect of mlfbuild, and ``ValueError``
    keeps its traceback.
    """
    return parsed_toml(path.read_text(encoding="utf-8"))


def parsed_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML file; raises ``ValueError`` with line and column in its text.

    Python before 3.11 has no reader of TOML: there, the package tomli reads it, which has the same interface.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    content: dict[str, Any] = tomllib.loads(text)
    return content
