"""Pow with constant exponents: integers by repeated squaring, others by exp and log."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.arithmetic import Converter, divide, multiply, of_one_tensor, unary
from mlfbuild.frontends.onnx.operators.elementwise import chosen, combined
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import Array, GraphError, Tensor, ops

_GREATEST_POWER = 16


def _power(site: OnnxSite) -> tuple[Value, ...]:
    """Raise X to a constant power, or to one per element."""
    exponents = site.constant(1, "exponent").astype(np.float64)
    if exponents.size == 0 or not np.isfinite(exponents).all():
        raise GraphError(site.node.place, "has exponents that are no numbers")
    power = float(exponents.reshape(-1)[0])
    if (exponents != power).any() or _widens(site.value(0).shape, exponents.shape):
        return (_each(site, site.value(0), exponents),)
    if power in _ROOTS:
        return of_one_tensor(lambda site, x: unary(site, _ROOTS[power], x))(site)
    if power.is_integer():
        _check_whole(site, exponents)
        return of_one_tensor(lambda site, x: whole_power(site, x, int(power)))(site)
    return of_one_tensor(lambda site, x: positive_power(site, x, power))(site)


def _widens(shape: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Return whether ``shape`` changes when it broadcasts with ``other``."""
    behind = shape[len(shape) - len(other) :] if len(other) <= len(shape) else ()
    return len(other) > len(shape) or any(size not in (1, own) for size, own in zip(other, behind, strict=True))


_ROOTS = {0.5: ops.Sqrt(), -0.5: ops.Rsqrt()}


def _check_whole(site: OnnxSite, exponents: Array) -> None:
    greatest = np.abs(exponents).max()
    if greatest > _GREATEST_POWER:
        raise site.unsupported(
            f"the exponent {greatest:g} is not supported", f"use whole exponents of at most {_GREATEST_POWER}"
        )


def whole_power(site: OnnxSite, x: Tensor, power: int) -> Tensor:
    """Return ``x`` to ``power`` by repeated squaring."""
    if power < 0:
        return divide(site, site.number("one", 1.0), whole_power(site, x, -power))
    result, square, rest = site.weights("one", np.ones(x.shape, x.dtype.numpy)) if power == 0 else None, x, power
    while rest:
        if rest & 1:
            result = square if result is None else multiply(site, result, square)
        rest >>= 1
        square = multiply(site, square, square) if rest else square
    assert result is not None
    return result


def positive_power(site: OnnxSite, x: Tensor, power: Tensor | float) -> Tensor:
    """Return ``x`` to ``power`` as exp(power * log(x)): 0 for 0, NaN for negative numbers."""
    return unary(site, ops.Exp(), multiply(site, unary(site, ops.Log(), x), power))


def _each(site: OnnxSite, value: Value, exponents: Array) -> Value:
    """Raise X to one power per element; by repeated squaring if all are integers."""
    whole = np.rint(exponents)
    if (whole != exponents).any():
        powers = site.made(site.weights("exponents", exponents.astype(np.float32)))
        logarithm = Value(unary(site, ops.Log(), value.tensor), value.order)
        product = combined(site, ops.Mul(), logarithm, powers)
        return Value(unary(site, ops.Exp(), product.tensor), product.order)
    _check_whole(site, exponents)
    if (whole < 0).any():
        raise site.unsupported("different exponents, some below 0, are not supported")
    return _by_bits(site, value, whole.astype(np.int64))


def _by_bits(site: OnnxSite, value: Value, exponents: Array) -> Value:
    one = Value(site.weights("one", np.ones((), value.dtype.numpy)), ())
    result: Value | None = None
    square = value
    for bit in range(max(1, int(exponents.max()).bit_length())):
        if bit:
            square = Value(multiply(site, square.tensor, square.tensor), square.order)
        taken = site.made(site.weights("bits", (exponents >> bit & 1).astype(bool)))
        factor = chosen(site, taken, square, one)
        result = factor if result is None else combined(site, ops.Mul(), result, factor)
    assert result is not None
    return result


OPERATORS: Mapping[str, Converter] = {
    "Pow": _power,
}
