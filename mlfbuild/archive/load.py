"""A library to an archive, and back: as a file that stays where it is, or as bytes in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

from mlfbuild.archive import tar
from mlfbuild.archive.epoch import source_date
from mlfbuild.archive.layout import archive_files
from mlfbuild.archive.read import read_files
from mlfbuild.core import InputFileError, file_sha256, open_binary, write_atomic
from mlfbuild.library import Library


def open_archive(path: Path) -> Library:
    """Return the library in the archive file ``path``; plain, gzip, bzip2 and xz tars are told apart by content.

    Contents and parameters stay in the file until they are asked for: it is open as long as the library has any of
    them, and may be replaced or deleted, but not written over in place. Raises ``InputFileError``, one line that names
    the member and the reason, for whatever is unsafe, damaged, or not Model Library Format of a supported version, and
    ``StorageError`` where a compressed archive does not fit the folder of temporary files.
    """
    return read_files(tar.members(open_binary(path, "archive"), str(path)), str(path))


def open_archive_with_id(path: Path) -> tuple[Library, str]:
    """Return the library in the archive file ``path`` and the SHA-256 of the file; raises as ``open_archive`` does."""
    file = open_binary(path, "archive")
    try:
        identity = file_sha256(file)
    except OSError as error:
        file.close()
        raise InputFileError(
            f"{path}: cannot read the archive: {error.strerror or error}; copy it to a local disk"
        ) from None
    return read_files(tar.members(file, str(path)), str(path)), identity


def read_archive(data: bytes, where: str) -> Library:
    """Return the library in the archive whose content is ``data``; ``where`` names it in messages.

    Raises as ``open_archive`` does.
    """
    return read_files(tar.members(io.BytesIO(data), where), where)


def write_archive(library: Library, path: Path, version: int | None = None) -> None:
    """Write ``library`` to the file ``path``: an uncompressed tar in Model Library Format ``version``, by default 7.

    The file appears whole or not at all, and no more than one content or parameter is in memory at a time. Equal
    libraries give equal bytes: members are sorted, owners and modes fixed, and the only date is a constant, or
    ``SOURCE_DATE_EPOCH`` where that is set (modules that were read from an archive keep their own in the metadata).
    Raises ``UsageError`` where the version cannot hold the library, and ``StorageError``.
    """
    write_atomic(path, _packed(library, version))


def pack_archive(library: Library, version: int | None = None) -> bytes:
    """Return the bytes that ``write_archive`` writes; raises ``UsageError``."""
    return b"".join(_packed(library, version))


def _packed(library: Library, version: int | None) -> Iterator[bytes]:
    return tar.pack(archive_files(library, version), source_date())
