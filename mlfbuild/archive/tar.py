"""Tar files: written as a function of their content, read without trusting a byte of them.

Reading is not left to ``tarfile``: on damaged headers some Python versions in use loop forever or raise exceptions of
every kind. What an archive may hold is little: folders and plain files, with ustar, GNU and pax names.
"""

from __future__ import annotations

import bz2
import io
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from mlfbuild.errors import InputFileError

MAX_BYTES = 256 * 1024 * 1024
"""An archive that unpacks to more is refused; the largest real ones are a hundred times smaller."""
MAX_MEMBERS = 10_000
_MAX_PART = 255  # bytes between slashes, what file systems take
_MAX_DEPTH = 32
_BLOCK = 512
_CHUNK = 4096
_MAX_EXTENDED = 1024 * 1024  # bytes
_EXTENDED_TYPES = {b"x", b"g", b"L", b"K"}  # pax for one member and for all, GNU's long name and long target
_ACCEPTED_TYPES = {b"\0", b"0", b"5", b"7"}  # files, old and new, folders, contiguous files
_REFUSED_TYPES = {
    b"1": "a hard link", b"2": "a symbolic link", b"3": "a character device", b"4": "a block device", b"6": "a pipe",
    b"S": "a sparse file",
}  # fmt: skip


# Writing -------------------------------------------------------------------------------------------------------------


def pack(files: Mapping[str, bytes], mtime: int) -> bytes:
    """Return an uncompressed tar of ``files`` (relative path -> content) and the folders they need.

    Members are named as TVM names them (``.``, ``./codegen``, ``./codegen/host``, ...), sorted, owned by root, with
    modes 644 and 755 and the time ``mtime``: equal files give equal bytes.
    """
    folders = {str(parent) for path in files for parent in PurePosixPath(path).parents}
    members = [*((folder, None) for folder in folders), *files.items()]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, data in sorted(members, key=lambda member: PurePosixPath(member[0]).parts):
            tar.addfile(_header(path, data, mtime), io.BytesIO(data or b""))
    return buffer.getvalue()


