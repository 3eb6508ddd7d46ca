"""Read tar files that are not trusted.

This module does not use ``tarfile``, because some supported Python versions loop forever or raise various exceptions on
damaged headers. Archives may hold only folders and plain files, with ustar, GNU and pax names.

Archives may have any suffix, such as ``kws.model-lib``, so tar files are recognised by their first bytes. Those
compressed with gzip, bzip2 or xz, also recognised by content, are decompressed into a temporary file.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import itertools
import lzma
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from mlfbuild.archive.tar.paths import Paths, name_fault, plain_path
from mlfbuild.core import InputFileError, quoted, storage_error
from mlfbuild.library import CHUNK, Content, Stored, StoredFile

_MAGIC, _MAGIC_AT = b"ustar", 257
_COMPRESSED = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zXZ\0"}


def looks_like_archive(path: Path) -> bool:
    """Return whether the file ``path`` starts like a tar file, plain or compressed; False if it cannot be read.

    A compressed file counts whatever is in it; ``members`` finds out whether that is a tar.
    """
    start = _start(path)
    return start.startswith(tuple(_COMPRESSED.values())) or start[_MAGIC_AT:] == _MAGIC


def is_plain_tar(path: Path) -> bool:
    """Return whether the file ``path`` starts like a tar file that is not compressed; False if it cannot be read.

    Unlike for ``looks_like_archive``, the file can be read in place: a compressed one is decompressed first.
    """
    return _start(path)[_MAGIC_AT:] == _MAGIC


def _start(path: Path) -> bytes:
    """Return the first bytes of the file, up to the end of the magic number; empty if it cannot be read."""
    try:
        if path.is_fifo():  # opening one waits for a writer
            return b""
        with path.open("rb") as file:
            return file.read(_MAGIC_AT + len(_MAGIC))
    except OSError:
        return b""


MAX_INFLATED = 1024 * 1024 * 1024
"""Larger contents of compressed archives are refused, because they may be decompression bombs."""
_AT_ONCE = 1024 * 1024  # bytes; smaller files are read at once and closed
_IN_MEMORY = 8 * 1024 * 1024  # bytes; smaller contents need no temporary file
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
    # Ten bytes: `BZh`, a digit, and the six with which a bzip2 block begins.
    start = stored.read(0, 10)
    kind = next((kind for kind, magic in _COMPRESSED.items() if start.startswith(magic)), "")
    # The three letters alone could begin any text.
    if kind and (kind != "bzip2" or start[4:] in _BZIP2_BLOCKS):
        return _inflated(file, kind, where, check)
    # Small archives are closed at once, because a merge may open more of them than a process may have files.
    return StoredFile(io.BytesIO(stored.read(0, stored.size)), where) if stored.size <= _AT_ONCE else stored


def _inflated(file: IO[bytes], kind: str, where: str, check: Callable[[bytes], None]) -> StoredFile:
    # In memory while it is small, so that most archives need no temporary file.
    spool = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # StoredFile closes it
    try:
        # The first bytes were already read, to recognise the kind.
        file.seek(0)
        with _READERS[kind](file) as reader:
            chunks = _chunks(reader, kind, where)
            # At the first chunk, because a bomb of zeros takes seconds until its size is refused.
            if first := next(chunks, b""):
                check(first)
            for chunk in itertools.chain([first], chunks):
                _append(spool, chunk)
        return StoredFile(spool, where)
    except BaseException:
        with contextlib.suppress(OSError):  # closing writes the buffer, which fails again
            spool.close()
        raise


def _chunks(reader: _Reader, kind: str, where: str) -> Iterator[bytes]:
    """Yield the content of ``reader``; raise ``InputFileError`` if it is larger than ``MAX_INFLATED``."""
    # Counted while it is decompressed: the size at the end of a gzip file is modulo 2^32, and is not trusted.
    size = 0
    while chunk := _next_chunk(reader, kind, where):
        size += len(chunk)
        if size > MAX_INFLATED:
            raise InputFileError(
                "archive-inflates-too-large",
                place=where,
                reason=f"decompresses to more than {MAX_INFLATED >> 20} MiB",
                hint="decompress it first",
            )
        yield chunk


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
        # Flushed at once, so that a full disk is noticed here, where the error has a hint, and not when the file is
        # read.
        spool.flush()
    except OSError as error:
        raise storage_error(Path(tempfile.tempdir or "TMPDIR"), error) from None


MAX_MEMBERS = 100_000
_BLOCK = 512
# The format sets no limit for these headers, which are read at once.
_MAX_EXTENDED = 1024 * 1024  # bytes
_REPACK = "pack it again with only plain files and folders that have plain names"
_COPY = "copy or export the archive again"
_EXTENDED_TYPES = {b"x", b"g", b"L", b"K"}  # pax for one member and for all, GNU's long name and long target
_ACCEPTED_TYPES = {b"\0", b"0", b"5", b"7"}  # files in old and new headers, folders, contiguous files
_REFUSED_TYPES = {
    b"1": "a hard link", b"2": "a symbolic link", b"3": "a character device", b"4": "a block device", b"6": "a pipe",
    b"S": "a sparse file",
}  # fmt: skip


def members(file: IO[bytes], where: str) -> dict[str, Content]:
    """Return the plain files of a tar (uncompressed, gzip, bzip2 or xz, recognised by content) by path, in its order.

    Paths are relative, without ``.`` and empty parts. Contents are slices of ``file``, which ``members`` takes over and
    which stays open as long as a slice exists; a compressed file is decompressed into a temporary file first. Raises
    ``InputFileError``, with ``where`` and the member as its place, if the file is not a tar, is damaged or truncated,
    has more than ``MAX_MEMBERS`` members, or has a member that is absolute, leaves the archive with ``..``, is a link
    or a device, occurs twice, or differs from another one only in case. Also raises the errors of ``plain_file``.
    """
    return {path: content for path, (content, _) in dated_members(file, where).items()}


def dated_members(file: IO[bytes], where: str) -> dict[str, tuple[Content, int | None]]:
    """Return what ``members`` returns, each file with its modification time in seconds since 1970, if it has one.

    The order is that of the file, and folders are left out. Times are as untrusted as everything else in the file.
    Raises as ``members``.
    """
    source = _Source(plain_file(file, where, partial(_check_start, where=where)), where)
    paths = Paths()
    files: dict[str, tuple[Content, int | None]] = {}
    for count, member in enumerate(_members(source)):
        # Counted before the member is used, so that a flood of empty members costs no memory.
        if count == MAX_MEMBERS:
            raise InputFileError(
                "archive-too-many-members",
                place=where,
                reason=f"has more than {MAX_MEMBERS} members",
                hint="pack it again with only the files of the model",
            )
        code, fault = "archive-member-name-unsafe", name_fault(member.name, folder=member.folder)
        path = plain_path(member.name)
        # Folders may repeat: some tar programs add them again before each file.
        if fault is None and not member.folder:
            code, fault = "archive-member-conflict", paths.fault(path)
        if fault is not None:
            raise source.member_error(code, fault, name=member.name)
        if not member.folder:
            # A slice without bytes would only keep the file open.
            content = Stored(source.file, member.offset, member.size) if member.size else b""
            files[path] = content, member.time
    return files


def _check_start(data: bytes, where: str) -> None:
    # A shorter start may be a truncated tar, which `header` reports with a better reason.
    if len(data) >= _BLOCK and not _is_header(data[:_BLOCK]):
        raise _not_tar(where)


def _not_tar(where: str) -> InputFileError:
    return InputFileError("archive-not-tar", place=where, reason="is not a tar file", hint=_COPY)


def _is_header(block: bytes) -> bool:
    # POSIX ustar: the checksum is the sum of all bytes, with the eight of the checksum itself as blanks.
    return _octal(block[148:156]) == sum(block) - sum(block[148:156]) + 8 * ord(" ")


class _Member(NamedTuple):
    name: str
    folder: bool
    offset: int
    size: int
    time: int | None


class _Source:
    """A position in a tar file."""

    def __init__(self, file: StoredFile, where: str) -> None:
        self.file = file
        self.where = where
        self.at = 0
        if not file.size:
            raise InputFileError("archive-empty", place=where, reason="the file is empty", hint=_COPY)

    def error(self, code: str, reason: str) -> InputFileError:
        return InputFileError(code, place=self.where, reason=reason, hint=_COPY)

    def member_error(self, code: str, reason: str, *, name: str) -> InputFileError:
        return InputFileError(code, place=f"{self.where}: {quoted(name)}", reason=f"the member {reason}", hint=_REPACK)

    def header(self) -> bytes | None:
        """Return the next header, or ``None`` at the end-of-archive mark."""
        block = self.file.read(self.at, _BLOCK)
        if len(block) < _BLOCK:
            if self.at == 0:
                raise _not_tar(self.where)
            raise self.error("archive-truncated", "the file ends early, without an end-of-archive mark")
        self.at += _BLOCK
        # The first empty block ends the archive: POSIX requires two, but some programs write only one.
        if not any(block):
            return None
        if not _is_header(block):
            if self.at == _BLOCK:
                raise _not_tar(self.where)
            raise self.error("archive-header-damaged", f"the header at byte {self.at - _BLOCK} is damaged")
        return block

    def skip(self, size: int, what: str) -> int:
        """Skip ``size`` bytes and the padding after them; returns their offset."""
        begin = self.at
        # Before anything is read: a damaged size must not make the reader allocate gigabytes.
        if size > self.file.size - begin:
            raise self.error("archive-truncated", f"{what} has {size} bytes, but the file ends before")
        self.at += -(-size // _BLOCK) * _BLOCK
        return begin


def _members(source: _Source) -> Iterator[_Member]:
    """Yield folders and plain files; raises ``InputFileError`` for anything else."""
    overrides: dict[str, str] = {}
    while (header := source.header()) is not None:
        kind = header[156:157]
        # A pax or GNU header in front has the whole name if it does not fit into the 100 bytes here.
        name = overrides.get("path", _ustar_name(header))
        size = _size(overrides.get("size"), header, f"member {quoted(name)}", source)
        if kind in _EXTENDED_TYPES:
            if size > _MAX_EXTENDED:
                raise source.error("archive-header-unsupported", "an extended header is too long")
            body = source.file.read(source.skip(size, "an extended header"), size)
            # Several of these headers may precede a member, such as a long name and its size.
            overrides |= _overrides(kind, body, source)
            continue
        # An extended header applies to one member only.
        overrides = {}
        if kind in _REFUSED_TYPES:
            raise source.member_error("archive-member-type-unsupported", f"is {_REFUSED_TYPES[kind]}", name=name)
        if kind not in _ACCEPTED_TYPES:
            raise source.member_error("archive-member-type-unsupported", f"has the unknown type {kind!r}", name=name)
        # Before ustar, tar marked folders only by the slash.
        folder = kind == b"5" or (kind == b"\0" and name.endswith("/"))
        # POSIX lets the size of a folder be a limit of its content; no data follows it.
        at = source.at if folder else source.skip(size, f"member {quoted(name)}")
        yield _Member(name, folder, at, size, _octal(header[136:148]))


def _size(override: str | None, header: bytes, what: str, source: _Source) -> int:
    # A pax header has the sizes that eleven octal digits cannot express, from 8 GiB on.
    size = _octal(header[124:136]) if override is None else int(override) if _is_short_number(override) else None
    if size is None:
        raise source.error("archive-header-damaged", f"{what} has an invalid size")
    return size


def _is_short_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _octal(field: bytes) -> int | None:
    """Return the value of a numeric field, octal text or GNU's base-256, or ``None`` if it is neither."""
    # GNU tar marks a number in base 256 with 0x80; 0xff would begin a negative one, which no size can be.
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    text = field.strip(b" \0")
    return int(text or b"0", 8) if all(digit in b"01234567" for digit in text) else None


