"""Operators that are not nodes of a graph: those on resource variables, which become its states, and control flow."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

OPERANDS: Mapping[int, tuple[int, int]] = {
    BuiltinOperator.ASSIGN_VARIABLE: (2, 0),
    BuiltinOperator.CALL_ONCE: (0, 0),
    BuiltinOperator.READ_VARIABLE: (1, 1),
    BuiltinOperator.VAR_HANDLE: (0, 1),
}
"""The number of inputs and outputs of each."""
CONTROL_FLOW = (BuiltinOperator.IF, BuiltinOperator.WHILE)
"""The operators that other subgraphs replace."""
