"""Elu, Selu and Celu."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    add,
    multiply,
    of_one_tensor,
    unary,
)
from mlfbuild.native.frontends.onnx.operators.relu import clamped
from mlfbuild.native.frontends.onnx.operators.unary import with_integers
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Tensor, ops


def _elu(site: OnnxSite) -> tuple[Value, ...]:
    """Y = x, or alpha * (exp(x) - 1) where x is negative."""
    alpha = site.real_attribute("alpha", 1.0)
    if alpha == 1.0:
        return with_integers(ops.Elu())(site)
    return of_one_tensor(lambda site, x: scaled_elu(site, x, alpha))(site)


def scaled_elu(site: OnnxSite, x: Tensor, alpha: float) -> Tensor:
    """Return max(x, 0) + alpha * min(exp(x) - 1, 0)."""
    below = clamped(site, unary(site, ops.Elu(), x), -math.inf, 0.0)
    return add(site, unary(site, ops.Relu(), x), multiply(site, below, alpha))


def _selu(site: OnnxSite) -> tuple[Value, ...]:
    """Y = gamma * x, or gamma * alpha * (exp(x) - 1) where x is negative."""
    alpha = site.real_attribute("alpha", 1.67326319217681884765625)
    gamma = site.real_attribute("gamma", 1.05070102214813232421875)
    return of_one_tensor(lambda site, x: multiply(site, scaled_elu(site, x, alpha), gamma))(site)


def _celu(site: OnnxSite) -> tuple[Value, ...]:
    """Y = x, or alpha * (exp(x / alpha) - 1) where x is negative."""
    alpha = site.real_attribute("alpha", 1.0)
    if not alpha > 0.0:
        raise site.unsupported(f"alpha {alpha:g} is not positive")

    def compute(site: OnnxSite, x: Tensor) -> Tensor:
        below = clamped(site, unary(site, ops.Elu(), multiply(site, x, 1 / alpha)), -math.inf, 0.0)
        return add(site, unary(site, ops.Relu(), x), multiply(site, below, alpha))

    return of_one_tensor(compute)(site)


OPERATORS: Mapping[str, Converter] = {
    "Celu": _celu,
    "Elu": _elu,
    "Selu": _selu,
}
