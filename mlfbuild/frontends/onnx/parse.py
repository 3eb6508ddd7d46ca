"""Read an ONNX model."""

from __future__ import annotations

from mlfbuild.frontends.errors import naming_file
from mlfbuild.frontends.onnx.importer import import_graph
from mlfbuild.frontends.onnx.reader import read_model
from mlfbuild.graph import Graph


def parse_onnx(data: bytes, name: str, where: str) -> Graph:
    """Return the ONNX model in ``data`` as a graph called ``name``; ``where`` names the file in messages.

    Raises ``InputFileError`` if it is not a valid model, ``UnsupportedModelError`` if it uses an operator, a type or a
    variant that is not supported.
    """
    with naming_file(where, "onnx-malformed"):
        return import_graph(read_model(data), name)
