"""Each supported operator of TFLite: how its options and constant inputs become an operator of the graph."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator
from tflite.TensorType import TensorType

from mlfbuild.frontends.tflite_operators import elementwise, layers, lstm, movement, reductions, shapes, svdf, variables
from mlfbuild.frontends.tflite_operators.kind import OperatorKind
from mlfbuild.frontends.tflite_operators.site import Site, name_of

__all__ = ["OPERATORS", "SHAPES", "SUPPORTED", "OperatorKind", "Site", "operator_name", "type_name"]

_FAMILIES = (elementwise, layers, lstm, movement, reductions, svdf)


def operator_name(code: int) -> str:
    """Return TFLite's name of the operator ``code``, or the number where it has none."""
    name = name_of(BuiltinOperator, code)
    return f"code {name}" if name.isdigit() else name


def type_name(code: int) -> str:
    """Return TFLite's name of the element type ``code``, or the number where it has none."""
    return name_of(TensorType, code)


OPERATORS: Mapping[int, OperatorKind] = {code: kind for family in _FAMILIES for code, kind in family.KINDS.items()}
"""The operators that become one of a graph, by their code."""

SHAPES: Mapping[int, shapes.ShapeKind] = shapes.KINDS
"""The operators whose values are known from the shapes of their inputs, by their code."""

SUPPORTED = tuple(sorted({*OPERATORS, *SHAPES, *variables.OPERANDS}, key=operator_name))
"""The codes of all operators, in the alphabetical order of their names."""
