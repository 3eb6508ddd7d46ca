"""Read a model file in the format that its suffix names."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.core import UsageError, require_extra
from mlfbuild.native.frontends.choices import Choices
from mlfbuild.native.frontends.files import NetworkFiles, SourceFiles
from mlfbuild.native.frontends.state import with_state
from mlfbuild.native.graph import ConstantBudget, Graph


def read_model(path: Path, name: str, most_constants: int | None = None, choices: Choices | None = None) -> Graph:
    """Read the model file ``path``, and the files with its weights, as a graph called ``name``.

    ``most_constants`` replaces the limit, in bytes, of the constants that are made in reading.

    Raises ``InputFileError`` if the file is missing or not valid in its format, ``UnsupportedModelError`` for an
    operator, type or variant that is not supported, ``UsageError`` for ``choices`` that do not fit the model, and
    ``ToolNotFoundError`` for an .onnx file if the package onnx is not installed.
    """
    files = SourceFiles(path).read()
    return parse_files(files, name, ConstantBudget.of_file(files.size, most_constants), choices)


def parse_model(data: bytes, name: str, path: Path, budget: ConstantBudget | None = None) -> Graph:
    """Return the graph in ``data``, the content of the file ``path``; raises the errors of ``read_model``.

    ``budget`` limits the constants that are made in reading; the default is that of a file of this size.
    """
    return parse_files(NetworkFiles(path, data), name, budget)


def parse_files(
    files: NetworkFiles, name: str, budget: ConstantBudget | None = None, choices: Choices | None = None
) -> Graph:
    """Return the graph in ``files``; raises the errors of ``read_model``."""
    path, chosen = files.path, choices or Choices()
    budget = budget or ConstantBudget.of_file(files.size)
    if path.suffix.lower() == ".onnx":
        if chosen.signature is not None:
            raise UsageError(
                "signature-of-onnx",
                place=f"{name}: signature",
                reason="an ONNX model has no signatures",
                hint="remove signature",
            )
        require_extra("onnx", path, "reading an .onnx file")
        from mlfbuild.native.frontends.onnx import parse_onnx

        graph = parse_onnx(files.data, name, str(path), budget, files.weights, chosen.dims, chosen.numbers)
        return with_state(graph, chosen.state)
    if chosen.constants:
        raise UsageError(
            "constants-of-tflite",
            place=f"{name}: constants.{next(iter(chosen.constants))}",
            reason="inputs of a TensorFlow Lite model cannot be constant",
            hint="remove constants, or fix the input when you convert the model",
        )
    if chosen.dims:
        raise UsageError(
            "dims-of-tflite",
            place=f"{name}: dims.{next(iter(chosen.dims))}",
            reason="dimensions of a TensorFlow Lite model have no names and fixed sizes",
            hint="remove dims",
        )
    from mlfbuild.native.frontends.tflite import parse_tflite

    return with_state(parse_tflite(files.data, name, str(path), budget, chosen.signature), chosen.state)