def _header(path: str, data: bytes | None, mtime: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo("." if path == "." else f"./{path}")
    header.type, header.mode = (tarfile.DIRTYPE, 0o755) if data is None else (tarfile.REGTYPE, 0o644)
    header.size = len(data or b"")
    header.mtime = mtime
    header.uname = header.gname = "root"
    return header


# Reading -------------------------------------------------------------------------------------------------------------


def unpack(data: bytes, where: str) -> dict[str, bytes]:
    """Return the plain files of a tar (uncompressed, gzip or bzip2, told by content) by path, in its order.

    Paths are relative, without ``.`` and empty parts. Raises ``InputFileError``, naming ``where`` and the member, for
    a file that is no tar, is damaged or cut off, unpacks to more than ``MAX_BYTES``, or has a member that is absolute,
    leaves the archive with ``..``, is a link or a device, or stands twice.
    """
    files: dict[str, bytes] = {}
    for count, member in enumerate(_members(_Source(_decompress(data, where), where))):
        path = _checked_path(member, where)
        if count == MAX_MEMBERS:
            raise InputFileError(f"{where}: has more than {MAX_MEMBERS} members, refused")
        if member.folder:
            continue
        if path in files:
            raise InputFileError(f"{where}: member {member.shown}: stands twice in the archive")
        files[path] = member.data
    for path in files:
        for parent in PurePosixPath(path).parents:
            if str(parent) in files:
                raise InputFileError(f"{where}: member {_shown(path)}: lies in {_shown(str(parent))}, which is a file")
    return files


def _decompress(data: bytes, where: str) -> bytes:
    if data.startswith(b"\x1f\x8b"):
        return _inflate(data, where, "gzip")
    if data.startswith(b"BZh"):
        return _inflate(data, where, "bzip2")
    return data


def _inflate(data: bytes, where: str, kind: str) -> bytes:
    """Decompress all streams of ``data``, giving up where they grow beyond ``MAX_BYTES``."""
    plain = bytearray()
    at = 0
    end = len(data.rstrip(b"\0"))  # some tools pad with zeros
    while at < end:
        inflater = zlib.decompressobj(wbits=31) if kind == "gzip" else bz2.BZ2Decompressor()  # 31: gzip's header too
        while not inflater.eof:
            chunk = data[at : at + _CHUNK]
            if not chunk:
                raise InputFileError(f"{where}: the {kind} data ends early; copy or export the archive again")
            try:
                plain += inflater.decompress(chunk, MAX_BYTES + 1 - len(plain))
            except (zlib.error, OSError) as error:
                raise InputFileError(f"{where}: the {kind} data is damaged: {error}") from None
            if len(plain) > MAX_BYTES:
                raise InputFileError(f"{where}: unpacks to more than {MAX_BYTES >> 20} MiB, refused")
            at += len(chunk) - len(inflater.unused_data)
    return bytes(plain)


def _shown(name: str) -> str:
    """Return a name from the archive fit for one line of a message."""
    return ascii(name) if len(name) <= 120 else f"{name[:120]!a}..."


@dataclass(frozen=True)
class _Member:
    name: str
    folder: bool
    data: bytes

    @property
    def shown(self) -> str:
        return _shown(self.name)


class _Source:
    """A position in the bytes of a tar file."""

    def __init__(self, data: bytes, where: str) -> None:
        self.data = data
        self.where = where
        self.at = 0
        if not data:
            raise InputFileError(f"{where}: is empty, not an archive")

    def error(self, reason: str) -> InputFileError:
        return InputFileError(f"{self.where}: {reason}; copy or export the archive again")

    def header(self) -> bytes | None:
        """Return the next header, ``None`` at the end-of-archive mark."""
        block = self.data[self.at : self.at + _BLOCK]
        if len(block) < _BLOCK:
            raise self.error("is not a tar file" if self.at == 0 else "ends early (no end-of-archive mark)")
        self.at += _BLOCK
        if not any(block):
            return None
        unsigned = sum(block[:148]) + 8 * ord(" ") + sum(block[156:])
        if _octal(block[148:156]) != unsigned:
            raise self.error("is not a tar file" if self.at == _BLOCK else f"damaged header at byte {self.at - _BLOCK}")
        return block

    def body(self, size: int, what: str) -> bytes:
        """Return ``size`` bytes and skip the padding behind them."""
        if size > len(self.data) - self.at:
            raise self.error(f"{what}: claims {size} bytes, but the file ends before")
        body = self.data[self.at : self.at + size]
        self.at += -(-size // _BLOCK) * _BLOCK
        return body


def _members(source: _Source) -> Iterator[_Member]:
    """Yield folders and plain files; raises ``InputFileError`` for anything else."""
    overrides: dict[str, str] = {}
    while (header := source.header()) is not None:
        kind = header[156:157]
        name = overrides.get("path", _ustar_name(header))
        size = _size(overrides.get("size"), header, f"member {_shown(name)}", source)
        if kind in _EXTENDED_TYPES:
            if size > _MAX_EXTENDED:
                raise source.error("an extended header is too long")
            overrides |= _overrides(kind, source.body(size, "an extended header"), source)
            continue
        overrides = {}
        if kind in _REFUSED_TYPES:
            raise InputFileError(f"{source.where}: member {_shown(name)}: is {_REFUSED_TYPES[kind]}, refused")
        if kind not in _ACCEPTED_TYPES:
            raise InputFileError(f"{source.where}: member {_shown(name)}: has the unknown type {kind!r}, refused")
        folder = kind == b"5" or (kind == b"\0" and name.endswith("/"))
        yield _Member(name, folder, b"" if folder else source.body(size, f"member {_shown(name)}"))


def _size(override: str | None, header: bytes, what: str, source: _Source) -> int:
    size = _octal(header[124:136]) if override is None else int(override) if _is_short_number(override) else None
    if size is None or size > MAX_BYTES:
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


def _checked_path(member: _Member, where: str) -> str:
    """Return the member's path, relative and plain; raises ``InputFileError`` where it could lead elsewhere."""
    name = member.name
    parts = [part for part in name.split("/") if part not in {"", "."}]
    reason = None
    if name.startswith("/"):
        reason = "is an absolute path, refused"
    elif ".." in parts:
        reason = "leads out of the archive, refused"
    elif not name.isprintable() or "\\" in name:
        reason = "has a name with control characters, backslashes or bad UTF-8, refused"
    elif len(parts) > _MAX_DEPTH or any(len(part.encode()) > _MAX_PART for part in parts):
        reason = "has too long a name, refused"
    elif not parts and not member.folder:
        reason = "has no name"
    if reason is not None:
        raise InputFileError(f"{where}: member {member.shown}: {reason}")
    return "/".join(parts)
