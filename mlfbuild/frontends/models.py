"""Read a model file in the format that its suffix names."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.core import read_bytes
from mlfbuild.graph import Graph


def read_model(path: Path, name: str) -> Graph:
    """Read the model file ``path`` as a graph called ``name``.

    Raises ``InputFileError`` if the file is missing or not valid in its format, ``UnsupportedModelError`` for an
    operator, type or variant that is not supported.
    """
    return parse_model(read_bytes(path, "model"), name, path)


def parse_model(data: bytes, name: str, path: Path) -> Graph:
    """Return the graph in ``data``, the content of the file ``path``; raises the errors of ``read_model``."""
    if path.suffix.lower() == ".onnx":
        from mlfbuild.frontends.onnx import parse_onnx

        return parse_onnx(data, name, str(path))
    from mlfbuild.frontends.tflite import parse_tflite

    return parse_tflite(data, name, str(path))
