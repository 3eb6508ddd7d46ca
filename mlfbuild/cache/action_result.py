"""The protobuf message ``ActionResult`` of the Remote Execution API, as far as outputs of mlfbuild need it.

    ActionResult            2 output_files (repeated), 4 exit_code, 9 execution_metadata
    OutputFile              1 path, 2 digest
    Digest                  1 hash (64 hexadecimal digits), 2 size_bytes
    ExecutedActionMetadata  1 worker, 12 virtual_execution_duration
    Duration                1 seconds, 2 nanos

The numbers are from ``remote_execution.proto`` (https://github.com/bazelbuild/remote-apis, v2.3). The encoding is that
of https://protobuf.dev/programming-guides/encoding: each field is a varint ``number << 3 | wire type``, followed by a
varint (type 0), 8 or 4 bytes (1, 5), or a length and as many bytes (2). Written by hand, because the package protobuf
takes 1.5 MB, generated code that must match its version, and 60 ms to import, for two messages of a few fields.

Fields are written in the order of their numbers, so that equal results are equal bytes. ``execution_metadata`` is the
last one and must be there: a file that was cut at a field's end would otherwise be a result with fewer outputs.
Unknown fields are skipped, as protobuf demands, except those of outputs that are not plain files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlfbuild.core import SHA256, sha256, varint

EMPTY = sha256(b"")
"""Digest of the blob without content."""
MAX_MESSAGE = 1 << 20
"""Bytes of a message: about 8,000 outputs."""
MAX_BLOBS = 1 << 30
"""Bytes of all outputs of an action, which are in memory at once."""
_LONGEST_PATH = 1024
_LONGEST_WORKER = 200
_OTHER_OUTPUTS = {3, 10, 11, 12}
"""``output_directories`` and the symbolic links: an action of mlfbuild has none."""
_UNNAMED = "mlfbuild"
"""A worker must have a name: servers take it as the sign of a message that is not empty."""


@dataclass(frozen=True)
class OutputFile:
    """An output of an action."""

    path: str
    """Relative, with ``/``; without empty parts, ``.`` and ``..``."""
    sha256: str
    size: int
    """Bytes."""


@dataclass(frozen=True)
class ActionResult:
    """The outputs of an action that succeeded, the machine that ran it, and the seconds that it took."""

    outputs: tuple[OutputFile, ...]
    worker: str = _UNNAMED
    seconds: float = 0.0

    def __post_init__(self) -> None:
        for output in self.outputs:
            _check_output(output)
        if len({output.path for output in self.outputs}) < len(self.outputs):
            raise ValueError("two outputs have the same path")
        if sum(output.size for output in self.outputs) > MAX_BLOBS:
            raise ValueError("the outputs are too large")

    def to_bytes(self) -> bytes:
        """Return the message."""
        files = [
            _text(1, file.path) + _message(2, _text(1, file.sha256) + _number(2, file.size)) for file in self.outputs
        ]
        seconds, nanos = divmod(round(max(self.seconds, 0.0) * 1e9), 10**9)
        worker = (self.worker or _UNNAMED)[:_LONGEST_WORKER]
        metadata = _text(1, worker) + _message(12, _number(1, seconds) + _number(2, nanos))
        return b"".join(_message(2, file) for file in files) + _message(9, metadata)

    @classmethod
    def from_bytes(cls, data: bytes) -> ActionResult:
        """Return the result that the message ``data``, which is untrusted, describes.

        Raises ``ValueError`` if it is damaged, or describes an action that failed or that has other outputs than files.
        """
        outputs: list[OutputFile] = []
        metadata: bytes | None = None
        for number, value in _fields(data):
            if number == 2:
                outputs.append(_output(_bytes(value)))
            elif number == 9:
                metadata = _bytes(value)
            elif (number == 4 and value != 0) or number in _OTHER_OUTPUTS:
                raise ValueError("the action failed, or has other outputs than files")
        if metadata is None:
            raise ValueError("the message ends early")
        fields = dict(_fields(metadata))
        seconds, nanos = _numbers(fields.get(12, b""), 1, 2)
        worker = _utf8(fields.get(1, b""))
        if not worker or len(worker) > _LONGEST_WORKER or not worker.isprintable():
            raise ValueError("the worker has no name")
        return cls(tuple(outputs), worker, seconds + nanos / 1e9)


def _output(data: bytes) -> OutputFile:
    fields = dict(_fields(data))
    digest = fields.get(2, b"")
    sha256 = _utf8(dict(_fields(_bytes(digest))).get(1, b""))
    return OutputFile(_utf8(fields.get(1, b"")), sha256, _numbers(digest, 2)[0])


def _check_output(output: OutputFile) -> None:
    parts = output.path.split("/")
    safe = output.path.isprintable() and not {"", ".", ".."} & set(parts) and not set("\\:") & set(output.path)
    if not safe or len(output.path) > _LONGEST_PATH:
        raise ValueError("the path of an output is not relative and plain")
    if not SHA256.fullmatch(output.sha256) or output.size < 0 or (output.size == 0) != (output.sha256 == EMPTY):
        raise ValueError("the digest of an output is not a SHA-256 with a size")


# Writing -------------------------------------------------------------------------------------------------------------


def _message(field: int, content: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _number(field: int, number: int) -> bytes:
    # The default value is not written.
    return varint(field << 3) + varint(number) if number else b""


# Reading -------------------------------------------------------------------------------------------------------------


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield number and value of each field; raises ``ValueError`` if one goes beyond the end of ``data``."""
    at = 0
    while at < len(data):
        tag, at = _readvarint(data, at)
        number, kind = tag >> 3, tag & 7
        if not number:
            raise ValueError("a field has the number 0")
        if kind == 0:
            value, at = _readvarint(data, at)
            yield number, value
            continue
        if kind == 2:
            length, at = _readvarint(data, at)
        elif kind in {1, 5}:
            length = 8 if kind == 1 else 4
        else:
            raise ValueError("a field has an unknown type")
        if length > len(data) - at:
            raise ValueError("the message ends early")
        yield number, data[at : at + length]
        at += length


def _readvarint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 64, 7):
        if at >= len(data):
            raise ValueError("the message ends early")
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
    raise ValueError("a number has more than 64 bits")


def _numbers(data: int | bytes, *fields: int) -> Sequence[int]:
    """Return the values of number fields of a message; the numbers of its type are signed, and must not be negative."""
    found = dict(_fields(_bytes(data)))
    values = [found.get(field, 0) for field in fields]
    # int64: negative ones have the highest bit. A duration of centuries would not fit into a float exactly either.
    if not all(isinstance(value, int) and value < 1 << 53 for value in values):
        raise ValueError("a number is out of range")
    return [value for value in values if isinstance(value, int)]


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a field has another type")
    return value


def _utf8(value: int | bytes) -> str:
    return _bytes(value).decode()  # UnicodeDecodeError is a ValueError
