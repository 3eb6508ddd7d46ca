"""Networks of one operator that works element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from support.drawing import ACTIVATIONS, Drawing

Shape = tuple[int, ...]


def _shapes(d: Drawing, greatest_rank: int = 5) -> tuple[Shape, Shape]:
    """Two shapes that broadcast: equal, one repeated along some dimensions, or of lower rank."""
    shape = d.shape(1, greatest_rank)
    other = tuple(d.choice(size, 1) for size in shape)
    return d.choice((shape, shape), (shape, other), (other, shape), (shape, other[d.size(0, len(shape) - 1) :]))


def _operands(d: Drawing, affine: dict[str, Any] | None = None) -> tuple[int, int]:
    """Two inputs whose shapes broadcast, the second perhaps constant."""
    first, second = _shapes(d)
    left = d.input(first, **(affine or d.affine()))
    options = affine or d.affine()
    if d.choice(True, False):
        value = d.data(second)
        return left, d.network.constant(value, options.get("scale"), options.get("zero_point", 0))
    return left, d.input(second, **options)


def _activated(name: str, least: float, greatest: float) -> Callable[[Drawing], None]:
    """A sum, difference, product or quotient with an activation; the output's scale lies within bounds."""

    def draw(d: Drawing) -> None:
        left, right = _operands(d)
        # TensorFlow Lite Micro computes the bounds of int16 with RELU6 beyond the type.
        activation = d.choice(*(("NONE", "RELU") if d.dtype == "int16" else ACTIVATIONS))
        d.network.binary(name, left, right, activation=activation, **d.affine(least, greatest))

    return draw


def _same_scale(name: str) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        affine = d.affine()
        d.network.binary(name, *_operands(d, affine), **affine)

    return draw


def _plain(name: str, least: float, greatest: float) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        d.network.binary(name, *_operands(d), **d.affine(least, greatest))

    return draw


def _unary(name: str, least: float = 0.004, greatest: float = 0.5) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        source = d.input(d.shape(), **d.affine())
        d.network.unary(name, source, **d.affine(least, greatest))

    return draw


def _positive(name: str) -> Callable[[Drawing], None]:
    """An operator that is defined for positive numbers."""

    def draw(d: Drawing) -> None:
        affine = d.affine()
        source = d.input(d.shape(), **affine)
        if d.quantized:
            d.values[-1] = np.maximum(d.values[-1], affine["zero_point"])
        else:
            d.values[-1] = np.abs(d.values[-1]) + np.float32(0.01)
        d.network.unary(name, source, **d.affine(0.001, 0.1))

    return draw


def _relu6(d: Drawing) -> None:
    """Of the input's scale, which TensorFlow Lite Micro takes for granted; int16 must be able to hold 6."""
    affine = d.affine(0.05, 0.5)
    d.network.unary("RELU6", d.input(d.shape(), **affine), **affine)


def _leaky_relu(d: Drawing) -> None:
    source = d.input(d.shape(), **d.affine())
    alpha = float(np.float32(d.draw(st.floats(0, 2))))
    d.network.unary("LEAKY_RELU", source, "LeakyReluOptions", {"Alpha": alpha}, **d.affine())


def _prelu(d: Drawing) -> None:
    first, second = _shapes(d, greatest_rank=4)
    shape = np.broadcast_shapes(first, second)
    source = d.input(shape, **d.affine())
    factors = Drawing(d.draw, "int8" if d.quantized else d.dtype)
    affine = factors.affine(0.004, 0.05)
    alpha = d.network.constant(factors.data(second), affine.get("scale"), affine.get("zero_point", 0))
    d.network.binary("PRELU", source, alpha, **d.affine())


def _sigmoid(name: str, scale: float, zero_point: int) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        source = d.input(d.shape(greatest=9), **d.affine(0.004, 0.3))
        affine = {} if d.dtype == "float32" else {"scale": scale, "zero_point": zero_point}
        if d.dtype == "int16":
            affine = {"scale": 2.0**-15, "dtype": "int16"}
        d.network.unary(name, source, **affine)

    return draw


OPERATORS: Mapping[str, Callable[[Drawing], None]] = {
    "ABS": _unary("ABS"),
    "ADD": _activated("ADD", 0.01, 1),
    "DIV": _activated("DIV", 0.01, 1),
    "ELU": _unary("ELU"),
    "EXP": _unary("EXP"),
    "HARD_SWISH": _unary("HARD_SWISH", 0.02),
    "LEAKY_RELU": _leaky_relu,
    "LOG": _positive("LOG"),
    "LOGISTIC": _sigmoid("LOGISTIC", 1 / 256, -128),
    "MAXIMUM": _same_scale("MAXIMUM"),
    "MINIMUM": _same_scale("MINIMUM"),
    "MUL": _activated("MUL", 0.01, 1),
    "NEG": _unary("NEG"),
    "PRELU": _prelu,
    "RELU": _unary("RELU"),
    "RELU6": _relu6,
    "RSQRT": _positive("RSQRT"),
    "SQRT": _positive("SQRT"),
    "SQUARED_DIFFERENCE": _plain("SQUARED_DIFFERENCE", 0.05, 5),
    "SUB": _activated("SUB", 0.01, 1),
    "TANH": _sigmoid("TANH", 1 / 128, 0),
}

TYPES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(OPERATORS, ("int8", "int16", "float32")),
    **dict.fromkeys(("DIV", "EXP", "LOG", "NEG", "SQRT"), ("float32",)),
    **dict.fromkeys(("ELU", "HARD_SWISH", "LOGISTIC", "RSQRT", "TANH"), ("int8", "float32")),
}
