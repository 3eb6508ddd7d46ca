"""How one operator of TFLite is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlfbuild.frontends.tflite_operators.site import Site
from mlfbuild.graph import Operator


@dataclass(frozen=True)
class OperatorKind:
    """The way from one operator of a file to one of a graph.

    Of its inputs ``leading`` constant attributes come first, then ``values``, which stay inputs, then constant
    ``attributes``; ``read`` finds attributes in the inputs of its ``Site``.
    """

    read: Callable[[Site], Operator]
    values: int
    attributes: int = 0
    leading: int = 0
    layer: bool = False
    """Whether the values are (input, weights, bias)."""


ANY_NUMBER = 1 << 16
"""The number of values of operators that take as many as they are given."""
