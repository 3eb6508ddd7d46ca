"""Networks of one operator that works element by element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

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


OPERATORS: Mapping[str, Callable[[Drawing], None]] = {
    "ADD": _activated("ADD", 0.01, 1),
    "DIV": _activated("DIV", 0.01, 1),
    "MAXIMUM": _same_scale("MAXIMUM"),
    "MINIMUM": _same_scale("MINIMUM"),
    "MUL": _activated("MUL", 0.01, 1),
    "SQUARED_DIFFERENCE": _plain("SQUARED_DIFFERENCE", 0.05, 5),
    "SUB": _activated("SUB", 0.01, 1),
}

TYPES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(OPERATORS, ("int8", "int16", "float32")),
    "DIV": ("float32",),
}
