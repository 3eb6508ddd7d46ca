"""A library to the bytes of an archive, and back."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.archive import tar
from mlfbuild.archive.epoch import source_date
from mlfbuild.archive.layout import archive_files
from mlfbuild.archive.read import read_files
from mlfbuild.errors import InputFileError
from mlfbuild.files import read_bytes
from mlfbuild.library import Library


def write_archive(library: Library) -> bytes:
    """Return ``library`` as an uncompressed tar in Model Library Format version 7.

    Equal libraries give equal bytes: members are sorted, owners and modes fixed, and the only date is a constant, or
    ``SOURCE_DATE_EPOCH`` where that is set (modules that were read from an archive keep their own in the metadata).
    """
    return tar.pack({path: bytes(data) for path, data in archive_files(library).items()}, source_date())


def read_archive(data: bytes, where: str) -> Library:
    """Return the library that an archive holds; plain, gzip and bzip2 tars are told apart by content.

    ``where`` names the archive in messages. Raises ``InputFileError``, one line that names the member and the reason,
    for whatever is unsafe, damaged, or not Model Library Format of a supported version.
    """
    return read_files(tar.unpack(data, where), where)


def archive_bytes(path: Path) -> bytes:
    """Return the content of the archive file ``path``; raises ``InputFileError``, also for an absurd size."""
    try:
        size = path.stat().st_size
    except OSError:
        size = 0  # reading it gives the reason
    if size > tar.MAX_BYTES:
        raise InputFileError(f"{path}: is larger than {tar.MAX_BYTES >> 20} MiB, which no archive is; check the path")
    return read_bytes(path, "archive")


def load_archive(path: Path) -> Library:
    """Return the library in the archive file ``path``; raises ``InputFileError`` as ``read_archive`` does."""
    return read_archive(archive_bytes(path), str(path))
