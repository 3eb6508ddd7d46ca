"""Source archives that were downloaded: tar and zip, with the rules of the reader of model archives."""

from __future__ import annotations

import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from lzma import LZMAError
from pathlib import Path
from typing import BinaryIO

from mlfbuild.archive.tar import MAX_INFLATED, MAX_MEMBERS, Paths, members, name_fault, plain_path
from mlfbuild.core import InputFileError, open_binary, quoted
from mlfbuild.library import CHUNK, Content, chunks, spooled
from mlfbuild.requirements.trees import FILE, Entry, blob_hash, checked, write_tree

ALGORITHM = "sha256"
"""Of the hashes of trees that no repository has."""
_ZIP = b"PK\3\4"
_ADVICE = "choose another archive of it, or pack one of plain files and folders"
_DAMAGES = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error, LZMAError, OSError, ValueError,
    KeyError,
)  # fmt: skip
"""What ``zipfile`` raises for files that are damaged or packed in a way that it does not know."""


def unpack(archive: Path, folder: Path, where: str) -> str:
    """Unpack the file ``archive`` to ``folder`` as a tree, see ``trees``, and return the tree's hash.

    A top folder that everything lies in, as ``CMSIS-NN-7.0.0``, is left out. ``where`` names the archive in messages.
    Raises ``InputFileError`` for what is no tar or zip, is damaged, holds nothing, unpacks to more than
    ``MAX_INFLATED`` bytes, or has a member that is absolute, leads out, is a link, a device or encrypted, stands twice
    or differs from another one in nothing but case; and ``OSError``.
    """
    with open_binary(archive, "archive") as file:
        found = _zipped(file, where) if file.read(len(_ZIP)) == _ZIP else _tarred(archive, where)
        if not found:
            raise InputFileError(f"{where}: holds no files; {_ADVICE}")
        return write_tree(_entries(_without_top(found), where), folder, where)


_Files = Mapping[str, Callable[[], Content]]
"""What reads each file, by path."""


def _entries(files: _Files, where: str) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    for path in sorted(files):
        content = files[path]()
        entry = Entry(FILE, blob_hash(chunks(content), len(content), ALGORITHM), path)
        yield next(checked([entry], where)), chunks(content)


def _without_top(files: _Files) -> _Files:
    tops = {path.partition("/")[0] for path in files}
    top = f"{tops.pop()}/"
    if tops or not all(path.startswith(top) for path in files):
        return files
    return {path[len(top) :]: read for path, read in files.items()}


def _tarred(archive: Path, where: str) -> _Files:
    found = members(open_binary(archive, "archive"), where)
    return {path: (lambda content=content: content) for path, content in found.items()}  # type: ignore[misc]


def _zipped(archive: BinaryIO, where: str) -> _Files:
    try:
        file = zipfile.ZipFile(archive)
        infos = file.infolist()
    except _DAMAGES as error:
        raise _damaged(where, error) from None
    if len(infos) > MAX_MEMBERS:
        raise InputFileError(f"{where}: has more than {MAX_MEMBERS} members, refused; {_ADVICE}")
    if sum(info.file_size for info in infos) > MAX_INFLATED:
        raise InputFileError(f"{where}: unpacks to more than {MAX_INFLATED >> 20} MiB, refused; {_ADVICE}")
    paths = Paths()
    for info in infos:
        fault = _fault(info) or (None if _is_folder(info) else paths.fault(plain_path(info.filename)))
        if fault is not None:
            raise InputFileError(f"{where}: member {quoted(info.orig_filename)}: {fault}, refused; {_ADVICE}")

    def reader(info: zipfile.ZipInfo) -> Callable[[], Content]:
        return lambda: spooled(_unzipped(file, info, where))

    return {plain_path(info.filename): reader(info) for info in infos if not _is_folder(info)}


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return info.filename.endswith("/")  # is_dir fails for an empty name


def _fault(info: zipfile.ZipInfo) -> str | None:
    """Return what is wrong with one member of a zip, ``None`` for a plain file or folder."""
    kind = stat.S_IFMT(info.external_attr >> 16)  # of Unix; 0 where another system packed it
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        return "is a symbolic link" if kind == stat.S_IFLNK else "is a device, a pipe or a socket"
    if info.flag_bits & 1:
        return "is encrypted"
    return name_fault(info.orig_filename, folder=_is_folder(info))


def _unzipped(file: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> Iterator[bytes]:
    try:
        with file.open(info) as member:
            while chunk := member.read(CHUNK):
                yield chunk
    except _DAMAGES as error:
        raise _damaged(where, error) from None


def _damaged(where: str, error: Exception) -> InputFileError:
    return InputFileError(f"{where}: is no sound zip archive: {error}; {_ADVICE}")
