"""Operators of one tensor that take elements one by one; the order in which they are stored does not matter."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import Operator, Tensor, ops


def _apply(site: Site, operator: Operator, source: Tensor, *others: Tensor) -> Tensor:
    return site.emit(operator, [source, *others], source.shape)


def _unary(operator: Operator) -> Callable[[Site], tuple[Value, ...]]:
    def convert(site: Site) -> tuple[Value, ...]:
        value = site.value(0)
        return (Value(_apply(site, operator, value.tensor), value.order),)

    return convert


def _number(site: Site, word: str, value: float) -> Tensor:
    return site.weights(word, np.array(value, np.float32))


def _leaky_relu(site: Site) -> tuple[Value, ...]:
    return _unary(ops.LeakyRelu(site.number("alpha", 0.01)))(site)


def _elu(site: Site) -> tuple[Value, ...]:
    """Y = x, or alpha * (exp(x) - 1) where x is negative."""
    alpha = site.number("alpha", 1.0)
    if alpha == 1.0:
        return _unary(ops.Elu())(site)
    value = site.value(0)
    below = _apply(site, ops.Minimum(), _apply(site, ops.Elu(), value.tensor), _number(site, "zero", 0.0))
    scaled = _apply(site, ops.Mul(), below, _number(site, "alpha", alpha))
    return (Value(_apply(site, ops.Add(), _apply(site, ops.Relu(), value.tensor), scaled), value.order),)


def _clip(site: Site) -> tuple[Value, ...]:
    """Clamp to bounds that are attributes before version 11 and constant inputs from it on."""
    value = site.value(0)
    if site.opset < 11:
        low, high = site.number("min", -math.inf), site.number("max", math.inf)
    else:
        low, high = _bound(site, 1, "minimum", -math.inf), _bound(site, 2, "maximum", math.inf)
    return (Value(_clamped(site, value.tensor, low, high), value.order),)


def _bound(site: Site, index: int, what: str, default: float) -> float:
    return float(site.constant(index, what).reshape(-1)[0]) if site.has(index) else default


def _clamped(site: Site, tensor: Tensor, low: float, high: float) -> Tensor:
    """Return ``tensor`` clamped, by RELU and its kin where the bounds are theirs."""
    known = {(0.0, math.inf): ops.Relu(), (0.0, 6.0): ops.Relu6(), (-1.0, 1.0): ops.ReluN1To1()}
    if (low, high) in known:
        return _apply(site, known[low, high], tensor)
    if low > -math.inf:
        tensor = _apply(site, ops.Maximum(), tensor, _number(site, "minimum", low))
    if high < math.inf:
        tensor = _apply(site, ops.Minimum(), tensor, _number(site, "maximum", high))
    return tensor


def _hard_sigmoid(site: Site) -> tuple[Value, ...]:
    """Y = max(0, min(1, alpha * x + beta))."""
    value = site.value(0)
    scaled = _apply(site, ops.Mul(), value.tensor, _number(site, "alpha", site.number("alpha", 0.2)))
    shifted = _apply(site, ops.Add(), scaled, _number(site, "beta", site.number("beta", 0.5)))
    return (Value(_clamped(site, shifted, 0.0, 1.0), value.order),)


def _reciprocal(site: Site) -> tuple[Value, ...]:
    value = site.value(0)
    return (Value(site.emit(ops.Div(), [_number(site, "one", 1.0), value.tensor], value.tensor.shape), value.order),)


def _prelu(site: Site) -> tuple[Value, ...]:
    """Negative elements times a slope, which broadcasts to the input."""
    value = site.value(0)
    slope = site.constant(1, "slope")
    if slope.ndim > value.rank:
        raise site.unsupported(f"a slope of {slope.ndim} dimensions for {value.rank}")
    slope = slope.reshape((1,) * (value.rank - slope.ndim) + slope.shape)
    stored = site.weights("slope", np.transpose(slope, value.order))
    return (Value(_apply(site, ops.PRelu(), value.tensor, stored), value.order),)


OPERATORS = {
    "Abs": _unary(ops.Abs()),
    "Clip": _clip,
    "Elu": _elu,
    "Exp": _unary(ops.Exp()),
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _unary(ops.HardSwish()),
    "LeakyRelu": _leaky_relu,
    "Log": _unary(ops.Log()),
    "Neg": _unary(ops.Neg()),
    "PRelu": _prelu,
    "Reciprocal": _reciprocal,
    "Relu": _unary(ops.Relu()),
    "Sigmoid": _unary(ops.Logistic()),
    "Sqrt": _unary(ops.Sqrt()),
    "Tanh": _unary(ops.Tanh()),
}
