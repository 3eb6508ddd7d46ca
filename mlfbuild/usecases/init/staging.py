"""All files of a new project or none: they are made in a folder beside, and moved when the last one is there."""

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
    """Yield an empty folder; what is in it at the end of the block is moved into ``folder``.

    Nothing is left anywhere where the block or the move ends with an exception. Raises ``ConflictError`` where a file
    would be overwritten, ``StorageError``.
    """
    existing = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    if not existing.is_dir():
        raise ConflictError(f"{existing}: is a file, not a folder; name another place for the project")
    stage = existing / f".mlfbuild-init-{os.urandom(6).hex()}"
    try:
        _make(stage)
        yield stage
        _move(stage, folder)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _make(stage: Path) -> None:
    try:
        stage.mkdir()
    except OSError as error:
        raise storage_error(stage.parent, error) from None


def _move(stage: Path, folder: Path) -> None:
    files = sorted(path.relative_to(stage) for path in stage.rglob("*") if not path.is_dir())
    _refuse_conflicts(folder, files)
    folders: list[Path] = []
    try:
        for file in files:
            _make_parents(folder / file, folders)
            _refuse_conflicts(folder, [file])  # somebody may have been quicker
            (stage / file).rename(folder / file)
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
        if not os.path.lexists(stage / file):  # so it is ours, whenever Ctrl-C struck
            with contextlib.suppress(OSError):
                (folder / file).unlink()
    for made in reversed(folders):
        with contextlib.suppress(OSError):
            made.rmdir()


def _refuse_conflicts(folder: Path, files: Sequence[Path]) -> None:
    there = [path for file in files for path in _in_the_way(folder, file)]
    if there:
        raise ConflictError(_words(list(dict.fromkeys(there))))


def _in_the_way(folder: Path, file: Path) -> Iterator[Path]:
    if os.path.lexists(folder / file):
        yield folder / file
    for parent in list(file.parents)[:-1]:
        if os.path.lexists(folder / parent) and not (folder / parent).is_dir():
            yield folder / parent


def _words(there: Sequence[Path]) -> str:
    names = ", ".join(str(path) for path in there[:_SHOWN])
    more = f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else ""
    return f"{names}{more}: already there; init overwrites nothing: move it away, or name another folder"
