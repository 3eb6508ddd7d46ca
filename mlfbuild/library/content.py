"""The content of a file: bytes in memory, or bytes that stay where they are until somebody asks for them.

``bytes(content)`` and ``len(content)`` work for both kinds, and the two compare equal where their bytes are. Large
archives are read, judged, converted and merged without ever holding more than one member.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest
from typing import IO, TypeAlias

from mlfbuild.core import InputFileError, StorageError

CHUNK = 1024 * 1024
"""Bytes that are copied at a time."""
_IN_MEMORY = 4 * CHUNK
"""Bytes of a content that needs no file."""


class LazyBytes(ABC):
    """Bytes that are produced when they are asked for; the same ones each time."""

    __slots__ = ()

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of bytes, without producing them."""

    @abstractmethod
    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset``, fewer where the end comes first."""

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
            return True
        return len(self) == len(other) and all(a == b for a, b in zip_longest(self.chunks(), chunks(other)))

    __hash__ = None  # type: ignore[assignment]  # equal to bytes, but too large to hash like them


Content: TypeAlias = bytes | LazyBytes


def chunks(content: Content) -> Iterator[bytes]:
    """Yield the bytes of ``content`` in order, ``CHUNK`` at a time and the rest."""
    if isinstance(content, LazyBytes):
        yield from content.chunks()
    else:
        for offset in range(0, len(content), CHUNK):
            yield content[offset : offset + CHUNK]


def text_of(content: Content) -> str:
    """Return ``content`` as text; bytes that are no UTF-8 become U+FFFD."""
    return bytes(content).decode(errors="replace")


def spooled(parts: Iterable[bytes]) -> Content:
    """Return ``parts`` as one content: in memory where it is small, else in a temporary file that lives as long as it.

    Raises ``StorageError`` where the file cannot be written.
    """
    parts = iter(parts)
    start: list[bytes] = []
    size = 0
    for part in parts:
        start.append(part)
        size += len(part)
        if size > _IN_MEMORY:
            break
    else:
        return b"".join(start)
    try:
        stored = StoredFile(_temporary(chain(start, parts)), "temporary file")
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"temporary file: cannot write: {reason}; free space, or name a folder in TMPDIR") from None
    return Stored(stored, 0, stored.size)


def _temporary(parts: Iterable[bytes]) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - who asked for it closes it
    try:
        file.writelines(parts)
        file.flush()
    except BaseException:
        with contextlib.suppress(OSError):  # what was not written yet fails once more
            file.close()
        raise
    return file


# Files ---------------------------------------------------------------------------------------------------------------


class StoredFile:
    """An open file, read at any offset from any thread; it is closed when nobody holds it or a slice of it any more.

    ``file`` is taken over: nobody else may read, move or close it. ``where`` names it in messages. Raises
    ``InputFileError`` where it has no size, as a pipe.
    """

    def __init__(self, file: IO[bytes], where: str) -> None:
        self.where = where
        self._file = file
        self._lock = threading.Lock()
        weakref.finalize(self, file.close)
        try:
            file.seek(0, os.SEEK_END)
            self.size = file.tell()
            """Bytes in the file."""
        except OSError as error:
            raise self._unreadable(error) from None

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset``, fewer where the file ends first; raises ``InputFileError``."""
        try:
            with self._lock:
                self._file.seek(offset)
                return self._file.read(size)
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> InputFileError:
        return InputFileError(f"{self.where}: cannot be read: {error.strerror or error}; copy it to a local disk")


class Stored(LazyBytes):
    """``size`` bytes of an open file from ``offset``, which the file holds."""

    __slots__ = ("_file", "_offset", "_size")

    def __init__(self, file: StoredFile, offset: int, size: int) -> None:
        self._file = file
        self._offset = offset
        self._size = size

    def __len__(self) -> int:
        return self._size

    def read(self, offset: int, size: int) -> bytes:
        """Return ``size`` bytes from ``offset``, fewer where the slice ends first.

        Raises ``InputFileError`` where the file has been cut short since it was opened, or cannot be read.
        """
        wanted = max(0, min(size, self._size - offset))
        data = self._file.read(self._offset + offset, wanted)
        if len(data) != wanted:
            raise InputFileError(f"{self._file.where}: was cut short while it was read; try again")
        return data
