"""Each supported operator of TFLite: how its options and constant inputs become an operator of the graph.

A family's file has the stem of the one in ``graph/ops`` and a table ``KINDS`` by TFLite's codes. Operators without
options and constant inputs, and those with only a fused activation, need no file: ``plain_kind`` reads them. A file is
imported when a model has one of its operators.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tflite.BuiltinOperator import BuiltinOperator
from tflite.TensorType import TensorType

from mlfbuild.core import lazy_attributes
from mlfbuild.native.frontends.tflite.operators import variables
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind as OperatorKind, plain_kind
from mlfbuild.native.frontends.tflite.operators.shapes import SHAPES as SHAPES
from mlfbuild.native.frontends.tflite.operators.site import name_of
from mlfbuild.native.graph.ops import OPERATORS, operator_class

if TYPE_CHECKING:
    from mlfbuild.native.frontends.tflite.operators.site import TfliteSite as TfliteSite
else:
    __getattr__ = lazy_attributes(__name__)


def operator_name(code: int) -> str:
    """Return TFLite's name of the operator ``code``, or the number if it has none."""
    name = name_of(BuiltinOperator, code)
    return f"code {name}" if name.isdigit() else name


def type_name(code: int) -> str:
    """Return TFLite's name of the element type ``code``, or the number if it has none."""
    return name_of(TensorType, code)


@cache
def operator_kind(code: int, custom_code: str = "") -> OperatorKind | None:
    """Return the kind of the operator ``code``; ``None`` for operators without a node, such as those in ``SHAPES``."""
    custom = code == BuiltinOperator.CUSTOM
    operator = operator_class(custom_code if custom else operator_name(code))
    if operator is None:
        return None
    module = f"{__name__}.{operator.family()}"
    found = import_module(module).KINDS.get(custom_code if custom else code) if find_spec(module) is not None else None
    return found or plain_kind(operator)


_GRAPH_OPERATORS = {code for name, code in vars(BuiltinOperator).items() if name in OPERATORS}

SUPPORTED = tuple(sorted({*_GRAPH_OPERATORS, *SHAPES, *variables.OPERANDS, *variables.CONTROL_FLOW}, key=operator_name))
"""The codes of all operators, in the alphabetical order of their names."""

CUSTOM = tuple(name for name in OPERATORS if name.startswith(("Signal", "TFLite_")))
"""The custom operators of TensorFlow Lite Micro, by the names in their codes."""


def is_supported(code: int, custom_code: str) -> bool:
    """Return whether there is an operator ``code``, called ``custom_code`` if it is a custom one."""
    return custom_code in CUSTOM if code == BuiltinOperator.CUSTOM else code in SUPPORTED
