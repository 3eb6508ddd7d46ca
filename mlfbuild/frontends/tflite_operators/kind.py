"""How one operator of TFLite is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mlfbuild.frontends.tflite_operators.site import Site
from mlfbuild.graph import Operator


@dataclass(frozen=True)
class OperatorKind:
    """The way from one operator of a file to one of a graph.

    Its inputs are ``values``, which stay inputs, then constant ``attributes``, which ``read`` finds in its ``Site``.
    Where they stand in the file in another order, ``order`` has the position there of each.
    """

    read: Callable[[Site], Operator]
    values: int
    attributes: int = 0
    order: tuple[int, ...] = ()
    layer: bool = False
    """Whether the values are (input, weights, bias)."""
    states: tuple[int, ...] = ()
    """Positions of the values that are variables, which the operator updates: the node has an output more for each."""


ANY_NUMBER = 1 << 16
"""The number of values of operators that take as many as they are given."""
