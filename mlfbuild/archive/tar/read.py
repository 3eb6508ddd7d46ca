"""Tar files read without trusting a byte of them.

Reading is not left to ``tarfile``: on damaged headers some Python versions in use loop forever or raise exceptions of
every kind. What an archive may hold is little: folders and plain files, with ustar, GNU and pax names.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import IO, NamedTuple

from mlfbuild.archive.tar.inflate import plain_file
from mlfbuild.archive.tar.paths import Paths, name_fault, plain_path
from mlfbuild.core import InputFileError, quoted
from mlfbuild.library import Content, Stored, StoredFile

MAX_MEMBERS = 100_000
_BLOCK = 512
_MAX_EXTENDED = 1024 * 1024  # bytes
_REPACK = "pack it again, of plain files and folders with plain names"
_EXTENDED_TYPES = {b"x", b"g", b"L", b"K"}  # pax for one member and for all, GNU's long name and long target
_ACCEPTED_TYPES = {b"\0", b"0", b"5", b"7"}  # files, old and new, folders, contiguous files
_REFUSED_TYPES = {
    b"1": "a hard link", b"2": "a symbolic link", b"3": "a character device", b"4": "a block device", b"6": "a pipe",
    b"S": "a sparse file",
}  # fmt: skip


def members(file: IO[bytes], where: str) -> dict[str, Content]:
    """Return the plain files of a tar (uncompressed, gzip, bzip2 or xz, told by content) by path, in its order.

    Paths are relative, without ``.`` and empty parts. Contents are slices of ``file``, which is taken over: it stays
    open as long as a slice is held; a compressed one is unpacked into a temporary file first. Raises
    ``InputFileError``, naming ``where`` and the member, for a file that is no tar, is damaged or cut off, or has a
    member that is absolute, leaves the archive with ``..``, is a link or a device, stands twice or differs from another
    one in nothing but case; also for more than ``MAX_MEMBERS`` members, and as ``plain_file`` does.
    """
    source = _Source(plain_file(file, where, partial(_check_start, where=where)), where)
    paths = Paths()
    files: dict[str, Content] = {}
    for count, member in enumerate(_members(source)):
        if count == MAX_MEMBERS:
            raise InputFileError(
                f"{where}: has more than {MAX_MEMBERS} members, refused; repack it with the model's files alone"
            )
        fault = name_fault(member.name, folder=member.folder)
        path = plain_path(member.name)
        if fault is None and not member.folder:
            fault = paths.fault(path)
        if fault is not None:
            raise InputFileError(f"{where}: member {quoted(member.name)}: {fault}, refused; {_REPACK}")
        if not member.folder:
            files[path] = Stored(source.file, member.offset, member.size) if member.size else b""
    return files


def _check_start(data: bytes, where: str) -> None:
    if len(data) >= _BLOCK and not _is_header(data[:_BLOCK]):
        raise InputFileError(f"{where}: is not a tar file; copy or export the archive again")


def _is_header(block: bytes) -> bool:
    return _octal(block[148:156]) == sum(block) - sum(block[148:156]) + 8 * ord(" ")


class _Member(NamedTuple):
    name: str
    folder: bool
    offset: int
    size: int


class _Source:
    """A position in a tar file."""

    def __init__(self, file: StoredFile, where: str) -> None:
        self.file = file
        self.where = where
        self.at = 0
        if not file.size:
            raise InputFileError(f"{where}: is empty, not an archive; copy or export it again")

    def error(self, reason: str) -> InputFileError:
        return InputFileError(f"{self.where}: {reason}; copy or export the archive again")

    def header(self) -> bytes | None:
        """Return the next header, ``None`` at the end-of-archive mark."""
        block = self.file.read(self.at, _BLOCK)
        if len(block) < _BLOCK:
            raise self.error("is not a tar file" if self.at == 0 else "ends early (no end-of-archive mark)")
        self.at += _BLOCK
        if not any(block):
            return None
        if not _is_header(block):
            raise self.error("is not a tar file" if self.at == _BLOCK else f"damaged header at byte {self.at - _BLOCK}")
        return block

    def skip(self, size: int, what: str) -> int:
        """Go behind ``size`` bytes and the padding behind them; returns where they begin."""
        begin = self.at
        if size > self.file.size - begin:
            raise self.error(f"{what}: claims {size} bytes, but the file ends before")
        self.at += -(-size // _BLOCK) * _BLOCK
        return begin


def _members(source: _Source) -> Iterator[_Member]:
    """Yield folders and plain files; raises ``InputFileError`` for anything else."""
    overrides: dict[str, str] = {}
    while (header := source.header()) is not None:
        kind = header[156:157]
        name = overrides.get("path", _ustar_name(header))
        size = _size(overrides.get("size"), header, f"member {quoted(name)}", source)
        if kind in _EXTENDED_TYPES:
            if size > _MAX_EXTENDED:
                raise source.error("an extended header is too long")
            body = source.file.read(source.skip(size, "an extended header"), size)
            overrides |= _overrides(kind, body, source)
            continue
        overrides = {}
        if kind in _REFUSED_TYPES:
            raise InputFileError(
                f"{source.where}: member {quoted(name)}: is {_REFUSED_TYPES[kind]}, refused; {_REPACK}"
            )
        if kind not in _ACCEPTED_TYPES:
            raise InputFileError(
                f"{source.where}: member {quoted(name)}: has the unknown type {kind!r}, refused; {_REPACK}"
            )
        folder = kind == b"5" or (kind == b"\0" and name.endswith("/"))
        yield _Member(name, folder, source.at if folder else source.skip(size, f"member {quoted(name)}"), size)


def _size(override: str | None, header: bytes, what: str, source: _Source) -> int:
    size = _octal(header[124:136]) if override is None else int(override) if _is_short_number(override) else None
    if size is None:
        raise source.error(f"{what}: its size is not sound")
    return size


def _is_short_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20


def _octal(field: bytes) -> int | None:
    """Return the value of a numeric field, octal text or GNU's base-256, or ``None`` where it is neither."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    text = field.strip(b" \0")
    return int(text or b"0", 8) if all(digit in b"01234567" for digit in text) else None


