"""Metadata of a model file: description, author, version and licence.

TFLite files have a description, and may contain a flatbuffer of TFLite Metadata with the rest in a separate buffer
(``metadata_schema.fbs`` of tflite-support, table ``ModelMetadata``). ONNX files have a description, a version, and
properties, two of which ONNX names for this: ``model_author`` and ``model_license`` (``docs/MetadataProps.md``).
Other tools do not check them, and a file with damaged metadata still compiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlfbuild.core import require_extra
from mlfbuild.native.graph import GraphError

_LONGEST = 2000
"""Maximum characters of a text."""
_METADATA = b"TFLITE_METADATA"
_METADATA_IDENTIFIER = b"M001"
_MOST_ENTRIES = 1000
_DESCRIPTION, _VERSION, _AUTHOR, _LICENSE = 6, 8, 12, 14
"""Offsets into the vtable of ``ModelMetadata``: 4, and 2 for each field before."""


@dataclass(frozen=True)
class ModelFacts:
    """Texts of a model file; empty if they are missing."""

    version: str = ""
    description: str = ""
    author: str = ""
    license: str = ""
    """Free text of the author."""


def model_facts(data: bytes, path: Path) -> ModelFacts:
    """Return the metadata of the model file ``path`` with the content ``data``.

    Raises ``ToolNotFoundError`` if the package that reads the file is not installed.

    Texts are on one line and of bounded length. A damaged file gives empty texts and no error.
    """
    try:
        if path.suffix.lower() == ".onnx":
            require_extra("onnx", path, "reading an .onnx file")
            return _onnx(data)
        from mlfbuild.native.frontends.tflite import IDENTIFIER, reading

        # A file without the identifier is not a flatbuffer, and is reported when it is compiled.
        if data[4:8] == IDENTIFIER:
            with reading("metadata"):
                return _tflite(data)
    except GraphError:
        pass
    return ModelFacts()


def _tflite(data: bytes) -> ModelFacts:
    from tflite.Model import Model

    model = Model.GetRootAs(data)
    described = ModelFacts(description=_clean(model.Description()))
    for index in range(min(model.MetadataLength(), _MOST_ENTRIES)):
        entry = model.Metadata(index)
        if entry.Name() == _METADATA:
            # The buffer index is not trusted, like every number of the file.
            if entry.Buffer() >= model.BuffersLength():
                return described
            facts = _tflite_metadata(bytes(model.Buffers(entry.Buffer()).DataAsNumpy()))
            # The description of the model itself is the substitute for one in the metadata.
            return facts if facts.description else ModelFacts(**{**vars(facts), "description": described.description})
    return described


def _tflite_metadata(data: bytes) -> ModelFacts:
    if data[4:8] != _METADATA_IDENTIFIER:
        return ModelFacts()
    from flatbuffers.encode import Get
    from flatbuffers.packer import uoffset
    from flatbuffers.table import Table

    table = Table(data, Get(uoffset, data, 0))

    def text(field: int) -> str:
        offset = table.Offset(field)
        return _clean(table.String(table.Pos + offset)) if offset else ""

    return ModelFacts(text(_VERSION), text(_DESCRIPTION), text(_AUTHOR), text(_LICENSE))


def _onnx(data: bytes) -> ModelFacts:
    from google.protobuf.message import DecodeError
    from onnx import ModelProto

    try:
        model = ModelProto.FromString(data)
    except DecodeError:
        return ModelFacts()
    properties = {entry.key: entry.value for entry in model.metadata_props[:_MOST_ENTRIES]}
    return ModelFacts(
        str(model.model_version) if model.model_version else "",
        _clean(model.doc_string),
        _clean(properties.get("model_author")),
        _clean(properties.get("model_license")),
    )


def _clean(value: Any) -> str:
    """Return a text on one line, without control characters, with at most ``_LONGEST`` characters."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
    # Cut before the split, so that a text of megabytes costs nothing.
    words = " ".join(text[: 2 * _LONGEST].split())
    return "".join(character for character in words if character.isprintable())[:_LONGEST]
