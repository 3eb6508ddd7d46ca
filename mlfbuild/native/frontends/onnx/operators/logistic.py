"""Sigmoid, Tanh, and activations that use them: Swish, SwiGLU, Softplus, Softsign and Mish."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    add,
    divide,
    multiply,
    of_one_tensor,
    unary,
)
from mlfbuild.native.frontends.onnx.operators.elementwise import combined
from mlfbuild.native.frontends.onnx.operators.unary import unary_converter
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Tensor, ops


def softplus(site: OnnxSite, x: Tensor) -> Tensor:
    """Return log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), in which exp cannot overflow."""
    small = unary(site, ops.Exp(), unary(site, ops.Neg(), unary(site, ops.Abs(), x)))
    return add(site, unary(site, ops.Relu(), x), unary(site, ops.Log(), add(site, small, 1.0)))


def softsign(site: OnnxSite, x: Tensor) -> Tensor:
    """Return x / (1 + |x|)."""
    return divide(site, x, add(site, unary(site, ops.Abs(), x), 1.0))


def _mish(site: OnnxSite, x: Tensor) -> Tensor:
    """Return x * tanh(log(1 + exp(x)))."""
    return multiply(site, x, unary(site, ops.Tanh(), softplus(site, x)))


def _swish(site: OnnxSite) -> tuple[Value, ...]:
    """Y = x / (1 + exp(-alpha * x))."""
    alpha = site.real_attribute("alpha", 1.0)
    return of_one_tensor(lambda site, x: _gated(site, x, alpha))(site)


def _gated(site: OnnxSite, x: Tensor, alpha: float) -> Tensor:
    steep = x if alpha == 1.0 else multiply(site, x, alpha)
    return multiply(site, x, unary(site, ops.Logistic(), steep))


def _swiglu(site: OnnxSite) -> tuple[Value, ...]:
    """Y = swish(a) * b."""
    gate, alpha = site.value(0), site.real_attribute("alpha", 1.0)
    gated = Value(_gated(site, gate.tensor, alpha), gate.order)
    return (combined(site, ops.Mul(), gated, site.value(1)),)


OPERATORS: Mapping[str, Converter] = {
    "Mish": of_one_tensor(_mish),
    "Sigmoid": unary_converter(ops.Logistic()),
    "Softplus": of_one_tensor(softplus),
    "Softsign": of_one_tensor(softsign),
    "SwiGLU": _swiglu,
    "Swish": _swish,
    "Tanh": unary_converter(ops.Tanh()),
}
