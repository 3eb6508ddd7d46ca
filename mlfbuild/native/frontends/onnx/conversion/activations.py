"""Activation functions made of several operators, and the ones that LSTM, GRU and RNN name in their attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from mlfbuild.native.frontends.onnx.conversion.rescaling import clamped
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import GraphError, Tensor, ops


def softplus(op: OpContext, x: Tensor) -> Tensor:
    """Return log(1 + exp(x)) as max(x, 0) + log(1 + exp(-|x|)), in which exp cannot overflow."""
    small = op.unary(ops.Exp(), op.unary(ops.Neg(), op.unary(ops.Abs(), x)))
    return op.add(op.unary(ops.Relu(), x), op.unary(ops.Log(), op.add(small, 1.0)))


def softsign(op: OpContext, x: Tensor) -> Tensor:
    """Return x / (1 + |x|)."""
    return op.divide(x, op.add(op.unary(ops.Abs(), x), 1.0))


def scaled_elu(op: OpContext, x: Tensor, alpha: float) -> Tensor:
    """Return max(x, 0) + alpha * min(exp(x) - 1, 0)."""
    # ELU with alpha 1 below 0, which is multiplied by the other alpha afterwards.
    below = clamped(op, op.unary(ops.Elu(), x), -math.inf, 0.0)
    return op.add(op.unary(ops.Relu(), x), op.multiply(below, alpha))


Function = Callable[[OpContext, Tensor], Tensor]


def thresholded(op: OpContext, x: Tensor, alpha: float) -> Tensor:
    """Return x where x > alpha, else 0."""
    return op.select(op.relation(ops.Greater(), x, alpha), x, 0.0)


def _affine(op: OpContext, x: Tensor, alpha: float, beta: float) -> Tensor:
    return op.add(op.multiply(x, alpha), beta)


def _scaled_tanh(op: OpContext, x: Tensor, alpha: float, beta: float) -> Tensor:
    return op.multiply(op.unary(ops.Tanh(), op.multiply(x, beta)), alpha)


def hard_sigmoid(op: OpContext, x: Tensor, alpha: float, beta: float) -> Tensor:
    """Return max(0, min(1, alpha * x + beta))."""
    return clamped(op, _affine(op, x, alpha, beta), 0.0, 1.0)


_FUNCTIONS: Mapping[str, tuple[Callable[..., Tensor], Mapping[str, float | None]]] = {
    "affine": (_affine, {"alpha": None, "beta": None}),
    "elu": (scaled_elu, {"alpha": 1.0}),
    "hardsigmoid": (hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    "leakyrelu": (lambda op, x, alpha: op.unary(ops.LeakyRelu(alpha), x), {"alpha": 0.01}),
    "relu": (lambda op, x: op.unary(ops.Relu(), x), {}),
    "scaledtanh": (_scaled_tanh, {"alpha": None, "beta": None}),
    "sigmoid": (lambda op, x: op.unary(ops.Logistic(), x), {}),
    "softplus": (softplus, {}),
    "softsign": (softsign, {}),
    "tanh": (lambda op, x: op.unary(ops.Tanh(), x), {}),
    "thresholdedrelu": (thresholded, {"alpha": None}),
}
"""Functions with the defaults of their parameters; ``None`` if ONNX and onnxruntime do not agree on one."""


def activation_names(op: OpContext, names: Sequence[str]) -> tuple[str, ...]:
    """Return the attribute ``activations`` in lower case; ``names`` are the default.

    ``names`` has one entry for each function of all directions. Raises ``GraphError`` if the node has another number.
    """
    found = op.node.attributes.get("activations", tuple(names))
    words = [str(word) for word in found] if isinstance(found, tuple) else [str(found)]
    if len(words) != len(names):
        raise GraphError(op.node.place, f"has {len(words)} activations, {', '.join(words)}, instead of {len(names)}")
    return tuple(word.lower() for word in words)


def activations(op: OpContext, names: Sequence[str]) -> list[Function]:
    """Return the activation functions of all directions.

    A function that has a parameter takes the next number of ``activation_alpha`` or ``activation_beta``.
    """
    numbers = {word: _numbers(op, f"activation_{word}") for word in ("alpha", "beta")}
    return [_function(op, name, numbers) for name in activation_names(op, names)]


def _function(op: OpContext, name: str, numbers: Mapping[str, Iterator[float]]) -> Function:
    if name not in _FUNCTIONS:
        known = ", ".join(sorted(_FUNCTIONS))
        raise op.unsupported(f"the activation {name} is not supported", f"use one of {known}")
    compute, defaults = _FUNCTIONS[name]
    parameters = {word: _next(op, name, word, numbers[word], default) for word, default in defaults.items()}
    return lambda op, x: compute(op, x, **parameters)


def _next(op: OpContext, name: str, word: str, numbers: Iterator[float], default: float | None) -> float:
    number = next(numbers, default)
    if number is None:
        # A default that runtimes disagree on would be a guess, and a guess would be a wrong network for some of them.
        raise op.unsupported(
            f"the activation {name} without activation_{word} is not supported, as runtimes differ in its default",
            f"set the attribute activation_{word} in the export",
        )
    return number


def _numbers(op: OpContext, name: str) -> Iterator[float]:
    found = op.node.attributes.get(name, ())
    if not isinstance(found, tuple) or not all(isinstance(each, int | float) and math.isfinite(each) for each in found):
        raise GraphError(op.node.place, f"attribute {name} is not a list of numbers")
    return iter([float(each) for each in found if isinstance(each, int | float)])
