"""Values with paths, from one machine to another: pickles in which each path is relative to a known folder.

A path of the sender is below mlfbuild's own folder, below the root of its project, or elsewhere. The receiver puts the
first below its own mlfbuild, and the others below one temporary folder, so that relations between files of a project
stay. Which of these files travel is decided elsewhere: a path is only a name.
"""

from __future__ import annotations

import functools
import io
import pickle
from pathlib import Path, PurePath
from typing import Any

import mlfbuild
from mlfbuild.targets import cmake_folder


@functools.cache  # each path of each task asks
def _own_folders() -> dict[str, Path]:
    # In a checkout, the CMake files are beside the package.
    return {"package": Path(mlfbuild.__file__).parent, "cmake": cmake_folder()}


def place_in_folder(path: Path, root: Path) -> str:
    """Return where ``path``, a file of a project in ``root``, is in the receiver's folder, with forward slashes."""
    real = path.absolute()
    if real.is_relative_to(root.absolute()):
        return f"project/{real.relative_to(root.absolute()).as_posix()}"
    return f"elsewhere/{real.relative_to(real.anchor).as_posix()}"


def own_place(path: Path) -> tuple[str, str] | None:
    """Return which of mlfbuild's own folders ``path`` is in, and where; ``None`` if it is in none of them."""
    real = path.absolute()
    for kind, folder in _own_folders().items():
        if real.is_relative_to(folder):
            return kind, real.relative_to(folder).as_posix()
    return None


def packed(value: Any, root: Path) -> bytes:
    """Return ``value`` as a pickle for ``unpacked``; its paths are those of a project in ``root``."""
    buffer = io.BytesIO()
    _Pickler(buffer, root).dump(value)
    return buffer.getvalue()


def unpacked(data: bytes, folder: Path) -> Any:
    """Return the value of ``packed``, with the paths of its project in ``folder``.

    A pickle can run any code: only clients of the farm may send one, and Dask unpickles what they send anyway.
    """
    return _Unpickler(io.BytesIO(data), folder).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, root: Path) -> None:
        super().__init__(file)
        self._root = root

    def persistent_id(self, value: Any) -> tuple[str, str] | None:
        """Return the name of ``value`` for the receiver if it is a path; ``None`` lets pickle write it."""
        if not isinstance(value, PurePath):
            return None
        return own_place(Path(value)) or ("folder", place_in_folder(Path(value), self._root))


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, folder: Path) -> None:
        super().__init__(file)
        self._folder = folder

    def persistent_load(self, name: Any) -> Path:
        """Return the path that ``name`` stands for here."""
        kind, relative = name
        return {**_own_folders(), "folder": self._folder}[kind] / str(relative)
