"""Operators of one tensor that take elements one by one; the order in which they are stored does not matter."""

from __future__ import annotations

import math

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.arithmetic import (
    Converter,
    cast,
    divide,
    of_one_tensor,
    relation,
    unary,
)
from mlfbuild.frontends.onnx.operators.elementwise import NARROW
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import DType, Operator, Quantization, Tensor, ops


def _unary(operator: Operator) -> Converter:
    return of_one_tensor(lambda site, x: unary(site, operator, x))


def with_integers(operator: Operator) -> Converter:
    """Return the converter of an operator whose integer form takes any scales."""

    def convert(site: Site) -> tuple[Value, ...]:
        held, target = site.held(0), site.held_target
        if held.quantization is not None and target is not None:
            made = site.attempt(operator, [held.tensor], held.tensor.shape, target)
            if made is not None:
                return (site.real(made, held.order),)
        return _of_integers_too(operator)(site)

    return convert


def _squashing(operator: Operator, full: Quantization) -> Converter:
    """Return the converter of an operator whose integer form writes the scale ``full``, where none finer is wanted."""

    def convert(site: Site) -> tuple[Value, ...]:
        held, target = site.held(0), site.held_target
        if held.quantization is not None and target is not None and target.scale >= full.scale:
            made = site.attempt(operator, [held.tensor], held.tensor.shape, full)
            if made is not None:
                return (site.real(made, held.order),)
        return _unary(operator)(site)

    return convert


def _leaky_relu(site: Site) -> tuple[Value, ...]:
    return with_integers(ops.LeakyRelu(site.real_attribute("alpha", 0.01)))(site)


def _reciprocal(site: Site, x: Tensor) -> Tensor:
    return divide(site, site.number("one", 1.0), x)


def _of_integers_too(operator: Operator) -> Converter:
    """Return the converter of an operator that has an integer form for int32; narrow integers wrap round."""

    def compute(site: Site, x: Tensor) -> Tensor:
        if x.dtype not in NARROW:
            return unary(site, operator, x)
        return cast(site, unary(site, operator, cast(site, x, DType.INT32)), x.dtype)

    return of_one_tensor(compute)


def _tangent(site: Site, x: Tensor) -> Tensor:
    return divide(site, unary(site, ops.Sin(), x), unary(site, ops.Cos(), x))


def _is_nan(site: Site, x: Tensor) -> Tensor:
    return relation(site, ops.NotEqual(), x, x)


def _is_inf(site: Site) -> tuple[Value, ...]:
    positive, negative = site.integer("detect_positive", 1), site.integer("detect_negative", 1)

    def compute(site: Site, x: Tensor) -> Tensor:
        if positive and negative:
            return relation(site, ops.Equal(), unary(site, ops.Abs(), x), math.inf)
        if positive or negative:
            return relation(site, ops.Equal(), x, math.inf if positive else -math.inf)
        raise site.unsupported("neither detect_positive nor detect_negative")

    return of_one_tensor(compute)(site)


OPERATORS = {
    "Abs": with_integers(ops.Abs()),
    "Ceil": _unary(ops.Ceil()),
    "Cos": _unary(ops.Cos()),
    "Erf": _unary(ops.Erf()),
    "Exp": with_integers(ops.Exp()),
    "Floor": _unary(ops.Floor()),
    "HardSwish": with_integers(ops.HardSwish()),
    "IsInf": _is_inf,
    "IsNaN": of_one_tensor(_is_nan),
    "LeakyRelu": _leaky_relu,
    "Log": with_integers(ops.Log()),
    "Neg": with_integers(ops.Neg()),
    "Not": _unary(ops.LogicalNot()),
    "Reciprocal": of_one_tensor(_reciprocal),
    "Round": _unary(ops.Round()),
    "Sigmoid": _squashing(ops.Logistic(), Quantization((1 / 256,), (-128,))),
    "Sign": _of_integers_too(ops.Sign()),
    "Sin": _unary(ops.Sin()),
    "Sqrt": with_integers(ops.Sqrt()),
    "Tan": of_one_tensor(_tangent),
    "Tanh": _squashing(ops.Tanh(), Quantization((1 / 128,), (0,))),
}
