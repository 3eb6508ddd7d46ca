"""Operators of one tensor that take elements one by one; the order in which they are stored does not matter."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.clamping import clamped
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import DType, Operator, Quantization, Tensor, ops

Converter = Callable[[Site], tuple[Value, ...]]


def _apply(site: Site, operator: Operator, source: Tensor, *others: Tensor) -> Tensor:
    return site.emit(operator, [source, *others], source.shape)


def _unary(operator: Operator) -> Converter:
    def convert(site: Site) -> tuple[Value, ...]:
        value = site.value(0)
        return (Value(_apply(site, operator, value.tensor), value.order),)

    return convert


def _float_only(compute: Callable[[Site, Tensor], Tensor]) -> Converter:
    """Return the converter of what is made of several operators of the graph."""

    def convert(site: Site) -> tuple[Value, ...]:
        value = site.value(0)
        return (Value(compute(site, value.tensor), value.order),)

    return convert


def _with_integers(operator: Operator) -> Converter:
    """Return the converter of an operator whose integer form takes any scales."""

    def convert(site: Site) -> tuple[Value, ...]:
        held, target = site.held(0), site.held_target
        if held.quantization is not None and target is not None:
            made = site.attempt(operator, [held.tensor], held.tensor.shape, target)
            if made is not None:
                return (site.real(made, held.order),)
        return _unary(operator)(site)

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
    return _with_integers(ops.LeakyRelu(site.real_attribute("alpha", 0.01)))(site)


def _elu(site: Site) -> tuple[Value, ...]:
    """Y = x, or alpha * (exp(x) - 1) where x is negative."""
    alpha = site.real_attribute("alpha", 1.0)
    if alpha == 1.0:
        return _unary(ops.Elu())(site)
    return _float_only(lambda site, x: _scaled_elu(site, x, alpha))(site)


def _scaled_elu(site: Site, x: Tensor, alpha: float) -> Tensor:
    below = _apply(site, ops.Minimum(), _apply(site, ops.Elu(), x), site.number("zero", 0.0))
    scaled = _apply(site, ops.Mul(), below, site.number("alpha", alpha))
    return _apply(site, ops.Add(), _apply(site, ops.Relu(), x), scaled)


def _selu(site: Site) -> tuple[Value, ...]:
    """Y = gamma * x, or gamma * alpha * (exp(x) - 1) where x is negative."""
    alpha = site.real_attribute("alpha", 1.67326319217681884765625)
    gamma = site.real_attribute("gamma", 1.05070102214813232421875)
    return _float_only(
        lambda site, x: _apply(site, ops.Mul(), _scaled_elu(site, x, alpha), site.number("gamma", gamma))
    )(site)


def _celu(site: Site) -> tuple[Value, ...]:
    """Y = x, or alpha * (exp(x / alpha) - 1) where x is negative."""
    alpha = site.real_attribute("alpha", 1.0)

    def compute(site: Site, x: Tensor) -> Tensor:
        narrow = _apply(site, ops.Mul(), x, site.number("inverse", 1 / alpha))
        below = _apply(site, ops.Minimum(), _apply(site, ops.Elu(), narrow), site.number("zero", 0.0))
        return _apply(
            site, ops.Add(), _apply(site, ops.Relu(), x), _apply(site, ops.Mul(), below, site.number("alpha", alpha))
        )

    return _float_only(compute)(site)


def _hard_sigmoid(site: Site) -> tuple[Value, ...]:
    """Y = max(0, min(1, alpha * x + beta))."""
    alpha, beta = site.real_attribute("alpha", 0.2), site.real_attribute("beta", 0.5)

    def compute(site: Site, x: Tensor) -> Tensor:
        scaled = _apply(site, ops.Mul(), x, site.number("alpha", alpha))
        return clamped(site, _apply(site, ops.Add(), scaled, site.number("beta", beta)), 0.0, 1.0)

    return _float_only(compute)(site)


def _reciprocal(site: Site, x: Tensor) -> Tensor:
    return site.emit(ops.Div(), [site.number("one", 1.0), x], x.shape)


def _softplus(site: Site, x: Tensor) -> Tensor:
    """Return log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), whose exponential never overflows."""
    small = _apply(site, ops.Exp(), _apply(site, ops.Neg(), _apply(site, ops.Abs(), x)))
    rest = _apply(site, ops.Log(), _apply(site, ops.Add(), small, site.number("one", 1.0)))
    return _apply(site, ops.Add(), _apply(site, ops.Relu(), x), rest)


def _softsign(site: Site, x: Tensor) -> Tensor:
    """Return x / (1 + |x|)."""
    return _apply(site, ops.Div(), x, _apply(site, ops.Add(), _apply(site, ops.Abs(), x), site.number("one", 1.0)))


def _mish(site: Site, x: Tensor) -> Tensor:
    """Return x * tanh(log(1 + exp(x)))."""
    return _apply(site, ops.Mul(), x, _apply(site, ops.Tanh(), _softplus(site, x)))


def _swish(site: Site) -> tuple[Value, ...]:
    """Y = x / (1 + exp(-alpha * x))."""
    alpha = site.real_attribute("alpha", 1.0)

    def compute(site: Site, x: Tensor) -> Tensor:
        steep = x if alpha == 1.0 else _apply(site, ops.Mul(), x, site.number("alpha", alpha))
        return _apply(site, ops.Mul(), x, _apply(site, ops.Logistic(), steep))

    return _float_only(compute)(site)


def _gelu(site: Site) -> tuple[Value, ...]:
    """Y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))), the approximation of the exact form."""
    if site.text("approximate", "none") != "tanh":
        raise site.unsupported("approximate 'none', which takes the error function; export it with approximate='tanh'")

    def compute(site: Site, x: Tensor) -> Tensor:
        square = _apply(site, ops.Mul(), x, x)
        factor = _apply(
            site, ops.Add(), _apply(site, ops.Mul(), square, site.number("cubic", 0.044715)), site.number("one", 1.0)
        )
        argument = _apply(
            site, ops.Mul(), _apply(site, ops.Mul(), x, factor), site.number("steep", math.sqrt(2 / math.pi))
        )
        gate = _apply(site, ops.Add(), _apply(site, ops.Tanh(), argument), site.number("one", 1.0))
        return _apply(site, ops.Mul(), _apply(site, ops.Mul(), x, gate), site.number("half", 0.5))

    return _float_only(compute)(site)


def _relation(site: Site, relation: Operator, x: Tensor, other: Tensor) -> Tensor:
    return site.emit(relation, [x, other], x.shape, DType.BOOL)


def _select(site: Site, condition: Tensor, first: Tensor, second: Tensor) -> Tensor:
    shape = np.broadcast_shapes(condition.shape, first.shape, second.shape)
    return site.emit(ops.SelectV2(), [condition, first, second], shape, first.dtype)


def _thresholded_relu(site: Site) -> tuple[Value, ...]:
    """Y = x where x > alpha, else 0."""
    alpha = site.real_attribute("alpha", 1.0)
    return _float_only(
        lambda site, x: _select(
            site, _relation(site, ops.Greater(), x, site.number("alpha", alpha)), x, site.number("zero", 0.0)
        )
    )(site)


def _shrink(site: Site) -> tuple[Value, ...]:
    """Y = x + bias where x < -lambd, x - bias where x > lambd, else 0."""
    bias, threshold = site.real_attribute("bias", 0.0), site.real_attribute("lambd", 0.5)

    def compute(site: Site, x: Tensor) -> Tensor:
        below = _apply(site, ops.Add(), x, site.number("bias", bias))
        above = _apply(site, ops.Sub(), x, site.number("bias", bias))
        is_above = _relation(site, ops.Greater(), x, site.number("threshold", threshold))
        is_below = _relation(site, ops.Less(), x, site.number("threshold", -threshold))
        return _select(site, is_below, below, _select(site, is_above, above, site.number("zero", 0.0)))

    return _float_only(compute)(site)


def _sign(site: Site, x: Tensor) -> Tensor:
    above = _relation(site, ops.Greater(), x, site.number("zero", 0.0))
    below = _relation(site, ops.Less(), x, site.number("zero", 0.0))
    return _apply(
        site, ops.Sub(), site.emit(ops.Cast(), [above], x.shape, DType.FLOAT32),
        site.emit(ops.Cast(), [below], x.shape, DType.FLOAT32),
    )  # fmt: skip


def _is_nan(site: Site, x: Tensor) -> Tensor:
    return _relation(site, ops.NotEqual(), x, x)


def _is_inf(site: Site) -> tuple[Value, ...]:
    positive, negative = site.integer("detect_positive", 1), site.integer("detect_negative", 1)

    def compute(site: Site, x: Tensor) -> Tensor:
        if positive and negative:
            return _relation(site, ops.Equal(), _apply(site, ops.Abs(), x), site.number("infinity", math.inf))
        if positive or negative:
            return _relation(site, ops.Equal(), x, site.number("infinity", math.inf if positive else -math.inf))
        raise site.unsupported("neither detect_positive nor detect_negative")

    return _float_only(compute)(site)


def _not(site: Site, x: Tensor) -> Tensor:
    return _apply(site, ops.LogicalNot(), x)


def _power(site: Site) -> tuple[Value, ...]:
    """X to a constant power that needs no logarithm of negative numbers."""
    exponents = site.constant(1, "exponent").astype(np.float64)
    power = float(exponents.reshape(-1)[0]) if exponents.size else 1.0
    if exponents.size == 0 or (exponents != power).any() or exponents.ndim > site.held(0).rank:
        raise site.unsupported("exponents that differ; supported is one for all elements")
    known = {0.5: ops.Sqrt(), -0.5: ops.Rsqrt()}
    if power in known:
        return _unary(known[power])(site)
    if not power.is_integer() or not 1 <= abs(power) <= _GREATEST_POWER:
        raise site.unsupported(
            f"the exponent {power:g}; supported are 0.5, -0.5 and whole ones up to {_GREATEST_POWER}"
        )
    return _float_only(lambda site, x: _whole_power(site, x, int(power)))(site)


_GREATEST_POWER = 16


def _whole_power(site: Site, x: Tensor, power: int) -> Tensor:
    """Return ``x`` to ``power`` by squares."""
    result, square, rest = None, x, abs(power)
    while rest:
        if rest & 1:
            result = square if result is None else _apply(site, ops.Mul(), result, square)
        rest >>= 1
        square = _apply(site, ops.Mul(), square, square) if rest else square
    assert result is not None
    return _reciprocal(site, result) if power < 0 else result


OPERATORS = {
    "Abs": _with_integers(ops.Abs()),
    "Celu": _celu,
    "Elu": _elu,
    "Exp": _unary(ops.Exp()),
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "HardSwish": _unary(ops.HardSwish()),
    "IsInf": _is_inf,
    "IsNaN": _float_only(_is_nan),
    "LeakyRelu": _leaky_relu,
    "Log": _unary(ops.Log()),
    "Mish": _float_only(_mish),
    "Neg": _unary(ops.Neg()),
    "Not": _float_only(_not),
    "Pow": _power,
    "Reciprocal": _float_only(_reciprocal),
    "Selu": _selu,
    "Shrink": _shrink,
    "Sigmoid": _squashing(ops.Logistic(), Quantization((1 / 256,), (-128,))),
    "Sign": _float_only(_sign),
    "Softplus": _float_only(_softplus),
    "Softsign": _float_only(_softsign),
    "Sqrt": _unary(ops.Sqrt()),
    "Swish": _swish,
    "Tanh": _squashing(ops.Tanh(), Quantization((1 / 128,), (0,))),
    "ThresholdedRelu": _thresholded_relu,
}
