"""Folders that are built once for many tests.

Builds write absolute paths and compare times, so a folder is put back at its own path with the times of its files.
"""

from __future__ import annotations

import shutil
from pathlib import Path


def keep(folder: Path) -> None:
    """Copy ``folder`` for ``restore``."""
    shutil.copytree(folder, _copy(folder), symlinks=True)


def restore(folder: Path) -> None:
    """Put ``folder`` back as ``keep`` found it."""
    shutil.rmtree(folder)
    shutil.copytree(_copy(folder), folder, symlinks=True)


def _copy(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}-kept")
