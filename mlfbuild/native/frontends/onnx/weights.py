"""Find the weights of an ``.onnx`` file in its bytes, and those in files beside it, without the package onnx.

ONNX's own reader copies everything that it reads. The bytes of large weights are therefore cut out of the file before,
by the rules of the protocol buffers' wire format (https://protobuf.dev/programming-guides/encoding), and put back as
arrays afterwards, which are views.

PyTorch 2.9 and later write ``model.onnx`` and ``model.onnx.data``. A tensor with external data has the name of the
file, relative to the folder of the model, and the place of its bytes in it. These names come from an untrusted file, so
they must not lead out of the folder. ``locations`` needs only the bytes of the model and not the package onnx, because
build systems request the list of files each time they are configured.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from mlfbuild.core import InputFileError, quoted, varint

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
    return bytes([number << 3 | _LEN]) + varint(len(payload)) + payload


def fields_of(message: memoryview) -> Iterator[_Field]:
    """Yield the fields of ``message``; raises ``UnusualError``."""
    at = 0
    while at < len(message):
        key, payload = _readvarint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == _VARINT:
            end = _readvarint(message, payload)[1]
        elif wire_type == _LEN:
            size, payload = _readvarint(message, payload)
            end = payload + size
        elif wire_type in {_I64, _I32}:
            end = payload + (8 if wire_type == _I64 else 4)
        else:
            raise UnusualError
        if end > len(message):
            raise UnusualError
        yield _Field(number, wire_type, at, payload, end)
        at = end


def _readvarint(message: memoryview, at: int) -> tuple[int, int]:
    """Return the number at ``at`` and the position of its end."""
    value = 0
    # A varint of 64 bits has at most 10 bytes.
    for position in range(at, min(at + 10, len(message))):
        byte = message[position]
        value |= (byte & 0x7F) << 7 * (position - at)
        if byte < 0x80:
            return value, position + 1
    raise UnusualError


if TYPE_CHECKING:
    from onnx import TensorProto

_KEY = b"location"
"""The key of the file's name, which every model with external data contains."""
_DEEPEST = 100
"""The deepest nesting of messages; the reader of onnx allows as many."""
_TENSOR, _ENTRY = "tensor", "entry"
_MESSAGES: Mapping[str, Mapping[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: _TENSOR, 15: "sparse"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: _TENSOR, 6: "graph", 10: _TENSOR, 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: _TENSOR, 2: _TENSOR},
    _TENSOR: {13: _ENTRY},
}
"""The fields with messages that can contain a tensor, by message: those of ONNX's protocol buffers."""


def locations(model: bytes) -> list[str]:
    """Return the names of the files with weights of ``model``, the content of an ``.onnx`` file, in order of first use.

    A file that cannot be decoded has none; reading it reports why.
    """
    # A search of bytes, which decides for nearly all files.
    if _KEY not in model:
        return []
    try:
        return list(dict.fromkeys(_locations(memoryview(model), "model", 0)))
    except (UnusualError, UnicodeDecodeError):
        return []


def _locations(message: memoryview, kind: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        raise UnusualError
    for field in fields_of(message):
        inner = _MESSAGES[kind].get(field.number)
        if inner is None or not field.is_message:
            continue
        content = message[field.payload : field.end]
        # Keys and values are strings; only the entry called "location" names a file.
        if inner == _ENTRY:
            key, value = _entry(content)
            if key == _KEY:
                yield value.decode()
        else:
            yield from _locations(content, inner, depth + 1)


def _entry(message: memoryview) -> tuple[bytes, bytes]:
    found = {field.number: bytes(message[field.payload : field.end]) for field in fields_of(message)}
    return found.get(1, b""), found.get(2, b"")


def weight_file(model: Path, location: str) -> Path:
    """Return the file ``location`` beside the file ``model``.

    Raises ``InputFileError`` if the name leads out of the model's folder, directly or through a link, and if the file
    is missing.

    Every part of the path must be a plain folder or file: a symbolic link is refused even if it stays inside.
    """
    # Names use ``/`` as ONNX demands; a backslash would be a separator on Windows only.
    parts = PurePosixPath(location).parts
    if (
        not location.isprintable()
        or not parts
        or ".." in parts
        or "\\" in location
        or PurePosixPath(location).is_absolute()
        or PureWindowsPath(location).drive
    ):
        raise _unsafe(model, location, "is not a path within its folder")
    path = model.parent
    # Part by part, because a link anywhere on the way could lead out of the folder.
    for part in parts:
        path /= part
        try:
            mode = path.lstat().st_mode
        except (OSError, ValueError):
            raise InputFileError(
                "weights-file-missing",
                place=model,
                reason=f"the file {quoted(location)} with its weights is missing",
                hint="copy it into the folder of the model; both files belong together",
            ) from None
        if stat.S_ISLNK(mode):
            raise _unsafe(model, location, "is a symbolic link or leads through one")
    if not stat.S_ISREG(mode):
        raise _unsafe(model, location, "is not a file")
    return path


def _unsafe(model: Path, location: str, reason: str) -> InputFileError:
    return InputFileError(
        "weights-file-unsafe",
        place=model,
        reason=f"the name {quoted(location)} of a file with weights {reason}",
        hint="store the weights beside the model, for example with onnx.save(..., save_as_external_data=True)",
    )


def external_bytes(tensor: TensorProto, files: Mapping[str, bytes]) -> memoryview:
    """Return the bytes of ``tensor`` in one of ``files``, which are known by location; raises ``GraphError``."""
    from onnx.external_data_helper import ExternalDataInfo

    from mlfbuild.native.frontends.errors import DamagedFileError
    from mlfbuild.native.graph import GraphError

    where = f"weights {tensor.name!r}"
    try:
        info: Any = ExternalDataInfo(tensor)  # its type hints are those of an empty one
    except ValueError as error:
        raise GraphError(where, f"have a wrong place in another file: {error}") from None
    if info.location not in files:
        raise DamagedFileError(where, "are in another file, which was not read")
    # Without a length, the data extends to the end of the file.
    data, start = files[info.location], info.offset or 0
    end = len(data) if info.length is None else start + info.length
    if end > len(data):
        raise DamagedFileError(
            where, f"are bytes {start} to {end} of the file {info.location!r}, which has {len(data)} bytes"
        )
    return memoryview(data)[start:end]
