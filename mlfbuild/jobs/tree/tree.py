"""Write a folder of generated files: only changed files, never files of the user, safe to interrupt at any time."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from mlfbuild.core import ConflictError, abandoned, file_sha256, holds, storage_error, write_atomic
from mlfbuild.jobs.tree.record import (
    RECORD,
    FileRecord,
    Record,
    is_file,
    is_folder,
    reachable,
    read_record,
    recorded_files,
)
from mlfbuild.library import Content, chunks, is_kernel_header

# All files of a foreign folder may be in conflict.
_SHOWN_CONFLICTS = 10


@dataclass(frozen=True)
class UnpackResult:
    """The result of writing a tree; paths are relative to the tree."""

    written: tuple[str, ...]
    unchanged: tuple[str, ...]
    removed: tuple[str, ...]
    edited: tuple[str, ...] = ()
    """The written files that were edited since mlfbuild last wrote them."""
    recorded: bool = False
    """Whether the record was written, because the tree changed, or was made from another archive, or had no record."""


def write_tree(directory: Path, files: Mapping[str, Content], record: Record) -> UnpackResult:
    """Write ``files`` (relative path -> content) and their ``record`` to ``directory``.

    Files that do not change keep their time. Files that an earlier record lists and ``files`` does not are removed,
    with folders that become empty. Raises ``ConflictError``, before anything is changed, if a file would be overwritten
    that mlfbuild did not write or if a path contains a symbolic link, and ``StorageError``. After an error or if the
    process is killed, the next call completes the tree.
    """
    _refuse_other_kinds(directory)
    old = read_record(directory)
    owned = frozenset(old.files if old else ())
    if old is None or not old.complete:
        _remove_leftovers(directory, [RECORD, *owned])
    # All conflicts are found before the first change, so that an error leaves the tree as it was.
    _refuse_conflicts(directory, files, owned)
    # By content, not by the record: a file that already has the right bytes is not written, even if the user wrote it.
    changed = [path for path, content in files.items() if not holds(directory / path, chunks(content))]
    edited = _edited(directory, changed, old)
    stale = [path for path in sorted(owned - files.keys()) if reachable(directory, path) and is_file(directory / path)]
    if changed or stale:
        both = {**(old.files if old else {}), **record.files}
        # The record first, with the files of both states: a file that is written before it is recorded would be taken
        # for one of the user after a kill.
        write_atomic(directory / RECORD, replace(record, files=both, complete=False).to_json())
        # Before writing: a file that goes may have the place of a folder that comes.
        _remove(directory, stale)
        for path in changed:
            _remove_empty_folders(directory / path)
            if old is not None or not _linked(directory, path, files[path]):
                write_atomic(directory / path, chunks(files[path]))
    recorded = bool(changed or stale or old != record)
    if recorded:
        # Last: a complete record is the promise that all files before it are in place.
        write_atomic(directory / RECORD, record.to_json())
    unchanged = files.keys() - set(changed)
    kept = tuple(path for path in files if path in unchanged)
    return UnpackResult(tuple(changed), kept, tuple(stale), edited, recorded)


def _linked(directory: Path, path: str, content: Content) -> bool:
    """Make the kernel header ``path`` of a new tree a hard link to that of a tree beside it; return whether it is one.

    Most bytes of small models are kernels, which all models of a target have. Only in a new tree: a link has the time
    of its file, and Ninja would take an object that was compiled with another header for newer than it.
    """
    if not is_kernel_header(path.removeprefix("codegen/")):
        return False
    for sibling in directory.parent.glob(f"*/{path}"):
        if is_file(sibling) and holds(sibling, chunks(content)):
            try:
                (directory / path).parent.mkdir(parents=True, exist_ok=True)
                (directory / path).hardlink_to(sibling)
            except OSError:  # a file system without links, or one file with too many
                return False
            return True
        return False  # of another version: the next ones are probably as well
    return False


def _edited(directory: Path, changed: Iterable[str], old: Record | None) -> tuple[str, ...]:
    """Return those of ``changed`` that exist and differ from ``old``; none if ``old`` is incomplete."""
    if old is None or not old.complete:
        return ()
    paths = [path for path in changed if path in old.files and is_file(directory / path)]
    return tuple(path for path in paths if _is_edited(directory / path, old.files[path]))


def _is_edited(path: Path, expected: FileRecord) -> bool:
    try:
        with path.open("rb") as file:
            return FileRecord(file_sha256(file), file.tell()) != expected
    except OSError:
        return True


def check_tree(directory: Path, files: Mapping[str, Content | None]) -> None:
    """Raise ``ConflictError`` if writing ``files`` would overwrite files that mlfbuild did not write.

    This is for checks before anything else is written; a content of ``None`` is not known yet. ``write_tree`` checks
    again.
    """
    _refuse_other_kinds(directory)
    old = read_record(directory)
    _refuse_conflicts(directory, files, frozenset(old.files if old else ()))


def remove_tree(directory: Path) -> tuple[str, ...]:
    """Remove the files in ``directory`` that mlfbuild wrote, and return their paths; empty folders are also removed.

    Other files stay, and so do their folders. Raises ``StorageError``.
    """
    # The record is the last of them, so that a removal that is interrupted can be repeated.
    paths = [path.relative_to(directory).as_posix() for path in recorded_files(directory)]
    _remove(directory, paths)
    if paths:
        with contextlib.suppress(OSError):
            directory.rmdir()
    return tuple(path for path in paths if path != RECORD)


def _remove(directory: Path, paths: Iterable[str]) -> None:
    for name in paths:
        try:
            (directory / name).unlink(missing_ok=True)
        except OSError as error:
            raise storage_error(directory / name, error) from None
        with contextlib.suppress(OSError):  # stops at a folder that is not empty
            for parent in list(PurePosixPath(name).parents)[:-1]:
                (directory / parent).rmdir()


def _remove_leftovers(directory: Path, paths: Iterable[str]) -> None:
    """Remove temporary files of writes that were killed."""
    for path in paths:
        if reachable(directory, path):
            # Temporary files are never recorded, so only their names show whose they are.
            leftovers = [item for item in abandoned(directory / path) if is_file(item)]
            _remove(directory, [item.relative_to(directory).as_posix() for item in leftovers])


def _remove_empty_folders(path: Path) -> None:
    """Remove the folder ``path`` and its empty subfolders; a plain file stays."""
    if not is_folder(path):
        return
    try:
        for child in list(path.iterdir()):
            _remove_empty_folders(child)
        path.rmdir()
    except OSError as error:
        raise storage_error(path, error) from None


# Conflicts -----------------------------------------------------------------------------------------------------------


def _refuse_other_kinds(directory: Path) -> None:
    if os.path.lexists(directory) and not directory.is_dir():
        raise ConflictError(
            "tree-is-not-a-folder",
            place=directory,
            reason="is not a folder",
            hint="move it away, or choose another folder",
        )


def _refuse_conflicts(directory: Path, files: Mapping[str, Content | None], owned: frozenset[str]) -> None:
    conflicts = sorted({c for path in files if (c := _conflict(directory, path, files, owned))})
    if conflicts:
        shown = ", ".join(conflicts[:_SHOWN_CONFLICTS])
        more = f" and {len(conflicts) - _SHOWN_CONFLICTS} more" if len(conflicts) > _SHOWN_CONFLICTS else ""
        raise ConflictError(
            "foreign-files-in-tree",
            place=directory,
            reason=f"contains files that mlfbuild did not write and would overwrite: {shown}{more}",
            hint="move them away, or choose another folder",
        )


def _conflict(directory: Path, path: str, files: Mapping[str, Content | None], owned: frozenset[str]) -> str | None:
    """Return what prevents writing ``files[path]`` to ``path``, or ``None``.

    A plain file is a conflict unless mlfbuild wrote it or it already has the same content. A folder is one if it
    contains a file that is not removed. Anything else, such as a symbolic link, always is.
    """
    for parent in _parents(path):
        if is_folder(directory / parent):
            continue
        # A file of an earlier tree may be in the way of a folder of the new one; it is removed first.
        goes = is_file(directory / parent) and parent in owned and parent not in files
        return None if goes or not os.path.lexists(directory / parent) else parent
    target = directory / path
    if is_file(target):
        content = files[path]
        return None if path in owned or (content is not None and holds(target, chunks(content))) else path
    if is_folder(target):
        return next((name for name in _contents(directory, path) if name not in owned or name in files), None)
    return path if os.path.lexists(target) else None


def _parents(path: str) -> list[str]:
    """Return the folders between the tree and the file ``path`` in it, outermost first."""
    return [str(parent) for parent in reversed(list(PurePosixPath(path).parents)[:-1])]


def _contents(directory: Path, folder: str) -> Iterator[str]:
    """Yield everything below ``folder`` that is not a folder; one that cannot be read yields itself."""
    try:
        names = sorted(path.name for path in (directory / folder).iterdir())
    except OSError:
        yield folder
        return
    for name in names:
        path = f"{folder}/{name}"
        if is_folder(directory / path):
            yield from _contents(directory, path)
        else:
            yield path
