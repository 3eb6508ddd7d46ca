"""Find and read the files beside an ``.onnx`` file that hold its weights.

PyTorch 2.9 and later write ``model.onnx`` and ``model.onnx.data``. A tensor with external data has the name of the
file, relative to the folder of the model, and the place of its bytes in it. These names come from an untrusted file, so
they must not lead out of the folder. ``locations`` needs only the bytes of the model and not the package onnx, because
build systems request the list of files each time they are configured.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from mlfbuild.core import InputFileError, quoted
from mlfbuild.native.frontends.onnx.wire import UnusualError, fields_of

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
