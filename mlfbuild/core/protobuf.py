"""The integers of Protocol Buffers, in which ONNX files and results in caches are written."""

from __future__ import annotations


def varint(number: int) -> bytes:
    """Return ``number``, which is not negative: 7 bits a byte, the lowest first, and a bit that more bytes follow."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])
