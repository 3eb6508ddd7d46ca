"""Operators of resource variables: they become no operators of a graph, but what it keeps from run to run."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

OPERANDS: Mapping[int, tuple[int, int]] = {
    BuiltinOperator.ASSIGN_VARIABLE: (2, 0),
    BuiltinOperator.CALL_ONCE: (0, 0),
    BuiltinOperator.READ_VARIABLE: (1, 1),
    BuiltinOperator.VAR_HANDLE: (0, 1),
}
"""How many inputs and outputs each has."""
