"""Find the files that a pattern such as ``models/**/*.tflite`` matches, and the folders to watch for new ones.

Names that begin with a dot and ``__pycache__`` are ignored.
"""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

_CACHE = "__pycache__"


def is_pattern(entry: str, folder: Path) -> bool:
    """Return whether ``entry`` is a pattern and not a file or folder of that name in ``folder``.

    A file named ``model[1].tflite`` is one, although its name has the characters of a pattern. ``entry`` is relative to
    ``folder``, or absolute.
    """
    return glob.has_magic(entry) and not (folder / entry).exists()


def matching_files(pattern: str, folder: Path) -> Iterator[Path]:
    """Yield the files below ``folder`` that ``pattern`` matches; ``**`` matches any folders.

    The order is that of the file system. Hidden files are not matched by ``*``, and links to folders are followed. An
    absolute ``pattern`` ignores ``folder``.
    """
    names = glob.iglob(pattern, root_dir=folder, recursive=True)  # noqa: PTH207 - Path.glob() matches hidden names
    found = (folder / name for name in names)
    yield from (file for file in found if file.is_file() and _CACHE not in file.parts)


def folders_of_pattern(pattern: str, folder: Path) -> Iterator[Path]:
    """Yield every folder below ``folder`` in which ``pattern`` could match a new file.

    These are the folders to watch, as a new file in one of them may be another match. A pattern without ``*`` above its
    last part has one folder.
    """
    *above, _ = Path(pattern).parts
    base = folder.joinpath(*itertools.takewhile(lambda part: not glob.has_magic(part), above))
    deep = any(glob.has_magic(part) for part in above)
    yield from (inside for inside, _ in walk_visible(base)) if deep else [base]


def visible_files(folder: Path) -> Iterator[Path]:
    """Yield each file that ``walk_visible`` finds."""
    return (inside / name for inside, names in walk_visible(folder) for name in names)


def walk_visible(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """Yield ``folder`` and each folder below it, with the sorted names of its files.

    Hidden files and folders and ``__pycache__`` are left out. The order is the same on every file system, so that
    hashes of the result are.
    """
    for inside, folders, files in os.walk(folder):
        # In place, so that os.walk() does not enter the folders that are left out; sorted, because the order of a file
        # system is not the same everywhere.
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != _CACHE)
        yield Path(inside), sorted(name for name in files if not name.startswith("."))
