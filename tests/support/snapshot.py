"""Folders that are built once for many tests.

Builds write absolute paths and compare times, so a folder is put back at its own path with the times of its files.
"""

import shutil
from pathlib import Path


def keep(folder: Path) -> None:
    """Copy ``folder`` for ``restore``."""
    shutil.copytree(folder, _copy(folder), symlinks=True)


def restore(folder: Path) -> None:
    """Put ``folder`` back as ``keep`` found it; it stays the same folder, because a test may have changed into it."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    shutil.copytree(_copy(folder), folder, symlinks=True, dirs_exist_ok=True)


def _copy(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-kept")
