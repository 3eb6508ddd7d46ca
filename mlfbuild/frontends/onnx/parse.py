"""Read an ONNX model, and turn the errors of all steps into errors that name the file."""

from __future__ import annotations

from mlfbuild.core import InputFileError, UnsupportedModelError
from mlfbuild.frontends.onnx.importer import import_graph
from mlfbuild.frontends.onnx.reader import read_model
from mlfbuild.graph import ConstantBudget, Graph, GraphError, OperatorError

EXPORT_AGAIN = "copy or export the model again"


def parse_onnx(data: bytes, name: str, where: str, budget: ConstantBudget | None = None) -> Graph:
    """Return the ONNX model in ``data`` as a graph called ``name``; ``where`` names the file in messages.

    ``budget`` limits the constants that are made; the default is that of a file of this size.
    Raises ``InputFileError`` if it is not a valid model, ``UnsupportedModelError`` if it uses an operator, a type or a
    variant that is not supported.
    """
    try:
        return import_graph(read_model(data), name, budget or ConstantBudget.of_file(len(data)))
    except OperatorError as error:
        raise UnsupportedModelError(
            "operator-invalid", place=f"{where}: {error.where}", reason=error.reason, hint=EXPORT_AGAIN
        ) from None
    except GraphError as error:
        raise InputFileError(
            "onnx-malformed", place=f"{where}: {error.where}", reason=error.reason, hint=EXPORT_AGAIN
        ) from None
    except UnsupportedModelError as error:
        raise error.within(where) from None