def _ustar_name(header: bytes) -> str:
    name = header[:100].split(b"\0")[0]
    # Only POSIX ustar has a prefix here: headers of GNU tar, whose magic ends with blanks, have times in these bytes.
    prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return (prefix + b"/" + name if prefix else name).decode(errors="surrogateescape")


def _overrides(kind: bytes, body: bytes, source: _Source) -> dict[str, str]:
    """Return the ``path`` and ``size`` that an extended header gives to the next member."""
    if kind == b"L":
        return {"path": body.split(b"\0")[0].decode(errors="surrogateescape")}
    if kind == b"K":  # the long target of a link, which follows and is refused
        return {}
    records = dict(_pax_records(body, source))
    # GNU tar writes sparse files as plain members with these keys, and without the holes.
    if any(key.startswith("GNU.sparse.") for key in records):
        raise source.error("archive-header-unsupported", "the archive has a sparse file")
    # pax allows it, but a reader that ignores global headers would then see other files.
    if kind == b"g" and records.keys() & {"path", "size"}:
        raise source.error("archive-header-unsupported", "a global header gives all members the same name or size")
    return {key: value for key, value in records.items() if key in {"path", "size"}}


def _pax_records(body: bytes, source: _Source) -> Iterator[tuple[str, str]]:
    """Yield (key, value) of each record of a pax header: ``<length> <key>=<value>`` and a line end."""
    at = 0
    while at < len(body):
        # The length counts itself, the blank and the line end (POSIX, pax extended header).
        length, space, _ = body[at : at + 20].partition(b" ")
        size = int(length) if space and length.isdigit() else 0
        record = body[at : at + size]
        key, equals, value = record[len(length) + 1 : -1].partition(b"=")
        if not equals or len(record) != size or not record.endswith(b"\n"):
            raise source.error("archive-header-damaged", "a pax header is damaged")
        yield key.decode(errors="surrogateescape"), value.decode(errors="surrogateescape")
        at += size
