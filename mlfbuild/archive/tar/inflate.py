"""Decompress archives: gzip, bzip2 and xz, recognised by content, into a temporary file."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import tempfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from mlfbuild.core import InputFileError, storage_error
from mlfbuild.library import CHUNK, StoredFile

MAX_INFLATED = 1024 * 1024 * 1024
"""Larger contents of compressed archives are refused, because they may be decompression bombs."""
_AT_ONCE = 1024 * 1024  # bytes; smaller files are read at once and closed
_IN_MEMORY = 8 * 1024 * 1024  # bytes; smaller contents need no temporary file
_GZIP = b"\x1f\x8b"
_XZ = b"\xfd7zXZ\0"
_Reader = gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile
_READERS: Mapping[str, Callable[[IO[bytes]], _Reader]] = {
    "gzip": lambda file: gzip.GzipFile(fileobj=file),
    "bzip2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
}
_BZIP2_BLOCKS = (b"1AY&SY", b"\x17rE8P\x90")  # after "BZh" and a digit; the latter in an empty file


def plain_file(file: IO[bytes], where: str, check: Callable[[bytes], None]) -> StoredFile:
    """Return ``file``, or if it is compressed, a temporary file with the decompressed data; takes over ``file``.

    A small file is read at once and closed, so that any number of small archives can be open. ``where`` is the place in
    errors. ``check`` is called with the first decompressed bytes, and may raise an error to stop. Raises
    ``InputFileError`` if the compressed data is damaged, ends early or decompresses to more than ``MAX_INFLATED``
    bytes, and ``StorageError`` if the temporary file cannot be written.
    """
    stored = StoredFile(file, where)
    start = stored.read(0, 10)
    if start.startswith(_GZIP):
        return _inflated(file, "gzip", where, check)
    if start[:3] == b"BZh" and start[4:] in _BZIP2_BLOCKS:
        return _inflated(file, "bzip2", where, check)
    if start.startswith(_XZ):
        return _inflated(file, "xz", where, check)
    return StoredFile(io.BytesIO(stored.read(0, stored.size)), where) if stored.size <= _AT_ONCE else stored


def _inflated(file: IO[bytes], kind: str, where: str, check: Callable[[bytes], None]) -> StoredFile:
    spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # StoredFile closes it
    size = 0
    try:
        file.seek(0)
        with _READERS[kind](file) as reader:
            while chunk := _next_chunk(reader, kind, where):
                if size == 0:
                    check(chunk)
                size += len(chunk)
                if size > MAX_INFLATED:
                    raise InputFileError(
                        "archive-inflates-too-large",
                        place=where,
                        reason=f"decompresses to more than {MAX_INFLATED >> 20} MiB",
                        hint="decompress it first",
                    )
                _append(spool, chunk)
        return StoredFile(spool, where)
    except BaseException:
        with contextlib.suppress(OSError):  # closing writes the buffer, which fails again
            spool.close()
        raise


def _next_chunk(reader: _Reader, kind: str, where: str) -> bytes:
    try:
        return reader.read(CHUNK)
    except EOFError:
        reason = "ends early"
    except (OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        reason = f"is damaged: {error}"
    raise InputFileError(
        "archive-compression-damaged",
        place=where,
        reason=f"the {kind} data {reason}",
        hint="copy or export the archive again",
    )


def _append(spool: IO[bytes], data: bytes) -> None:
    try:
        spool.write(data)
        spool.flush()
    except OSError as error:
        raise storage_error(Path(tempfile.tempdir or "TMPDIR"), error) from None
