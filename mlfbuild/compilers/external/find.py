"""Find the program that a project file names, and tell it of the model file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mlfbuild.core import ToolNotFoundError


def find_program(word: str, folder: Path, what: str) -> str:
    """Return the absolute path of the program ``word``: a name is looked for in PATH, a path starts at ``folder``.

    ``what`` begins the message of the ``ToolNotFoundError`` where there is none that can be run.
    """
    if os.sep not in word:
        path = shutil.which(word)
        if path is None:
            raise ToolNotFoundError(f"{what}: {word}: program not found; install it, or write its path")
        return str(Path(path).absolute())
    path = str((folder / word).absolute())  # links are kept: those of virtual environments mean something
    if not Path(path).is_file():
        raise ToolNotFoundError(f"{what}: {word}: no such program; write its path from the project file's folder on")
    if not os.access(path, os.X_OK):
        raise ToolNotFoundError(f"{what}: {word}: is not executable; run chmod +x, or name its interpreter first")
    return path


def source_word(source: Path, folder: Path) -> str:
    """Return how a program that runs in ``folder`` is told of the file ``source``.

    Without a machine's paths where that can be, as the program may write into its archive what it was told.
    """
    relative = os.path.relpath(source, folder)
    word = str(source.absolute()) if relative.startswith(os.pardir) else relative
    return f".{os.sep}{word}" if word.startswith("-") else word
