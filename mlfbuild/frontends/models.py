"""Read a model file in the format that its suffix names."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.core import read_bytes, require_extra
from mlfbuild.graph import ConstantBudget, Graph


def read_model(path: Path, name: str, most_constants: int | None = None) -> Graph:
    """Read the model file ``path`` as a graph called ``name``.

    ``most_constants`` replaces the limit, in bytes, of the constants that are made in reading.

    Raises ``InputFileError`` if the file is missing or not valid in its format, ``UnsupportedModelError`` for an
    operator, type or variant that is not supported, and ``ToolNotFoundError`` for an .onnx file if the package onnx is
    not installed.
    """
    data = read_bytes(path, "model")
    return parse_model(data, name, path, ConstantBudget.of_file(len(data), most_constants))


def parse_model(data: bytes, name: str, path: Path, budget: ConstantBudget | None = None) -> Graph:
    """Return the graph in ``data``, the content of the file ``path``; raises the errors of ``read_model``.

    ``budget`` limits the constants that are made in reading; the default is that of a file of this size.
    """
    budget = budget or ConstantBudget.of_file(len(data))
    if path.suffix.lower() == ".onnx":
        require_extra("onnx", path, "reading an .onnx file")
        from mlfbuild.frontends.onnx import parse_onnx

        return parse_onnx(data, name, str(path), budget)
    from mlfbuild.frontends.tflite import parse_tflite

    return parse_tflite(data, name, str(path), budget)
