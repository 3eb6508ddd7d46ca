"""Frames of ``runtime/serial/mlf_serial.h`` on a serial line, and the text that firmware prints between them.

A frame is a zero byte, a body in COBS, and a zero byte. The body is a kind, a sequence number, a payload, and the
CRC-32 of all three. ``Receiver`` takes bytes in any pieces; the CRC decides what is a frame, whatever was lost before.
"""

from __future__ import annotations

import threading
import zlib
from dataclasses import dataclass

LARGEST_BODY = 254
"""A longer body would need a second block of COBS, which the firmware does not read."""
# Bytes of the CRC-32, which detects every burst of up to 32 wrong bits.
_CRC = 4
_SMALLEST_BODY = 2 + _CRC
_LONGEST_SEGMENT = 4096
"""Bytes without a zero byte that are kept; more are a line of text without an end, or noise."""
# Control characters that a terminal uses, and every byte that can be part of UTF-8. Frames mostly contain other control
# characters, such as the run lengths of COBS, so few damaged ones are taken for text.
_TEXT = frozenset([*b"\t\n\v\f\r\x1b", *range(0x20, 0x7F), *range(0x80, 0x100)])


@dataclass(frozen=True)
class SerialFrame:
    """A frame that arrived undamaged."""

    kind: str
    sequence: int
    payload: bytes


@dataclass(frozen=True)
class Damaged:
    """Bytes that are neither a frame nor text."""

    data: bytes


def encode(kind: str, sequence: int, payload: bytes = b"") -> bytes:
    """Return a frame with the zero bytes around it.

    ``kind`` is one ASCII letter, ``sequence`` 0 to 255. ``payload`` has at most 248 bytes, so that the body fits one
    block of COBS.
    """
    body = kind.encode("ascii") + bytes([sequence]) + payload
    body += zlib.crc32(body).to_bytes(_CRC, "little")
    assert len(body) <= LARGEST_BODY
    # Each run between zero bytes is preceded by its length + 1 (COBS). The body has at most 254 bytes, so no run is so
    # long that it has to be divided.
    return b"\0" + b"".join(bytes([len(run) + 1]) + run for run in body.split(b"\0")) + b"\0"


def decode(segment: bytes) -> SerialFrame | None:
    """Return the frame between two zero bytes, or ``None`` if it is damaged."""
    body, at = bytearray(segment), 0
    while at < len(segment):
        # Each length byte of COBS stands for the zero byte at the end of its run; the first one stands for none.
        body[at] = 0
        at += segment[at]
    # The last run must end exactly at the end, which most damaged frames do not.
    if at != len(segment) or len(body) - 1 < _SMALLEST_BODY:
        return None
    content, crc = bytes(body[1:-_CRC]), bytes(body[-_CRC:])
    if zlib.crc32(content).to_bytes(_CRC, "little") != crc:
        return None
    return SerialFrame(chr(content[0]), content[1], content[2:])


class Receiver:
    """Take received bytes apart."""

    def __init__(self) -> None:
        self._segment = bytearray()
        self._shown = 0
        self._text = bytearray()
        self._lock = threading.Lock()  # the console may be read while the firmware runs

    def feed(self, data: bytes) -> list[SerialFrame | Damaged]:
        """Return the frames that ``data`` completes, and what was damaged, in their order.

        ``data`` may begin and end anywhere, also within a frame; the rest is kept for the next call. Text between
        frames is not returned here: ``text`` returns it.
        """
        found: list[SerialFrame | Damaged] = []
        *ends, rest = data.split(b"\0")
        with self._lock:
            for end in ends:
                self._segment += end
                found += self._taken()
            self._segment += rest
            # A device that prints without zero bytes, or a wrong baud rate, would otherwise fill the memory.
            return found + (self._taken() if len(self._segment) > _LONGEST_SEGMENT else [])

    def _taken(self) -> list[SerialFrame | Damaged]:
        """Take the segment, which has ended; return it unless it is text."""
        segment, shown = bytes(self._segment), self._shown
        self._segment.clear()
        self._shown = 0
        frame = decode(segment)
        if frame is not None or not segment:
            return [frame] if frame else []
        # Text needs no CRC: a wrong character in it is seen by the reader and harms nothing.
        if _is_text(segment):
            self._text += segment[shown:]
            return []
        return [Damaged(segment)]

    @property
    def rest(self) -> bytes:
        """The bytes since the last zero byte."""
        return bytes(self._segment)

    def text(self) -> str:
        """Return the text since the last call, with whole lines of the segment that has not ended."""
        with self._lock:
            # Firmware that only prints sends no zero byte before its next frame, so whole lines are shown before the
            # segment ends. What was shown is not repeated when it does.
            end = self._segment.rfind(b"\n") + 1
            if end > self._shown and _is_text(self._segment[:end]):
                self._text += self._segment[self._shown : end]
                self._shown = end
            text = self._text.decode(errors="replace")
            self._text.clear()
        return text


def _is_text(data: bytes | bytearray) -> bool:
    if not _TEXT.issuperset(data):
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
