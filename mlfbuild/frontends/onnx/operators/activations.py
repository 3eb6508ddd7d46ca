"""Activations that are made of several operators of the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.arithmetic import (
    Converter,
    add,
    divide,
    multiply,
    of_one_tensor,
    relation,
    select,
    subtract,
    unary,
)
from mlfbuild.frontends.onnx.operators.clamping import clamped
from mlfbuild.frontends.onnx.operators.elementwise import combined
from mlfbuild.frontends.onnx.operators.unary import with_integers
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import GraphError, Tensor, ops


def _elu(site: Site) -> tuple[Value, ...]:
    """Y = x, or alpha * (exp(x) - 1) where x is negative."""
    alpha = site.real_attribute("alpha", 1.0)
    if alpha == 1.0:
        return with_integers(ops.Elu())(site)
    return of_one_tensor(lambda site, x: _scaled_elu(site, x, alpha))(site)


def _scaled_elu(site: Site, x: Tensor, alpha: float) -> Tensor:
    """Return max(x, 0) + alpha * min(exp(x) - 1, 0)."""
    below = clamped(site, unary(site, ops.Elu(), x), -math.inf, 0.0)
    return add(site, unary(site, ops.Relu(), x), multiply(site, below, alpha))


def _selu(site: Site) -> tuple[Value, ...]:
    """Y = gamma * x, or gamma * alpha * (exp(x) - 1) where x is negative."""
    alpha = site.real_attribute("alpha", 1.67326319217681884765625)
    gamma = site.real_attribute("gamma", 1.05070102214813232421875)
    return of_one_tensor(lambda site, x: multiply(site, _scaled_elu(site, x, alpha), gamma))(site)


def _celu(site: Site) -> tuple[Value, ...]:
    """Y = x, or alpha * (exp(x / alpha) - 1) where x is negative."""
    alpha = site.real_attribute("alpha", 1.0)
    if not alpha > 0.0:
        raise site.unsupported(f"alpha {alpha:g}; supported are positive ones")

    def compute(site: Site, x: Tensor) -> Tensor:
        below = clamped(site, unary(site, ops.Elu(), multiply(site, x, 1 / alpha)), -math.inf, 0.0)
        return add(site, unary(site, ops.Relu(), x), multiply(site, below, alpha))

    return of_one_tensor(compute)(site)


def _hard_sigmoid(site: Site) -> tuple[Value, ...]:
    """Y = max(0, min(1, alpha * x + beta))."""
    alpha, beta = site.real_attribute("alpha", 0.2), site.real_attribute("beta", 0.5)
    return of_one_tensor(lambda site, x: clamped(site, add(site, multiply(site, x, alpha), beta), 0.0, 1.0))(site)


def _softplus(site: Site, x: Tensor) -> Tensor:
    """Return log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), whose exponential never overflows."""
    small = unary(site, ops.Exp(), unary(site, ops.Neg(), unary(site, ops.Abs(), x)))
    return add(site, unary(site, ops.Relu(), x), unary(site, ops.Log(), add(site, small, 1.0)))


def _softsign(site: Site, x: Tensor) -> Tensor:
    """Return x / (1 + |x|)."""
    return divide(site, x, add(site, unary(site, ops.Abs(), x), 1.0))


def _mish(site: Site, x: Tensor) -> Tensor:
    """Return x * tanh(log(1 + exp(x)))."""
    return multiply(site, x, unary(site, ops.Tanh(), _softplus(site, x)))


def _swish(site: Site) -> tuple[Value, ...]:
    """Y = x / (1 + exp(-alpha * x))."""
    alpha = site.real_attribute("alpha", 1.0)
    return of_one_tensor(lambda site, x: _gated(site, x, alpha))(site)


def _gated(site: Site, x: Tensor, alpha: float) -> Tensor:
    steep = x if alpha == 1.0 else multiply(site, x, alpha)
    return multiply(site, x, unary(site, ops.Logistic(), steep))


def _swiglu(site: Site) -> tuple[Value, ...]:
    """Y = swish(a) * b."""
    gate, alpha = site.value(0), site.real_attribute("alpha", 1.0)
    gated = Value(_gated(site, gate.tensor, alpha), gate.order)
    return (combined(site, ops.Mul(), gated, site.value(1)),)


def _gelu(site: Site) -> tuple[Value, ...]:
    """Y = x / 2 * (1 + erf(x / sqrt(2))), or its approximation by tanh."""
    approximate = site.text("approximate", "none")
    if approximate not in _GELU_GATES:
        raise GraphError(site.node.place, f"attribute approximate is {approximate!r}")

    def compute(site: Site, x: Tensor) -> Tensor:
        gate = add(site, _GELU_GATES[approximate](site, x), 1.0)
        return multiply(site, multiply(site, x, gate), 0.5)

    return of_one_tensor(compute)(site)


def _exact_gate(site: Site, x: Tensor) -> Tensor:
    return unary(site, ops.Erf(), multiply(site, x, math.sqrt(0.5)))


def _tanh_gate(site: Site, x: Tensor) -> Tensor:
    """Return tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))."""
    factor = add(site, multiply(site, multiply(site, x, x), 0.044715), 1.0)
    return unary(site, ops.Tanh(), multiply(site, multiply(site, x, factor), math.sqrt(2 / math.pi)))


_GELU_GATES: Mapping[str, Callable[[Site, Tensor], Tensor]] = {"none": _exact_gate, "tanh": _tanh_gate}


def _thresholded_relu(site: Site) -> tuple[Value, ...]:
    """Y = x where x > alpha, else 0."""
    alpha = site.real_attribute("alpha", 1.0)
    return of_one_tensor(lambda site, x: select(site, relation(site, ops.Greater(), x, alpha), x, 0.0))(site)


def _shrink(site: Site) -> tuple[Value, ...]:
    """Y = x + bias where x < -lambd, x - bias where x > lambd, else 0."""
    bias, threshold = site.real_attribute("bias", 0.0), site.real_attribute("lambd", 0.5)

    def compute(site: Site, x: Tensor) -> Tensor:
        above = select(site, relation(site, ops.Greater(), x, threshold), subtract(site, x, bias), 0.0)
        return select(site, relation(site, ops.Less(), x, -threshold), add(site, x, bias), above)

    return of_one_tensor(compute)(site)


OPERATORS: Mapping[str, Converter] = {
    "Celu": _celu,
    "Elu": _elu,
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "Mish": of_one_tensor(_mish),
    "Selu": _selu,
    "Shrink": _shrink,
    "Softplus": of_one_tensor(_softplus),
    "Softsign": of_one_tensor(_softsign),
    "SwiGLU": _swiglu,
    "Swish": _swish,
    "ThresholdedRelu": _thresholded_relu,
}
