"""Gelu."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    add,
    multiply,
    of_one_tensor,
    unary,
)
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import GraphError, Tensor, ops


def _gelu(site: OnnxSite) -> tuple[Value, ...]:
    """Y = x / 2 * (1 + erf(x / sqrt(2))), or its approximation by tanh."""
    approximate = site.text("approximate", "none")
    if approximate not in _GELU_GATES:
        raise GraphError(site.node.place, f"attribute approximate is {approximate!r}")

    def compute(site: OnnxSite, x: Tensor) -> Tensor:
        gate = add(site, _GELU_GATES[approximate](site, x), 1.0)
        return multiply(site, multiply(site, x, gate), 0.5)

    return of_one_tensor(compute)(site)


def _exact_gate(site: OnnxSite, x: Tensor) -> Tensor:
    return unary(site, ops.Erf(), multiply(site, x, math.sqrt(0.5)))


def _tanh_gate(site: OnnxSite, x: Tensor) -> Tensor:
    """Return tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))."""
    factor = add(site, multiply(site, multiply(site, x, x), 0.044715), 1.0)
    return unary(site, ops.Tanh(), multiply(site, multiply(site, x, factor), math.sqrt(2 / math.pi)))


_GELU_GATES: Mapping[str, Callable[[OnnxSite, Tensor], Tensor]] = {"none": _exact_gate, "tanh": _tanh_gate}


OPERATORS: Mapping[str, Converter] = {
    "Gelu": _gelu,
}
