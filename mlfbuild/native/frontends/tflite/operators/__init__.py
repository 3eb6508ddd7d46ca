"""Each supported operator of TFLite: how its options and constant inputs become an operator of the graph.

Each file has a table ``ROWS`` by the names of operators: ``simple`` those of which a row says everything, the others
those that need more checks. Operators without options and constant inputs, and those with only a fused activation, need
no row: ``plain_row`` reads them. Names are those of TFLite's schema, which the operators of graphs have as well, so the
class in ``graph/ops`` is imported when a model has the operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from tflite.BuiltinOperator import BuiltinOperator
from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite.operators import detections, layers, movements, signal, simple
from mlfbuild.native.frontends.tflite.operators.site import TfliteRow as TfliteRow, plain_row
from mlfbuild.native.frontends.tflite.operators.shapes import SHAPES as SHAPES
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite as TfliteSite, name_of
from mlfbuild.native.graph.ops import OPERATORS, operator_class

FILES = (detections, layers, movements, signal, simple)
"""The modules with a table of rows."""

_ROWS = {name: row for module in FILES for name, row in module.ROWS.items()}

VARIABLES: Mapping[int, tuple[int, int]] = {
    BuiltinOperator.ASSIGN_VARIABLE: (2, 0),
    BuiltinOperator.CALL_ONCE: (0, 0),
    BuiltinOperator.READ_VARIABLE: (1, 1),
    BuiltinOperator.VAR_HANDLE: (0, 1),
}
"""The number of inputs and outputs of the operators on resource variables, which become states of the graph."""

_CONTROL_FLOW = (BuiltinOperator.IF, BuiltinOperator.WHILE)
"""The operators that other subgraphs replace."""


def operator_name(code: int) -> str:
    """Return TFLite's name of the operator ``code``, or the number if it has none."""
    name = name_of(BuiltinOperator, code)
    return f"code {name}" if name.isdigit() else name


def type_name(code: int) -> str:
    """Return TFLite's name of the element type ``code``, or the number if it has none."""
    return name_of(TensorType, code)


@cache
def operator_row(code: int, custom_code: str = "") -> TfliteRow | None:
    """Return the row of the operator ``code``; ``None`` for operators without a node, such as those in ``SHAPES``."""
    name = custom_code if code == BuiltinOperator.CUSTOM else operator_name(code)
    operator = operator_class(name)
    # Custom operators are found by their own name, whatever their code.
    return None if operator is None else _ROWS.get(name) or plain_row(operator)


_GRAPH_OPERATORS = {code for name, code in vars(BuiltinOperator).items() if name in OPERATORS}

SUPPORTED = tuple(sorted({*_GRAPH_OPERATORS, *SHAPES, *VARIABLES, *_CONTROL_FLOW}, key=operator_name))
"""The codes of all operators, in the alphabetical order of their names."""

CUSTOM = tuple(name for name in OPERATORS if name.startswith(("Signal", "TFLite_")))
"""The custom operators of TensorFlow Lite Micro, by the names in their codes."""


def is_supported(code: int, custom_code: str) -> bool:
    """Return whether there is an operator ``code``, called ``custom_code`` if it is a custom one."""
    return custom_code in CUSTOM if code == BuiltinOperator.CUSTOM else code in SUPPORTED


def keeps_data(code: int) -> bool:
    """Return whether an operator ``code`` may keep data from run to run."""
    return code in VARIABLES or code == BuiltinOperator.CUSTOM
