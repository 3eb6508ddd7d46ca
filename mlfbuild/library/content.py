"""The content of a file: bytes in memory, or bytes that are read from a file when they are used.

``bytes(content)`` and ``len(content)`` work for both kinds, and the two kinds compare equal if their bytes are equal.
Large archives are read, validated, converted and merged with no more than one member in memory::

    for part in chunks(library.modules[0].codegen[0].content):
        file.write(part)
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, TypeAlias

from mlfbuild.core import InputFileError, StorageError

CHUNK = 1024 * 1024
"""Bytes that are copied at a time."""
_IN_MEMORY = 4 * CHUNK
"""Largest content, in bytes, that ``spooled`` keeps in memory."""


class LazyBytes(ABC):
    """Bytes that are produced each time they are read, always the same ones."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of bytes, without producing them."""

    @abstractmethod
    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset``, or fewer at the end."""

    def chunks(self) -> Iterator[bytes]:
        """Yield all bytes in order, at most ``CHUNK`` at a time."""
        for offset in range(0, len(self), CHUNK):
            yield self.read(offset, CHUNK)

    def __bytes__(self) -> bytes:
        return self.read(0, len(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} bytes>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (bytes, LazyBytes)):
            return NotImplemented
        if self is other:
            # Contents of one archive are often the same object, and reading it twice would only cost time.
            return True
        return len(self) == len(other) and _equal(self.chunks(), chunks(other))

    __hash__ = None  # type: ignore[assignment]  # equal to bytes, but too large to hash like them


Content: TypeAlias = bytes | LazyBytes


def _equal(one: Iterator[bytes], other: Iterator[bytes]) -> bool:
    """Return whether both, whose pieces may end in different places but are not empty, yield the same bytes.

    Each is iterated once: contents that are generated when they are read would be generated anew for each offset.
    """
    left = right = b""
    while True:
        left, right = left or next(one, b""), right or next(other, b"")
        size = min(len(left), len(right))
        if not size:
            return left == right
        if left[:size] != right[:size]:
            return False
        left, right = left[size:], right[size:]


def chunks(content: Content) -> Iterator[bytes]:
    """Yield the bytes of ``content`` in order, at most ``CHUNK`` at a time.

    Only one of them is in memory at a time. A ``LazyBytes`` is read from its file again each time.
    """
    if isinstance(content, LazyBytes):
        yield from content.chunks()
    else:
        for offset in range(0, len(content), CHUNK):
            yield content[offset : offset + CHUNK]


def text_of(content: Content) -> str:
    """Return ``content`` as text; bytes that are not UTF-8 become U+FFFD.

    For text that is shown or searched: what became U+FFFD is lost. To edit a source and write it back, decode Latin-1,
    as ``archive.merge`` does.
    """
    return bytes(content).decode(errors="replace")


def spooled(parts: Iterable[bytes]) -> Content:
    """Return ``parts`` as one content: in memory if it is small, otherwise in a temporary file with its lifetime.

    Raises ``StorageError`` if the file cannot be written.
    """
    parts = iter(parts)
    start: list[bytes] = []
    size = 0
    for part in parts:
        start.append(part)
        size += len(part)
        # The parts so far are kept: an iterator cannot be read again when the content turns out to be large.
        if size > _IN_MEMORY:
            break
    else:
        return b"".join(start)
    try:
        stored = StoredFile(_temporary(chain(start, parts)), "temporary file")
    except OSError as error:
        raise StorageError(
            "temporary-file-not-written",
            place="temporary file",
            reason=f"cannot be written: {error.strerror or error}",
            hint="free some space, or set TMPDIR to a folder on another disk",
        ) from None
    return Stored(stored, 0, stored.size)


def _temporary(parts: Iterable[bytes]) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    try:
        file.writelines(parts)
        file.flush()
    except BaseException:
        with contextlib.suppress(OSError):  # closing writes the buffer, which fails again
            file.close()
        raise
    return file


# Files ---------------------------------------------------------------------------------------------------------------


class StoredFile:
    """An open file that any thread may read at any offset; it is closed with the last reference to it or to a slice.

    ``StoredFile`` takes ownership of ``file``: callers must not read, seek or close it afterwards. ``where`` is the
    place in errors. Raises ``InputFileError`` if the file has no size, for example a pipe.
    """

    def __init__(self, file: IO[bytes], where: str) -> None:
        self.where = where
        self._file = file
        self._lock = threading.Lock()
        # Slices refer to this object, so the file is closed with the last of them.
        weakref.finalize(self, file.close)
        try:
            file.seek(0, os.SEEK_END)
            self.size = file.tell()
            """Bytes in the file."""
        except OSError as error:
            raise self._unreadable(error) from None

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset``, or fewer at the end; raises ``InputFileError``.

        Threads may read at the same time. The file is read each time, as nothing is cached.
        """
        try:
            with self._lock:
                # Position and read are one step, because threads share the file.
                self._file.seek(offset)
                return self._file.read(size)
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> InputFileError:
        return InputFileError(
            "file-unreadable",
            place=self.where,
            reason=f"cannot be read: {error.strerror or error}",
            hint="copy it to a local disk",
        )


class Stored(LazyBytes):
    """A slice of an open file: ``size`` bytes from ``offset``, which must be inside the file."""

    __slots__ = ("_file", "_offset", "_size")

    def __init__(self, file: StoredFile, offset: int, size: int) -> None:
        self._file = file
        self._offset = offset
        self._size = size

    def __len__(self) -> int:
        return self._size

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset``, or fewer at the end of the slice.

        Raises ``InputFileError`` if the file was truncated after it was opened, or cannot be read.
        """
        # Limited to the slice, because the file continues with the next member.
        wanted = max(0, min(size, self._size - offset))
        data = self._file.read(self._offset + offset, wanted)
        if len(data) != wanted:
            raise InputFileError(
                "file-truncated", place=self._file.where, reason="was truncated while it was read", hint="try again"
            )
        return data
