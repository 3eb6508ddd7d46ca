"""Read an ONNX model."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.errors import naming_file
from mlfbuild.native.frontends.onnx.dimensions import with_sizes
from mlfbuild.native.frontends.onnx.importer import import_graph
from mlfbuild.native.frontends.onnx.reader import read_model, with_constants
from mlfbuild.native.frontends.onnx.refused import KNOWN
from mlfbuild.native.graph import ConstantBudget, Graph


def parse_onnx(
    data: bytes,
    name: str,
    where: str,
    budget: ConstantBudget | None = None,
    files: Mapping[str, bytes] | None = None,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, int | float | bool] | None = None,
) -> Graph:
    """Return the ONNX model in ``data`` as a graph called ``name``; ``where`` names the file in messages.

    ``files`` are those that hold weights beside the model, by the name that the model has. ``dims`` are sizes of free
    dimensions by name, ``constants`` numbers for inputs.
    ``budget`` limits the constants that are made; the default is that of a file of this size.
    Raises ``InputFileError`` if it is not a valid model, ``UnsupportedModelError`` if it uses an operator, a type or a
    variant that is not supported.
    """
    with naming_file(where, "onnx-malformed"):
        raw, notes = with_sizes(read_model(data, KNOWN, files), dims or {}, name)
        raw = with_constants(raw, constants or {}, name)
        return import_graph(raw, name, budget or ConstantBudget.of_file(len(data)), notes)
