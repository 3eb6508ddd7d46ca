"""Open and write archives, as files or as bytes in memory."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path

from mlfbuild.archive import tar
from mlfbuild.archive.epoch import source_date
from mlfbuild.archive.layout import PARAMS_FORMS, archive_files
from mlfbuild.archive.read import read_files
from mlfbuild.core import (
    InputFileError,
    Trust,
    better_error,
    check_signed,
    file_sha256,
    open_binary,
    read_regular,
    sha256,
    write_atomic,
)
from mlfbuild.library import Library


def open_archive(path: Path, trust: Trust | None = None) -> Library:
    """Return the library in the archive file ``path``; plain, gzip, bzip2 and xz tars are recognised by content.

    With ``trust``, nothing is parsed before the signature beside the file was checked, and the whole archive is in
    memory, so that the bytes that are parsed are those that were checked. Raises as ``check_signed`` then.

    Contents and parameters stay in the file until they are used. The file is open as long as the library refers to it;
    it may be replaced or deleted meanwhile, but not overwritten in place. Raises ``InputFileError``, with the member as
    its place, if the archive is unsafe, damaged, or not in a supported version of Model Library Format, and
    ``StorageError`` if a compressed archive cannot be decompressed into the folder for temporary files.
    """
    if trust is not None:
        return open_archive_with_id(path, trust)[0]
    with _recognised(path):
        members = tar.members(open_binary(path, "archive"), str(path))
    return read_files(members, str(path))


def open_archive_with_id(path: Path, trust: Trust | None = None) -> tuple[Library, str]:
    """Return the library in the archive file ``path`` and the file's SHA-256; raises the errors of ``open_archive``.

    The hash and the library come from one open file, so they belong together even if the file is replaced meanwhile.
    """
    if trust is not None:
        data = read_regular(path, "archive")
        check_signed(path, data, trust)
        with _recognised(path):
            return read_archive(data, str(path)), sha256(data)
    with _recognised(path):
        file = open_binary(path, "archive")
    try:
        identity = file_sha256(file)
    except OSError as error:
        file.close()
        raise InputFileError(
            "file-unreadable",
            place=path,
            reason=f"cannot be read: {error.strerror or error}",
            hint="copy it to a local disk",
        ) from None
    with _recognised(path):
        members = tar.members(file, str(path))
    return read_files(members, str(path)), identity


def open_dated_archive(path: Path) -> tuple[Library, dict[str, int]]:
    """Return the library in the archive file ``path``, and the modification time of each member by its path.

    Times are seconds since 1970. Raises the errors of ``open_archive``.
    """
    with _recognised(path):
        members = tar.dated_members(open_binary(path, "archive"), str(path))
    files = {name: content for name, (content, _) in members.items()}
    times = {name: time for name, (_, time) in members.items() if time is not None}
    return read_files(files, str(path)), times


@contextlib.contextmanager
def _recognised(path: Path) -> Iterator[None]:
    """Turn errors about ``path`` into those of ``better_error``: it recognises files of other kinds."""
    try:
        yield
    except InputFileError as error:
        raise better_error(error, path) from None


def read_archive(data: bytes, where: str) -> Library:
    """Return the library in the archive with the bytes ``data``; ``where`` is the place in errors.

    Raises the errors of ``open_archive``.
    """
    return read_files(tar.members(io.BytesIO(data), where), where)


def write_archive(library: Library, path: Path, version: int | None = None, params: str = PARAMS_FORMS[0]) -> None:
    """Write ``library`` to the file ``path``: an uncompressed tar in Model Library Format ``version``, by default 7.

    ``params`` is the form of the parameters: ``params``, ``json`` or ``bson``; the latter two are made in memory.
    The file is replaced atomically, and no more than one content or parameter is in memory at a time. Equal libraries
    give equal bytes: members are sorted, owners and modes are fixed, and the only date is a constant, or
    ``SOURCE_DATE_EPOCH`` if it is set (modules that were read from an archive keep their date in the metadata). Raises
    ``UsageError`` if the version or the form cannot hold the library, ``ToolNotFoundError`` without the package that
    writes BSON, and ``StorageError`` if the file cannot be written.
    """
    write_atomic(path, _packed(library, version, params))


def pack_archive(library: Library, version: int | None = None) -> bytes:
    """Return the bytes that ``write_archive`` would write; raises ``UsageError``.

    The whole archive is in memory, so use ``write_archive`` if it is to become a file.
    """
    return b"".join(_packed(library, version))


def _packed(library: Library, version: int | None, params: str = PARAMS_FORMS[0]) -> Iterator[bytes]:
    return tar.pack(archive_files(library, version, params), source_date())
