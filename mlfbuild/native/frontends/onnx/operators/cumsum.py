"""CumSum, CumProd and ReduceProd, computed in a logarithmic number of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, multiply
from mlfbuild.native.frontends.onnx.operators.reduce import made_of_others
from mlfbuild.native.frontends.onnx.operators.slice import sliced
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Operator, Tensor, ops


def _accumulated(site: OnnxSite, operator: Operator, neutral: int) -> tuple[Value, ...]:
    """Combine each element with all before it: with the one at distance 1, then at distance 2, then 4, and so on."""
    value = site.value(0)
    axis = site.axis(site.constant_integer(1, "axis"), value.rank)
    backwards = site.integer("reverse", 0) != 0
    if site.integer("exclusive", 0):
        value = _shifted(site, value, axis, 1, neutral, backwards=backwards)
    step = 1
    while step < value.shape[axis]:
        before = _shifted(site, value, axis, step, neutral, backwards=backwards)
        value = Value(site.emit(operator, [value.tensor, before.tensor], value.tensor.shape), value.order)
        step *= 2
    return (value,)


def _shifted(site: OnnxSite, value: Value, axis: int, step: int, neutral: int, *, backwards: bool) -> Value:
    """Return ``value`` shifted by ``step`` along ``axis`` and filled with ``neutral``."""
    size, stored = value.shape[axis], value.stored(axis)
    if step >= size:
        return Value(site.filled("filling", value.tensor.shape, neutral, value.dtype.numpy), value.order)
    ranges = [range(other) for other in value.shape]
    ranges[axis] = range(step, size) if backwards else range(size - step)
    rest = sliced(site, value, ranges).tensor
    if value.dtype in ops.PadV2.types:
        pair = (0, step) if backwards else (step, 0)
        paddings = tuple(pair if other == stored else (0, 0) for other in range(value.rank))
        return Value(site.emit(ops.PadV2(paddings, neutral), [rest], value.tensor.shape), value.order)
    shape = [step if other == stored else length for other, length in enumerate(value.tensor.shape)]
    filling = site.filled("filling", shape, neutral, value.dtype.numpy)
    parts = [rest, filling] if backwards else [filling, rest]
    return Value(site.emit(ops.Concatenation(stored), parts, value.tensor.shape), value.order)


def _cumulative_sum(site: OnnxSite) -> tuple[Value, ...]:
    return _accumulated(site, ops.Add(), 0)


def _cumulative_product(site: OnnxSite) -> tuple[Value, ...]:
    return _accumulated(site, ops.Mul(), 1)


def _product(site: OnnxSite, x: Tensor, axes: Sequence[int]) -> Tensor:
    """Return the product along the stored ``axes``, which are kept as dimensions of size 1."""
    for axis in axes:
        odd: list[Tensor] = []
        while (size := x.shape[axis]) > 1:
            half = size // 2
            if size % 2:
                odd.append(_part(site, x, axis, range(size - 1, size)))
            x = multiply(site, _part(site, x, axis, range(half)), _part(site, x, axis, range(half, 2 * half)))
        for rest in odd:
            x = multiply(site, x, rest)
    return x


def _part(site: OnnxSite, x: Tensor, axis: int, positions: range) -> Tensor:
    ranges = [positions if other == axis else range(size) for other, size in enumerate(x.shape)]
    return sliced(site, site.made(x), ranges).tensor


def _same(_site: OnnxSite, x: Tensor) -> Tensor:
    return x


OPERATORS: Mapping[str, Converter] = {
    "CumProd": _cumulative_product,
    "CumSum": _cumulative_sum,
    "ReduceProd": made_of_others(_product, _same),
}
