"""Model files as graphs."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.errors import UnsupportedModelError
from mlfbuild.graph import Graph


def read_model(path: Path, name: str) -> Graph:
    """Read the model file ``path`` as a graph called ``name``.

    Raises ``InputFileError`` where the file is missing or not what it claims to be, ``UnsupportedModelError`` for a
    format, operator, type or variant that is not supported.
    """
    if path.suffix == ".onnx":
        raise UnsupportedModelError(f"{path}: ONNX models are not supported yet; supported are TensorFlow Lite files")
    from mlfbuild.frontends.tflite import read_tflite

    return read_tflite(path, name)
