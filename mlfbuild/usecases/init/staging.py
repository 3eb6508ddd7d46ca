"""Write all files of a new project or none: they are made in a temporary folder and moved when all are complete."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from mlfbuild.core import ConflictError, storage_error

_SHOWN = 5


@contextlib.contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Yield an empty folder, whose files are moved into ``folder`` at the end of the ``with`` block.

    If the block or the move ends with an exception, no file is left. Raises ``ConflictError`` if a file would be
    overwritten, and ``StorageError``.
    """
    existing = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    if not existing.is_dir():
        raise ConflictError(
            "folder-is-a-file", place=existing, reason="this is a file, not a folder", hint="choose another folder"
        )
    # In the nearest folder that exists, so that renaming stays within a file system. The folder of the project may not
    # exist, and must not be left if something fails.
    stage = existing / f".mlfbuild-init-{os.urandom(6).hex()}"
    try:
        try:
            stage.mkdir()
        except OSError as error:
            raise storage_error(stage.parent, error) from None
        yield stage
        _move(stage, folder)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _move(stage: Path, folder: Path) -> None:
    files = sorted(path.relative_to(stage) for path in stage.rglob("*") if not path.is_dir())
    # All conflicts at once, before anything is moved.
    _refuse_conflicts(folder, files)
    folders: list[Path] = []
    try:
        for file in files:
            _make_parents(folder / file, folders)
            _refuse_conflicts(folder, [file])  # another program may have written it meanwhile
            (stage / file).rename(folder / file)
    # Ctrl-C leaves no part of a project either.
    except BaseException as error:
        _take_back(stage, folder, files, folders)
        if isinstance(error, OSError):
            raise storage_error(folder / file, error) from None
        raise


def _make_parents(path: Path, made: list[Path]) -> None:
    for parent in reversed(path.parents):
        if not parent.is_dir():
            made.append(parent)
            parent.mkdir()


def _take_back(stage: Path, folder: Path, files: Sequence[Path], folders: Sequence[Path]) -> None:
    for file in files:
        if not os.path.lexists(stage / file):  # it was moved, even if Ctrl-C came before this was recorded
            with contextlib.suppress(OSError):
                (folder / file).unlink()
    # Inner folders first. One that contains another program's file is not empty and stays.
    for made in reversed(folders):
        with contextlib.suppress(OSError):
            made.rmdir()


def _refuse_conflicts(folder: Path, files: Sequence[Path]) -> None:
    there = [path for file in files for path in _in_the_way(folder, file)]
    if there:
        names = list(dict.fromkeys(map(str, there)))
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise ConflictError(
            "project-file-exists",
            place=f"{', '.join(names[:_SHOWN])}{more}",
            reason="already exists, and init overwrites nothing",
            hint="move it away, or choose another folder",
        )


def _in_the_way(folder: Path, file: Path) -> Iterator[Path]:
    if os.path.lexists(folder / file):
        yield folder / file
    # All but the last one, which is the project's own folder.
    for parent in list(file.parents)[:-1]:
        if os.path.lexists(folder / parent) and not (folder / parent).is_dir():
            yield folder / parent
