"""Operators that compute each element of the output from one of each input."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.frontends.tflite_operators.kind import ANY_NUMBER, OperatorKind
from mlfbuild.frontends.tflite_operators.site import Site
from mlfbuild.frontends.tflite_reader import reading
from mlfbuild.graph import Activation, Operator, ops


def _activated(kind: Callable[[Activation], Operator], options: str) -> Callable[[Site], Operator]:
    """Return the reader of an operator whose only attribute is its fused activation."""

    def read(site: Site) -> Operator:
        with reading(site.place):
            return kind(site.activation(site.read_options(options).FusedActivationFunction()))

    return read


def _gelu(site: Site) -> Operator:
    with reading(site.place):
        return ops.Gelu(bool(site.read_options("GeluOptions").Approximate()))


def _leaky_relu(site: Site) -> Operator:
    with reading(site.place):
        return ops.LeakyRelu(float(site.read_options("LeakyReluOptions").Alpha()))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.ABS: OperatorKind(lambda _: ops.Abs(), 1),
    BuiltinOperator.ADD: OperatorKind(_activated(ops.Add, "AddOptions"), 2),
    BuiltinOperator.ADD_N: OperatorKind(lambda _: ops.AddN(), ANY_NUMBER),
    BuiltinOperator.CAST: OperatorKind(lambda _: ops.Cast(), 1),
    BuiltinOperator.CEIL: OperatorKind(lambda _: ops.Ceil(), 1),
    BuiltinOperator.COS: OperatorKind(lambda _: ops.Cos(), 1),
    BuiltinOperator.DEQUANTIZE: OperatorKind(lambda _: ops.Dequantize(), 1),
    BuiltinOperator.DIV: OperatorKind(_activated(ops.Div, "DivOptions"), 2),
    BuiltinOperator.ELU: OperatorKind(lambda _: ops.Elu(), 1),
    BuiltinOperator.EQUAL: OperatorKind(lambda _: ops.Equal(), 2),
    BuiltinOperator.EXP: OperatorKind(lambda _: ops.Exp(), 1),
    BuiltinOperator.FLOOR: OperatorKind(lambda _: ops.Floor(), 1),
    BuiltinOperator.FLOOR_DIV: OperatorKind(lambda _: ops.FloorDiv(), 2),
    BuiltinOperator.FLOOR_MOD: OperatorKind(lambda _: ops.FloorMod(), 2),
    BuiltinOperator.GELU: OperatorKind(_gelu, 1),
    BuiltinOperator.GREATER: OperatorKind(lambda _: ops.Greater(), 2),
    BuiltinOperator.GREATER_EQUAL: OperatorKind(lambda _: ops.GreaterEqual(), 2),
    BuiltinOperator.HARD_SWISH: OperatorKind(lambda _: ops.HardSwish(), 1),
    BuiltinOperator.LEAKY_RELU: OperatorKind(_leaky_relu, 1),
    BuiltinOperator.LESS: OperatorKind(lambda _: ops.Less(), 2),
    BuiltinOperator.LESS_EQUAL: OperatorKind(lambda _: ops.LessEqual(), 2),
    BuiltinOperator.LOG: OperatorKind(lambda _: ops.Log(), 1),
    BuiltinOperator.LOGICAL_AND: OperatorKind(lambda _: ops.LogicalAnd(), 2),
    BuiltinOperator.LOGICAL_NOT: OperatorKind(lambda _: ops.LogicalNot(), 1),
    BuiltinOperator.LOGICAL_OR: OperatorKind(lambda _: ops.LogicalOr(), 2),
    BuiltinOperator.LOGISTIC: OperatorKind(lambda _: ops.Logistic(), 1),
    BuiltinOperator.MAXIMUM: OperatorKind(lambda _: ops.Maximum(), 2),
    BuiltinOperator.MINIMUM: OperatorKind(lambda _: ops.Minimum(), 2),
    BuiltinOperator.MUL: OperatorKind(_activated(ops.Mul, "MulOptions"), 2),
    BuiltinOperator.NEG: OperatorKind(lambda _: ops.Neg(), 1),
    BuiltinOperator.NOT_EQUAL: OperatorKind(lambda _: ops.NotEqual(), 2),
    BuiltinOperator.PRELU: OperatorKind(lambda _: ops.PRelu(), 2),
    BuiltinOperator.QUANTIZE: OperatorKind(lambda _: ops.Quantize(), 1),
    BuiltinOperator.RELU: OperatorKind(lambda _: ops.Relu(), 1),
    BuiltinOperator.RELU_0_TO_1: OperatorKind(lambda _: ops.Relu0To1(), 1),
    BuiltinOperator.RELU6: OperatorKind(lambda _: ops.Relu6(), 1),
    BuiltinOperator.RELU_N1_TO_1: OperatorKind(lambda _: ops.ReluN1To1(), 1),
    BuiltinOperator.ROUND: OperatorKind(lambda _: ops.Round(), 1),
    BuiltinOperator.RSQRT: OperatorKind(lambda _: ops.Rsqrt(), 1),
    BuiltinOperator.SELECT: OperatorKind(lambda _: ops.Select(), 3),
    BuiltinOperator.SELECT_V2: OperatorKind(lambda _: ops.SelectV2(), 3),
    BuiltinOperator.SIGN: OperatorKind(lambda _: ops.Sign(), 1),
    BuiltinOperator.SIN: OperatorKind(lambda _: ops.Sin(), 1),
    BuiltinOperator.SQRT: OperatorKind(lambda _: ops.Sqrt(), 1),
    BuiltinOperator.SQUARE: OperatorKind(lambda _: ops.Square(), 1),
    BuiltinOperator.SQUARED_DIFFERENCE: OperatorKind(lambda _: ops.SquaredDifference(), 2),
    BuiltinOperator.SUB: OperatorKind(_activated(ops.Sub, "SubOptions"), 2),
    BuiltinOperator.TANH: OperatorKind(lambda _: ops.Tanh(), 1),
}
