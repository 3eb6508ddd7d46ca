"""Read large weights of an ``.onnx`` file as views of its bytes, to avoid copies.

ONNX's own reader copies everything that it reads. The bytes of large weights are therefore cut out of the file before,
by the rules of the protocol buffers' wire format (https://protobuf.dev/programming-guides/encoding), and put back as
arrays afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

# Smaller ones take less time to copy than to cut out.
_LARGE = 4096
"""Size in bytes from which weights are cut out."""
_VARINT, _I64, _LEN, _I32 = 0, 1, 2, 5
_GRAPH = 7
"""Field of ModelProto."""
_INITIALIZER = 5
"""Field of GraphProto."""
_DIMS, _RAW_DATA = 1, 9
"""Fields of TensorProto."""
LARGEST_ELEMENT = 16
"""Size in bytes. A tensor that is cut out becomes a scalar, because ONNX's checker compares shape and data."""


class UnusualError(Exception):
    """The file has an unusual structure; ONNX's own reader must judge it."""


@dataclass(frozen=True)
class CutTensor:
    """A ``TensorProto`` whose elements were cut out."""

    header: bytes
    """The tensor without ``raw_data``."""
    raw: memoryview
    """The bytes of its elements."""


@dataclass(frozen=True)
class _Field:
    """A field of a message: ``message[start:end]``, its payload ``message[payload:end]``."""

    number: int
    wire_type: int
    start: int
    payload: int
    end: int

    @property
    def is_message(self) -> bool:
        """Whether the payload may be a message."""
        return self.wire_type == _LEN


def without_large_weights(data: bytes) -> tuple[bytes, list[CutTensor | None]]:
    """Return the model ``data`` with scalars in place of large initializers, and one entry per initializer, in order.

    An entry is ``None`` if the model still contains the data. A file with an unusual structure is returned unchanged,
    without entries.
    """
    try:
        return _cut(memoryview(data))
    except UnusualError:
        return data, []


def _cut(model: memoryview) -> tuple[bytes, list[CutTensor | None]]:
    fields = list(fields_of(model))
    # A model has one graph; others are left to ONNX's own reader.
    graphs = [field for field in fields if field.number == _GRAPH]
    if len(graphs) != 1 or graphs[0].wire_type != _LEN:
        raise UnusualError
    graph, weights = _cut_graph(model[graphs[0].payload : graphs[0].end])
    parts = (_message(_GRAPH, graph) if f.number == _GRAPH else bytes(model[f.start : f.end]) for f in fields)
    return b"".join(parts), weights


def _cut_graph(graph: memoryview) -> tuple[bytes, list[CutTensor | None]]:
    parts: list[bytes] = []
    weights: list[CutTensor | None] = []
    for field in fields_of(graph):
        part = bytes(graph[field.start : field.end]) if field.number != _INITIALIZER else b""
        if field.number == _INITIALIZER:
            if field.wire_type != _LEN:
                raise UnusualError
            tensor, cut = _cut_tensor(graph[field.payload : field.end])
            part = _message(_INITIALIZER, tensor)
            weights.append(cut)
        parts.append(part)
    return b"".join(parts), weights


def _cut_tensor(tensor: memoryview) -> tuple[bytes, CutTensor | None]:
    fields = list(fields_of(tensor))
    raw = [field for field in fields if field.number == _RAW_DATA]
    # Of several raw_data fields, protobuf takes the last one: such a tensor is left to ONNX's own reader.
    if len(raw) != 1 or raw[0].wire_type != _LEN or raw[0].end - raw[0].payload < _LARGE:
        return bytes(tensor), None
    rest = {field: bytes(tensor[field.start : field.end]) for field in fields if field is not raw[0]}
    # Without its dimensions, the tensor is a scalar, whose data has one element.
    scalar = b"".join(part for field, part in rest.items() if field.number != _DIMS)
    cut = CutTensor(b"".join(rest.values()), tensor[raw[0].payload : raw[0].end])
    return scalar + _message(_RAW_DATA, bytes(LARGEST_ELEMENT)), cut


def _message(number: int, payload: bytes) -> bytes:
    # Field numbers up to 15 have a key of one byte.
    return bytes([number << 3 | _LEN]) + _varint(len(payload)) + payload


def _varint(value: int) -> bytes:
    low = bytearray()
    while value > 0x7F:
        low.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*low, value])


def fields_of(message: memoryview) -> Iterator[_Field]:
    """Yield the fields of ``message``; raises ``UnusualError``."""
    at = 0
    while at < len(message):
        key, payload = _read_varint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            end = _read_varint(message, payload)[1]
        elif wire_type == _LEN:
            size, payload = _read_varint(message, payload)
            end = payload + size
        elif wire_type in {_I64, _I32}:
            end = payload + (8 if wire_type == _I64 else 4)
        else:
            raise UnusualError
        if end > len(message):
            raise UnusualError
        yield _Field(number, wire_type, at, payload, end)
        at = end


def _read_varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return the number at ``at`` and the position of its end."""
    value = 0
    # A varint of 64 bits has at most 10 bytes.
    for position in range(at, min(at + 10, len(message))):
        byte = message[position]
        value |= (byte & 0x7F) << 7 * (position - at)
        if byte < 0x80:
            return value, position + 1
    raise UnusualError
