"""The content of a file: bytes in memory, or bytes that stay where they are until somebody asks for them.

``bytes(content)`` and ``len(content)`` work for both kinds, and the two compare equal where their bytes are. Large
archives are read, judged, converted and merged without ever holding more than one member.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import zip_longest
from typing import TypeAlias

CHUNK = 1024 * 1024
"""Bytes that are copied at a time."""


class LazyBytes(ABC):
    """Bytes that are produced when they are asked for; the same ones each time."""

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
