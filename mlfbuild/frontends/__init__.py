"""Model files as graphs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes, read_bytes
from mlfbuild.graph import Graph

if TYPE_CHECKING:
    from mlfbuild.frontends.advice import CHANGE as CHANGE
else:
    __getattr__ = lazy_attributes(__name__)


def read_model(path: Path, name: str) -> Graph:
    """Read the model file ``path`` as a graph called ``name``.

    Raises ``InputFileError`` where the file is missing or not what it claims to be, ``UnsupportedModelError`` for a
    format, operator, type or variant that is not supported.
    """
    return parse_model(read_bytes(path, "model"), name, path)


def parse_model(data: bytes, name: str, path: Path) -> Graph:
    """Return the graph in ``data``, the content of the model file ``path``; raises as ``read_model``."""
    if path.suffix.lower() == ".onnx":
        from mlfbuild.frontends.onnx import parse_onnx

        return parse_onnx(data, name, str(path))
    from mlfbuild.frontends.tflite import parse_tflite

    return parse_tflite(data, name, str(path))
