"""Unpack source archives, tar and zip, by the rules for model archives."""

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

_ZIP = b"PK\3\4"
_DAMAGES = (
    zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error, LZMAError, OSError, ValueError,
    KeyError,
)  # fmt: skip
"""The exceptions of ``zipfile`` for files that are damaged or compressed with an unknown method."""
_Files = Mapping[str, Callable[[], Content]]
"""A function that reads each file, by path."""


def unpack(archive: Path, folder: Path, where: str) -> None:
    """Unpack the file ``archive`` into the new folder ``folder``.

    A single top folder such as ``CMSIS-NN-7.0.0`` is left out. ``where`` names the archive in messages. Raises
    ``InputFileError`` for a file that is not a tar or zip, is damaged, contains no files, unpacks to more than
    ``MAX_INFLATED`` bytes, or has a member that is absolute, leads out, is a link, a device or encrypted, or collides
    with another one; and ``OSError``.
    """
    with open_binary(archive, "archive") as file:
        files = _without_top(_zipped(file, where) if file.read(len(_ZIP)) == _ZIP else _tarred(archive, where))
        if not files:
            raise _refused("archive-without-files", where, "the archive contains no files")
        for path in sorted(files):
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("xb") as out:
                out.writelines(chunks(files[path]()))


def _refused(code: str, where: str, reason: str) -> InputFileError:
    return InputFileError(code, place=where, reason=reason, hint="choose another archive of the library")


def _without_top(files: _Files) -> _Files:
    tops = {path.partition("/")[0] for path in files}
    top = f"{tops.pop()}/" if tops else ""
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
        raise _refused("zip-too-many-members", where, f"the archive has more than {MAX_MEMBERS} members")
    # zipfile reads no more of a member than the size that it states, so the sum is a limit.
    if sum(info.file_size for info in infos) > MAX_INFLATED:
        raise _refused("zip-too-large", where, f"the archive unpacks to more than {MAX_INFLATED >> 20} MiB")
    paths = Paths()
    for info in infos:
        fault = _fault(info) or (None if _is_folder(info) else paths.fault(plain_path(info.filename)))
        if fault is not None:
            raise _refused("zip-member-refused", f"{where}: member {quoted(info.orig_filename)}", f"the member {fault}")

    def reader(info: zipfile.ZipInfo) -> Callable[[], Content]:
        return lambda: spooled(_unzipped(file, info, where))

    return {plain_path(info.filename): reader(info) for info in infos if not _is_folder(info)}


def _is_folder(info: zipfile.ZipInfo) -> bool:
    return info.filename.endswith("/")  # is_dir fails for an empty name


def _fault(info: zipfile.ZipInfo) -> str | None:
    """Return why a member of a zip is refused, ``None`` for a plain file or folder."""
    kind = stat.S_IFMT(info.external_attr >> 16)  # of Unix; 0 if another system packed it
    if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
        return "is a symbolic link" if kind == stat.S_IFLNK else "is a device, a pipe or a socket"
    if info.flag_bits & 1:
        return "is encrypted"
    # The original name: zipfile cuts the other one at a zero byte.
    return name_fault(info.orig_filename, folder=_is_folder(info))


def _unzipped(file: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> Iterator[bytes]:
    try:
        with file.open(info) as member:
            while chunk := member.read(CHUNK):
                yield chunk
    except _DAMAGES as error:
        raise _damaged(where, error) from None


def _damaged(where: str, error: Exception) -> InputFileError:
    return _refused("zip-damaged", where, f"the zip archive is damaged: {error}")
