"""ReduceMean, ReduceSum and the other reductions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from mlfbuild.frontends.onnx.layout import Order, Value
from mlfbuild.frontends.onnx.operators.arithmetic import Converter, add, cast, multiply, reduced, subtract, unary
from mlfbuild.frontends.onnx.operators.elementwise import NARROW
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import DType, Tensor, ops

_SUMMED_AXES_OPSET = 13


_AXES_OPSET = 18
"""The opsets since which the axes are an input: of ReduceSum, and of all others."""


EXACT = NARROW | {DType.BOOL}
"""Types whose values float32 represents exactly."""


Reduction = ops.Mean | ops.Sum | ops.ReduceMax | ops.ReduceMin


def _axes(site: OnnxSite, rank: int) -> tuple[int, ...] | None:
    """Return the dimensions to reduce, ``None`` if there are none."""
    since = _SUMMED_AXES_OPSET if site.node.operator == "ReduceSum" else _AXES_OPSET
    axes = site.integers("axes", 1 if site.opset >= since else None)
    if axes:
        return site.axes(axes, rank)
    return None if site.integer("noop_with_empty_axes", 0) else tuple(range(rank))


def _reduction(kind: type[Reduction]) -> Callable[[OnnxSite], tuple[Value, ...]]:
    """Return the converter to an operator of the graph; maximum and minimum keep the scale of the input."""

    def convert(site: OnnxSite) -> tuple[Value, ...]:
        held, target = site.held(0), site.held_target
        axes = _axes(site, held.rank)
        if axes is None:
            return (held,)
        operator = kind(tuple(sorted(held.stored(axis) for axis in axes)), keep_dims=site.integer("keepdims", 1) != 0)
        shape = operator.output_shape(held.tensor.shape)
        order = held.order if operator.keep_dims else without(held.order, axes)
        if issubclass(kind, ops.ReduceMax | ops.ReduceMin):
            target = held.quantization
        if held.quantization is not None and target is not None:
            rounded = replace(operator, half_even=True) if isinstance(operator, ops.Summing) else operator
            made = site.attempt(rounded, [held.tensor], shape, target)
            if made is not None:
                return (site.real(made, order),)
        plain = site.value(0)
        exact = plain.dtype in EXACT and issubclass(kind, ops.ReduceMax | ops.ReduceMin)
        source = cast(site, plain.tensor, DType.FLOAT32) if exact else plain.tensor
        return (Value(cast(site, site.emit(operator, [source], shape), plain.dtype), order),)

    return convert


def without(order: Order, axes: tuple[int, ...]) -> Order:
    """Return ``order`` without the dimensions ``axes``; later ones move up."""
    kept = [axis for axis in order if axis not in axes]
    return tuple(sorted(kept).index(axis) for axis in kept)


Compute = Callable[[OnnxSite, Tensor, tuple[int, ...]], Tensor]


def made_of_others(
    compute: Compute, nothing: Callable[[OnnxSite, Tensor], Tensor]
) -> Callable[[OnnxSite], tuple[Value, ...]]:
    """Return a converter that reduces with ``compute``, which keeps the axes, or with ``nothing`` if there are none."""

    def convert(site: OnnxSite) -> tuple[Value, ...]:
        value = site.value(0)
        axes = _axes(site, value.rank)
        if axes is None:
            return (Value(nothing(site, value.tensor), value.order),)
        made = compute(site, value.tensor, tuple(value.stored(axis) for axis in axes))
        if site.integer("keepdims", 1):
            return (Value(made, value.order),)
        stored = {value.stored(axis) for axis in axes}
        shape = [size for axis, size in enumerate(made.shape) if axis not in stored]
        return (Value(site.builder.reshaped(made, shape), without(value.order, axes)),)

    return convert


def _magnitude(site: OnnxSite, x: Tensor) -> Tensor:
    return unary(site, ops.Abs(), x)


def _square(site: OnnxSite, x: Tensor) -> Tensor:
    return multiply(site, x, x)


def _logarithm(site: OnnxSite, x: Tensor) -> Tensor:
    return unary(site, ops.Log(), x)


def _same(_site: OnnxSite, x: Tensor) -> Tensor:
    return x


def _sum_of_magnitudes(site: OnnxSite, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return reduced(site, ops.Sum, _magnitude(site, x), axes)


def _sum_of_squares(site: OnnxSite, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return reduced(site, ops.Sum, _square(site, x), axes)


def _length(site: OnnxSite, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return unary(site, ops.Sqrt(), _sum_of_squares(site, x, axes))


def _log_of_sum(site: OnnxSite, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    return _logarithm(site, reduced(site, ops.Sum, x, axes))


def log_of_sum_of_exponentials(site: OnnxSite, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return log(sum(exp(x))) along the stored ``axes``; the maximum is subtracted first to avoid overflow."""
    greatest = reduced(site, ops.ReduceMax, x, axes)
    powers = unary(site, ops.Exp(), subtract(site, x, greatest))
    return add(site, _log_of_sum(site, powers, axes), greatest)


OPERATORS: Mapping[str, Converter] = {
    "ReduceL1": made_of_others(_sum_of_magnitudes, _magnitude),
    "ReduceL2": made_of_others(_length, _magnitude),
    "ReduceLogSum": made_of_others(_log_of_sum, _logarithm),
    "ReduceLogSumExp": made_of_others(log_of_sum_of_exponentials, _same),
    "ReduceMax": _reduction(ops.ReduceMax),
    "ReduceMean": _reduction(ops.Mean),
    "ReduceMin": _reduction(ops.ReduceMin),
    "ReduceSum": _reduction(ops.Sum),
    "ReduceSumSquare": made_of_others(_sum_of_squares, _square),
}