def _ustar_name(header: bytes) -> str:
    name = header[:100].split(b"\0")[0]
    prefix = header[345:500].split(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return (prefix + b"/" + name if prefix else name).decode(errors="surrogateescape")


def _overrides(kind: bytes, body: bytes, source: _Source) -> dict[str, str]:
    """Return what an extended header says of the next member: its ``path`` and ``size``."""
    if kind == b"L":
        return {"path": body.split(b"\0")[0].decode(errors="surrogateescape")}
    if kind == b"K":  # the long target of a link; the link itself comes next and is refused
        return {}
    records = dict(_pax_records(body, source))
    if any(key.startswith("GNU.sparse.") for key in records):
        raise source.error("holds a sparse file, refused")
    if kind == b"g" and records.keys() & {"path", "size"}:
        raise source.error("a global header gives all members one name or size")
    return {key: value for key, value in records.items() if key in {"path", "size"}}


def _pax_records(body: bytes, source: _Source) -> Iterator[tuple[str, str]]:
    """Yield (key, value) of each record ``<length> <key>=<value>`` and line end of a pax header."""
    at = 0
    while at < len(body):
        length, space, _ = body[at : at + 20].partition(b" ")
        size = int(length) if space and length.isdigit() else 0
        record = body[at : at + size]
        key, equals, value = record[len(length) + 1 : -1].partition(b"=")
        if not equals or len(record) != size or not record.endswith(b"\n"):
            raise source.error("a pax header is damaged")
        yield key.decode(errors="surrogateescape"), value.decode(errors="surrogateescape")
        at += size
