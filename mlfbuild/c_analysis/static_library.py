"""Static libraries as ``ar`` writes them: the objects in a ``.a`` file, without the program."""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.core import InputFileError

_MAGIC = b"!<arch>\n"
_THIN = b"!<thin>\n"
_HEADER = 60  # bytes: name 16, time 12, owner 6, group 6, mode 8, size 10, end mark 2
_END = b"`\n"
_INDICES = {"/", "/SYM64/", "__.SYMDEF", "__.SYMDEF SORTED"}  # symbol tables of the library itself
_NAMES = "//"  # long names of the System V and GNU variant


def members(data: bytes, where: str) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each object of the static library ``data``, in the file's order.

    The variants of System V, GNU and BSD are read; a name may stand there twice. ``where`` names the library in
    messages. Raises ``InputFileError`` where it is none, is damaged, or is a thin one, whose objects lie elsewhere.
    """
    if data.startswith(_THIN):
        raise InputFileError(f"{where}: is a thin static library, which holds no objects; make it without the T of ar")
    if not data.startswith(_MAGIC):
        raise InputFileError(f"{where}: is no static library; build it again")
    names = b""
    offset = len(_MAGIC)
    while offset < len(data):
        header = data[offset : offset + _HEADER]
        offset += _HEADER
        size = _size(header, where)
        if offset + size > len(data):
            raise _damaged(where, "an object ends behind the file's end")
        content = data[offset : offset + size]
        offset += size + size % 2  # objects start at even places
        name = header[:16].decode("latin-1").rstrip(" ")
        if name == _NAMES:
            names = content
            continue
        if name.startswith("#1/"):
            name, content = _bsd(name, content, where)
        elif name not in _INDICES:
            name = _long(name, names, where) if name.startswith("/") else name.removesuffix("/")
        if name not in _INDICES:
            yield name, content


def _size(header: bytes, where: str) -> int:
    digits = header[48:58].rstrip(b" ")
    if header[58:] != _END or not digits.isdigit():
        raise _damaged(where, "the header of an object is none")
    return int(digits)


def _bsd(name: str, content: bytes, where: str) -> tuple[str, bytes]:
    length = name.removeprefix("#1/")
    if not length.isascii() or not length.isdigit() or int(length) > len(content):
        raise _damaged(where, "the name of an object does not end")
    return content[: int(length)].rstrip(b"\0").decode(errors="backslashreplace"), content[int(length) :]


def _long(name: str, names: bytes, where: str) -> str:
    offset = name.removeprefix("/")
    if not offset.isascii() or not offset.isdigit() or int(offset) >= len(names):
        raise _damaged(where, "the name of an object is not among its long names")
    start = int(offset)
    end = names.find(b"/\n", start)
    return names[start : end if end >= 0 else len(names)].decode(errors="backslashreplace")


def _damaged(where: str, reason: str) -> InputFileError:
    return InputFileError(f"{where}: is a damaged static library: {reason}; build it again")
