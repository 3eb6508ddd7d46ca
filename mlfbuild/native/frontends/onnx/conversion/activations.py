"""The activation functions that LSTM, GRU and RNN name in their attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from mlfbuild.native.frontends.onnx.operators.arithmetic import add, multiply, relation, select, unary
from mlfbuild.native.frontends.onnx.operators.elu import scaled_elu
from mlfbuild.native.frontends.onnx.operators.logistic import softplus, softsign
from mlfbuild.native.frontends.onnx.operators.relu import clamped
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import GraphError, Operator, Tensor, ops

Function = Callable[[OnnxSite, Tensor], Tensor]


def _applied(operator: Operator) -> Function:
    return lambda site, x: unary(site, operator, x)


def _leaky(site: OnnxSite, x: Tensor, alpha: float) -> Tensor:
    return unary(site, ops.LeakyRelu(alpha), x)


def _thresholded(site: OnnxSite, x: Tensor, alpha: float) -> Tensor:
    """Return x where x > alpha, else 0."""
    return select(site, relation(site, ops.Greater(), x, alpha), x, 0.0)


def _affine(site: OnnxSite, x: Tensor, alpha: float, beta: float) -> Tensor:
    return add(site, multiply(site, x, alpha), beta)


def _scaled_tanh(site: OnnxSite, x: Tensor, alpha: float, beta: float) -> Tensor:
    return multiply(site, unary(site, ops.Tanh(), multiply(site, x, beta)), alpha)


def _hard_sigmoid(site: OnnxSite, x: Tensor, alpha: float, beta: float) -> Tensor:
    return clamped(site, _affine(site, x, alpha, beta), 0.0, 1.0)


_PLAIN: Mapping[str, Function] = {
    "relu": _applied(ops.Relu()),
    "sigmoid": _applied(ops.Logistic()),
    "softplus": softplus,
    "softsign": softsign,
    "tanh": _applied(ops.Tanh()),
}
_OF_ALPHA: Mapping[str, tuple[Callable[[OnnxSite, Tensor, float], Tensor], float | None]] = {
    "elu": (scaled_elu, 1.0),
    "leakyrelu": (_leaky, 0.01),
    "thresholdedrelu": (_thresholded, None),
}
"""Functions with the parameter alpha, and its default; none if ONNX and onnxruntime do not agree on it."""
_OF_BOTH: Mapping[str, tuple[Callable[[OnnxSite, Tensor, float, float], Tensor], float | None, float | None]] = {
    "affine": (_affine, None, None),
    "hardsigmoid": (_hard_sigmoid, 0.2, 0.5),
    "scaledtanh": (_scaled_tanh, None, None),
}


def activation_names(site: OnnxSite, names: Sequence[str]) -> tuple[str, ...]:
    """Return the attribute ``activations`` in lower case; ``names`` are the default."""
    found = site.node.attributes.get("activations", tuple(names))
    words = [str(word) for word in found] if isinstance(found, tuple) else [str(found)]
    if len(words) != len(names):
        raise GraphError(site.node.place, f"has {len(words)} activations, {', '.join(words)}, instead of {len(names)}")
    return tuple(word.lower() for word in words)


def activations(site: OnnxSite, names: Sequence[str]) -> list[Function]:
    """Return the activation functions of all directions.

    A function that has a parameter takes the next number of ``activation_alpha`` or ``activation_beta``.
    """
    alphas, betas = _numbers(site, "activation_alpha"), _numbers(site, "activation_beta")
    return [_function(site, name, alphas, betas) for name in activation_names(site, names)]


def _function(site: OnnxSite, name: str, alphas: Iterator[float], betas: Iterator[float]) -> Function:
    if name in _PLAIN:
        return _PLAIN[name]
    if name in _OF_ALPHA:
        of_alpha, default = _OF_ALPHA[name]
        slope = _next(site, name, "alpha", alphas, default)
        return lambda site, x: of_alpha(site, x, slope)
    if name in _OF_BOTH:
        of_both, default, other = _OF_BOTH[name]
        alpha, beta = _next(site, name, "alpha", alphas, default), _next(site, name, "beta", betas, other)
        return lambda site, x: of_both(site, x, alpha, beta)
    known = ", ".join(sorted([*_PLAIN, *_OF_ALPHA, *_OF_BOTH]))
    raise site.unsupported(f"the activation {name} is not supported", f"use one of {known}")


def _next(site: OnnxSite, name: str, word: str, numbers: Iterator[float], default: float | None) -> float:
    number = next(numbers, default)
    if number is None:
        raise site.unsupported(
            f"the activation {name} without activation_{word} is not supported, as runtimes differ in its default",
            f"set the attribute activation_{word} in the export",
        )
    return number


def _numbers(site: OnnxSite, name: str) -> Iterator[float]:
    found = site.node.attributes.get(name, ())
    if not isinstance(found, tuple) or not all(isinstance(each, int | float) and math.isfinite(each) for each in found):
        raise GraphError(site.node.place, f"attribute {name} is not a list of numbers")
    return iter([float(each) for each in found if isinstance(each, int | float)])
