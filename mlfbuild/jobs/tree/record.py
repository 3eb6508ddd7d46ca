"""Read and write ``RECORD.json``, which lists the files that mlfbuild wrote to a folder, with hashes of their content.

mlfbuild restores the files in the list if they are missing or edited, and removes them when they are no longer needed.
It never touches other files. While a tree is being changed, the record lists the files of the old and of the new state
and is marked as incomplete, so that the next build restores a tree whose build was stopped half-way.
"""

from __future__ import annotations

import errno
import functools
import json
import os
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import ConflictError, InputFileError, file_sha256, sha256
from mlfbuild.library import Content, Fields, chunks, parse_json

RECORD = "RECORD.json"
# The key shows who wrote the file, and its number how to read it.
_FORMAT_KEY = "mlfbuild_record"
_FORMAT = 1
# Opening a buffered file costs more than the hash of a small one, and nearly all are small.
_SMALL = 65536
"""Files of at most this many bytes are read in one piece."""


@dataclass(frozen=True)
class FileRecord:
    """One file: its content's SHA-256 (hexadecimal) and bytes."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Record:
    """The files that mlfbuild wrote to one folder."""

    archive: str
    """SHA-256 of the archive that was unpacked; empty for the folder of a target."""
    files: Mapping[str, FileRecord]
    """Path, relative to the folder -> file; without ``RECORD.json`` itself."""
    complete: bool = True
    models: tuple[str, ...] = ()
    """The models whose trees are in the folder, if it is the folder of a target."""

    @classmethod
    def of(cls, files: Mapping[str, Content], archive: str = "", models: tuple[str, ...] = ()) -> Record:
        """Return the record of ``files`` (path -> content).

        All contents are read for their hashes. ``archive`` is the SHA-256 of the archive, and ``models`` are the names
        for the folder of a target; the record is marked as complete.
        """
        records = {path: FileRecord(sha256(chunks(files[path])), len(files[path])) for path in sorted(files)}
        return cls(archive, records, models=models)

    def to_json(self) -> bytes:
        """Return the text of ``RECORD.json``."""
        fields: dict[str, object] = {
            _FORMAT_KEY: _FORMAT,
            "complete": self.complete,
            # Sorted, so that equal trees have equal records and Git shows no changes.
            "files": {path: vars(self.files[path]) for path in sorted(self.files)},
        }
        if self.archive:
            fields["archive"] = self.archive
        if self.models:
            fields["models"] = list(self.models)
        return json.dumps(fields, indent=2, sort_keys=True).encode() + b"\n"


def read_record(directory: Path) -> Record | None:
    """Return the record of ``directory``, or ``None`` if there is none or it is damaged.

    Without a valid record, files that differ from those to write count as not written by mlfbuild. Raises
    ``ConflictError`` if ``RECORD.json`` is not a file of mlfbuild, and ``InputFileError`` if a later version of
    mlfbuild wrote it.
    """
    path = directory / RECORD
    if not is_file(path):
        if path.exists() or path.is_symlink():
            raise ConflictError(
                "record-is-not-a-file",
                place=path,
                reason="is not a plain file, so mlfbuild did not write it",
                hint="move it away",
            )
        return None
    try:
        fields = Fields(parse_json(path.read_bytes(), str(path)), str(path))
    # A damaged record is what a full disk leaves. The tree is then written again over files of equal content; other
    # files count as those of the user.
    except (InputFileError, OSError):
        return None
    # Python wheels also have a file RECORD, and any tool may write a JSON file of this name: it is not ours to replace.
    if _FORMAT_KEY not in fields:
        reason = "is not a record of mlfbuild"
        raise ConflictError("not-a-record", place=path, reason=reason, hint="move it away, or choose another folder")
    try:
        version = fields.integer(_FORMAT_KEY)
        record = _record(fields) if version == _FORMAT else None
    except InputFileError:
        return None
    if record is None and version > _FORMAT:
        raise InputFileError(
            "record-of-later-version",
            place=path,
            reason=f"a later version of mlfbuild wrote it (format {version})",
            hint="delete the folder",
        )
    return record


def _record(fields: Fields) -> Record:
    files = fields.member("files")
    records = {name: _file_record(files, name) for name in files.unsorted_names()}
    models = fields.texts("models")
    # The record may come from a repository: a path that leads out of the folder must not make a build delete files
    # there.
    if not all(_stays_inside(model) and "/" not in model for model in models):
        raise fields.error("models", "leads out of the folder")
    return Record(fields.text("archive", default=""), records, fields.flag("complete"), models)


def _file_record(files: Fields, name: str) -> FileRecord:
    if not _stays_inside(name):
        raise files.error(name, "leads out of the folder")
    entry = files.member(name)
    return FileRecord(entry.text("sha256"), entry.integer("size"))


@functools.lru_cache(maxsize=4096)  # trees of one build share most file names
def _stays_inside(path: str) -> bool:
    parts = path.split("/")
    return path != RECORD and not any(part in {"", ".", ".."} or "\0" in part for part in parts)


def recorded_files(directory: Path) -> list[Path]:
    """Return the existing files in ``directory`` that mlfbuild wrote, ``RECORD.json`` last; empty without a record.

    A symbolic link in place of a recorded file or folder was not written by mlfbuild and is not followed.
    """
    record = read_record(directory)
    if record is None:
        return []
    names = [name for name in sorted(record.files) if reachable(directory, name) and is_file(directory / name)]
    return [directory / name for name in (*names, RECORD)]


def tree_damage(directory: Path) -> list[str]:
    """Return a line for each difference between ``directory`` and its record; empty if there is none.

    Every recorded file is read and its hash compared, so edits that kept size and time are found. Files that the record
    does not list are ignored. Errors of reading are also differences: nothing is raised::

        ["build/mlf/m4/kws/mlf.cmake: was edited", "build/mlf/m4/kws/codegen/host/src/kws.c: is missing"]
    """
    try:
        record = read_record(directory)
    except (ConflictError, InputFileError) as error:
        return [str(error)]
    if record is None:
        return [f"{directory / RECORD}: is missing or damaged"]
    if not record.complete:
        return [f"{directory / RECORD}: the last unpacking was stopped half-way"]
    # For speed, paths are strings and each folder is checked once: builds check thousands of files at their start.
    top = f"{directory}{os.sep}"
    folders = {name.rpartition("/")[0] for name in record.files}
    lost = {folder for folder in folders if folder and not reachable(directory, f"{folder}/file")}
    return [
        f"{top}{name}: {problem}"
        for name, expected in record.files.items()
        if (problem := _damage(top + name, expected, lost=name.rpartition("/")[0] in lost))
    ]


def _damage(path: str, expected: FileRecord, *, lost: bool) -> str | None:
    if lost:
        return "is missing"
    try:
        # O_NOFOLLOW: between lstat() and open() the file could become a link. O_NONBLOCK: opening a pipe would wait for
        # a writer. Windows has neither flag.
        if sys.platform == "win32":
            if not is_file(path):
                return "is missing"
            file = os.open(path, os.O_RDONLY | os.O_BINARY)
        else:
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        gone = error.errno in {errno.ENOENT, errno.ELOOP}  # ELOOP: replaced by a symbolic link
        return "is missing" if gone else f"cannot be read: {error.strerror}"
    try:
        state = os.fstat(file)
        # After open, on the descriptor: the answer cannot change any more.
        if not stat.S_ISREG(state.st_mode):
            return "is missing"
        # The size first: an edited file mostly has another one, and then its content need not be read.
        same = state.st_size == expected.size and _sha256(file, state.st_size) == expected.sha256
        return None if same else "was edited"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    finally:
        os.close(file)


def _sha256(file: int, size: int) -> str:
    if size <= _SMALL:
        # One byte more than expected, so that a file that is growing is not taken for whole.
        return sha256(os.read(file, size + 1))
    with os.fdopen(file, "rb", closefd=False) as whole:
        return file_sha256(whole)


def is_file(path: Path | str) -> bool:
    """Return whether ``path`` is a plain file, not a symbolic link to one."""
    return _has_type(path, stat.S_ISREG)


def is_folder(path: Path | str) -> bool:
    """Return whether ``path`` is a folder, not a symbolic link to one."""
    return _has_type(path, stat.S_ISDIR)


def _has_type(path: Path | str, test: Callable[[int], bool]) -> bool:
    try:
        return test(os.lstat(path).st_mode)
    except OSError:
        return False


def reachable(directory: Path, name: str) -> bool:
    """Return whether all folders between ``directory`` and the file ``name`` in it exist and are not symbolic links.

    ``name`` is relative, with ``/`` between its parts. A link would lead a write or a removal out of the folder.
    """
    parts = name.split("/")
    return all(is_folder(f"{directory}{os.sep}{'/'.join(parts[:end])}") for end in range(1, len(parts)))
