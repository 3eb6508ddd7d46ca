"""Find the program that a project file names, and the word that names the model file on its command line."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from mlfbuild.core import ToolNotFoundError


def find_program(word: str, folder: Path, what: str) -> str:
    """Return the absolute path of the program ``word``: a name is searched in PATH, a path is relative to ``folder``.

    Raises ``ToolNotFoundError``, whose place begins with ``what``, if there is no such executable.
    """
    if os.sep not in word:
        path = shutil.which(word)
        if path is None:
            raise ToolNotFoundError(
                "program-not-found",
                place=f"{what}: {word}",
                reason="program not found",
                hint="install it, or write its path",
            )
        return str(Path(path).absolute())
    path = str((folder / word).absolute())  # not resolved: the links of virtual environments matter
    if not Path(path).is_file():
        raise ToolNotFoundError(
            "program-not-found",
            place=f"{what}: {word}",
            reason="no such file",
            hint="write its path relative to the project file's folder",
        )
    if not os.access(path, os.X_OK):
        raise ToolNotFoundError(
            "program-not-executable",
            place=f"{what}: {word}",
            reason="is not executable",
            hint="run chmod +x, or name its interpreter first",
        )
    return path


def source_word(source: Path, folder: Path) -> str:
    """Return the word that names the file ``source`` to a program that runs in ``folder``.

    It is relative if possible, because the program may write it into its archive.
    """
    relative = os.path.relpath(source, folder)
    word = str(source.absolute()) if relative.startswith(os.pardir) else relative
    return f".{os.sep}{word}" if word.startswith("-") else word
