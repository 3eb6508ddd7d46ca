"""Operators that compute each element of the output from one of each input."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.frontends.tflite_operators.kind import OperatorKind
from mlfbuild.frontends.tflite_operators.site import Site
from mlfbuild.frontends.tflite_reader import reading
from mlfbuild.graph import Activation, Operator, ops


def _activated(kind: Callable[[Activation], Operator], options: str) -> Callable[[Site], Operator]:
    """Return the reader of an operator whose only attribute is its fused activation."""

    def read(site: Site) -> Operator:
        with reading(site.place):
            return kind(site.activation(site.read_options(options).FusedActivationFunction()))

    return read


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.ADD: OperatorKind(_activated(ops.Add, "AddOptions"), 2),
    BuiltinOperator.DEQUANTIZE: OperatorKind(lambda _: ops.Dequantize(), 1),
    BuiltinOperator.DIV: OperatorKind(_activated(ops.Div, "DivOptions"), 2),
    BuiltinOperator.MAXIMUM: OperatorKind(lambda _: ops.Maximum(), 2),
    BuiltinOperator.MINIMUM: OperatorKind(lambda _: ops.Minimum(), 2),
    BuiltinOperator.MUL: OperatorKind(_activated(ops.Mul, "MulOptions"), 2),
    BuiltinOperator.QUANTIZE: OperatorKind(lambda _: ops.Quantize(), 1),
    BuiltinOperator.SQUARED_DIFFERENCE: OperatorKind(lambda _: ops.SquaredDifference(), 2),
    BuiltinOperator.SUB: OperatorKind(_activated(ops.Sub, "SubOptions"), 2),
}
