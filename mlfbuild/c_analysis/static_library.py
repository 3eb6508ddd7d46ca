"""Static libraries (``.a``): the objects in them, read with arpy."""

from __future__ import annotations

import io
from collections.abc import Iterator

from mlfbuild.core import InputFileError

_INDICES = {"__.SYMDEF", "__.SYMDEF SORTED"}  # symbol tables of BSD libraries


def members(data: bytes, where: str) -> Iterator[tuple[str, bytes]]:
    """Yield (name, content) of each object in the static library ``data``, in the file's order.

    The System V, GNU and BSD formats are read; a name may occur twice. ``where`` names the library in messages. Raises
    ``InputFileError`` if ``data`` is not a static library, is damaged, or is a thin one, whose objects are other files.
    """
    import arpy  # only builds that link models read libraries

    if data.startswith(b"!<thin>\n"):
        raise InputFileError(
            "library-thin",
            place=where,
            reason="a thin static library, which does not contain its objects",
            hint="create it without the `T` modifier of `ar`",
        )
    if not data.startswith(b"!<arch>\n"):
        raise InputFileError(
            "library-not-ar", place=where, reason="not a static library", hint="delete it and build it again"
        )
    try:
        library = arpy.Archive(fileobj=io.BytesIO(data))
        while (header := library.read_next_header()) is not None:
            if header.size < 0:  # arpy would move back and read the same headers forever
                raise arpy.ArchiveFormatError("the size of an object is negative")
            if header.type not in {arpy.HEADER_NORMAL, arpy.HEADER_GNU, arpy.HEADER_BSD}:
                continue
            name = header.name.rstrip(b"\0").decode(errors="backslashreplace")
            if header.file_offset + header.size > len(data):
                raise arpy.ArchiveFormatError(f"{name!a} extends beyond the end of the file")
            if name not in _INDICES:
                yield name, data[header.file_offset : header.file_offset + header.size]
    except (arpy.ArchiveFormatError, ValueError) as error:
        raise InputFileError(
            "library-damaged",
            place=where,
            reason=f"damaged static library: {error}",
            hint="delete it and build it again",
        ) from None
