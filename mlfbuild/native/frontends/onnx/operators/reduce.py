"""Reductions such as ReduceMean, ArgMax, ArgMin and TopK, and CumSum and CumProd.

The cumulative ones take a logarithmic number of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.conversion.elementwise import NARROW, from_order, in_order
from mlfbuild.native.frontends.onnx.conversion.selection import sliced
from mlfbuild.native.frontends.onnx.layout import Order, Value
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import UNSIGNED, DType, GraphError, Operator, Tensor, ops


def _accumulated(op: OpContext, operator: Operator, neutral: int) -> tuple[Value, ...]:
    """Combine each element with all before it: with the one at distance 1, then at distance 2, then 4, and so on."""
    value = op.value(0)
    axis = op.axis(op.constant_integer(1, "axis"), value.rank)
    backwards = op.integer("reverse", 0) != 0
    if op.integer("exclusive", 0):
        value = _shifted(op, value, axis, 1, neutral, backwards=backwards)
    step = 1
    while step < value.shape[axis]:
        before = _shifted(op, value, axis, step, neutral, backwards=backwards)
        value = Value(op.emit(operator, [value.tensor, before.tensor], value.tensor.shape), value.order)
        step *= 2
    return (value,)


def _shifted(op: OpContext, value: Value, axis: int, step: int, neutral: int, *, backwards: bool) -> Value:
    """Return ``value`` shifted by ``step`` along ``axis`` and filled with ``neutral``."""
    size, stored = value.shape[axis], value.stored(axis)
    if step >= size:
        return Value(op.filled("filling", value.tensor.shape, neutral, value.dtype.numpy), value.order)
    ranges = [range(other) for other in value.shape]
    ranges[axis] = range(step, size) if backwards else range(size - step)
    rest = sliced(op, value, ranges).tensor
    if value.dtype in ops.PadV2.types:
        pair = (0, step) if backwards else (step, 0)
        paddings = tuple(pair if other == stored else (0, 0) for other in range(value.rank))
        return Value(op.emit(ops.PadV2(paddings, neutral), [rest], value.tensor.shape), value.order)
    shape = [step if other == stored else length for other, length in enumerate(value.tensor.shape)]
    filling = op.filled("filling", shape, neutral, value.dtype.numpy)
    parts = [rest, filling] if backwards else [filling, rest]
    return Value(op.emit(ops.Concatenation(stored), parts, value.tensor.shape), value.order)


def _top_k(op: OpContext) -> tuple[Value, ...]:
    """Convert TopK; ONNX leaves the order open if ``sorted`` is 0, and it is the same then."""
    value, dtype = op.held(0), op.held(0).dtype
    if dtype in UNSIGNED:
        value = in_order(op, value)
    axis = op.axis(op.integer("axis", -1), value.rank)
    numbers = op.integers("k", 1) if op.opset >= 10 else (op.integer("k", 0),)
    if numbers is None or len(numbers) != 1 or not 0 <= numbers[0] <= value.shape[axis]:
        raise GraphError(op.node.place, f"k is {list(numbers or ())} for {value.shape[axis]} elements")
    order = (*(other for other in value.order if other != axis), axis)
    source = op.builder.stored(value, order)
    positions = checked(op.name, (*source.shape[:-1], numbers[0]), DType.INT32)
    like = replace(positions, dtype=source.dtype, quantization=source.quantization)
    operator = ops.TopkV2(numbers[0], least=not op.integer("largest", 1))
    greatest, at = op.builder.emit(op.name, operator, [source], like, positions)
    wide = op.emit(ops.Cast(), [at], at.shape, DType.INT64)
    values = value.moved(greatest, order)
    if dtype in UNSIGNED:
        values = from_order(op, values, dtype)
    return values, Value(wide, order)


_SUMMED_AXES_OPSET = 13


_AXES_OPSET = 18
"""The opsets since which the axes are an input: of ReduceSum, and of all others."""


EXACT = NARROW | {DType.BOOL}
"""Types whose values float32 represents exactly."""


Reduction = ops.Mean | ops.Sum | ops.ReduceMax | ops.ReduceMin


def _axes(op: OpContext, rank: int) -> tuple[int, ...] | None:
    """Return the dimensions to reduce, ``None`` if there are none."""
    since = _SUMMED_AXES_OPSET if op.node.operator == "ReduceSum" else _AXES_OPSET
    axes = op.integers("axes", 1 if op.opset >= since else None)
    if axes:
        return op.axes(axes, rank)
    return None if op.integer("noop_with_empty_axes", 0) else tuple(range(rank))


def _reduction(kind: type[Reduction]) -> Callable[[OpContext], tuple[Value, ...]]:
    """Return the converter to an operator of the graph; maximum and minimum keep the scale of the input."""

    def convert(op: OpContext) -> tuple[Value, ...]:
        held, target = op.held(0), op.held_target
        axes = _axes(op, held.rank)
        if axes is None:
            return (held,)
        operator = kind(tuple(sorted(held.stored(axis) for axis in axes)), keep_dims=op.integer("keepdims", 1) != 0)
        shape = operator.output_shape(held.tensor.shape)
        order = held.order if operator.keep_dims else _without(held.order, axes)
        # Selecting is exact in the scale of the input, whatever follows.
        if issubclass(kind, ops.ReduceMax | ops.ReduceMin):
            target = held.quantization
        if held.quantization is not None and target is not None:
            rounded = replace(operator, half_even=True) if isinstance(operator, ops.Summing) else operator
            made = op.attempt(rounded, [held.tensor], shape, target)
            if made is not None:
                return (op.real(made, order),)
        plain = op.value(0)
        exact = plain.dtype in EXACT and issubclass(kind, ops.ReduceMax | ops.ReduceMin)
        # The kernels have no such type without a scale.
        source = op.cast(plain.tensor, DType.FLOAT32) if exact else plain.tensor
        return (Value(op.cast(op.emit(operator, [source], shape), plain.dtype), order),)

    return convert


def _without(order: Order, axes: tuple[int, ...]) -> Order:
    """Return ``order`` without the dimensions ``axes``; later ones move up."""
    kept = [axis for axis in order if axis not in axes]
    return tuple(sorted(kept).index(axis) for axis in kept)


Function = Callable[[OpContext, Tensor], Tensor]
Compute = Callable[[OpContext, Tensor, tuple[int, ...]], Tensor]


def _made_of_others(compute: Compute, nothing: Function) -> Converter:
    """Return a converter that reduces with ``compute``, which keeps the axes, or with ``nothing`` if there are none."""

    def convert(op: OpContext) -> tuple[Value, ...]:
        value = op.value(0)
        axes = _axes(op, value.rank)
        if axes is None:
            return (Value(nothing(op, value.tensor), value.order),)
        made = compute(op, value.tensor, tuple(value.stored(axis) for axis in axes))
        if op.integer("keepdims", 1):
            return (Value(made, value.order),)
        stored = {value.stored(axis) for axis in axes}
        shape = [size for axis, size in enumerate(made.shape) if axis not in stored]
        return (Value(op.builder.reshaped(made, shape), _without(value.order, axes)),)

    return convert


def _magnitude(op: OpContext, x: Tensor) -> Tensor:
    return op.unary(ops.Abs(), x)


def _square(op: OpContext, x: Tensor) -> Tensor:
    return op.multiply(x, x)


def _logarithm(op: OpContext, x: Tensor) -> Tensor:
    return op.unary(ops.Log(), x)


def _same(_op: OpContext, x: Tensor) -> Tensor:
    return x


def _of_sum(before: Function, after: Function, nothing: Function) -> Converter:
    """Return a converter that sums elements after ``before``, and applies ``after`` to the sum."""
    return _made_of_others(lambda op, x, axes: after(op, op.reduced(ops.Sum, before(op, x), axes)), nothing)


def _product(op: OpContext, x: Tensor, axes: Sequence[int]) -> Tensor:
    """Return the product along the stored ``axes``, which are kept as dimensions of size 1."""
    for axis in axes:
        odd: list[Tensor] = []
        # Halves are multiplied with each other: as many operators as the size has bits, instead of one for each
        # element.
        while (size := x.shape[axis]) > 1:
            half = size // 2
            if size % 2:
                odd.append(_part(op, x, axis, range(size - 1, size)))
            x = op.multiply(_part(op, x, axis, range(half)), _part(op, x, axis, range(half, 2 * half)))
        for rest in odd:
            x = op.multiply(x, rest)
    return x


def _part(op: OpContext, x: Tensor, axis: int, positions: range) -> Tensor:
    ranges = [positions if other == axis else range(size) for other, size in enumerate(x.shape)]
    return sliced(op, op.made(x), ranges).tensor


def _position(kind: type[ops.ArgMax | ops.ArgMin]) -> Callable[[OpContext], tuple[Value, ...]]:
    def convert(op: OpContext) -> tuple[Value, ...]:
        value = op.held(0)
        axis = op.axis(op.integer("axis", 0), value.rank)
        stored = value.stored(axis)
        shape = [size for other, size in enumerate(value.tensor.shape) if other != stored]
        if op.integer("select_last_index", 0):
            found = _last_position(op, kind(stored), value, axis, shape)
        else:
            found = op.emit(kind(stored), [value.tensor], shape, DType.INT32)
        wide = op.emit(ops.Cast(), [found], shape, DType.INT64)
        if not op.integer("keepdims", 1):
            return (Value(wide, _without(value.order, (axis,))),)
        return (Value(op.builder.reshaped(wide, (*shape[:stored], 1, *shape[stored:])), value.order),)

    return convert


def _last_position(
    op: OpContext, operator: ops.ArgMax | ops.ArgMin, value: Value, axis: int, shape: Sequence[int]
) -> Tensor:
    """Return the position of the last extreme element, computed in float32 from the reversed tensor."""
    # The kernel finds the first one, and the last one is the first of the reversed tensor.
    ranges = [range(size)[::-1] if other == axis else range(size) for other, size in enumerate(value.shape)]
    turned = sliced(op, value, ranges)
    found = op.emit(operator, [turned.tensor], shape, DType.INT32)
    number = op.emit(ops.Cast(), [found], shape, DType.FLOAT32)
    return op.subtract(op.number("last", value.shape[axis] - 1), number)


OPERATORS: Mapping[str, Converter] = {
    "ArgMax": _position(ops.ArgMax),
    "ArgMin": _position(ops.ArgMin),
    "CumProd": lambda op: _accumulated(op, ops.Mul(), 1),
    "CumSum": lambda op: _accumulated(op, ops.Add(), 0),
    "ReduceL1": _of_sum(_magnitude, _same, _magnitude),
    "ReduceL2": _of_sum(_square, lambda op, x: op.unary(ops.Sqrt(), x), _magnitude),
    "ReduceLogSum": _of_sum(_same, _logarithm, _logarithm),
    "ReduceLogSumExp": _made_of_others(OpContext.log_of_sum_of_exponentials, _same),
    "ReduceMax": _reduction(ops.ReduceMax),
    "ReduceMean": _reduction(ops.Mean),
    "ReduceMin": _reduction(ops.ReduceMin),
    "ReduceProd": _made_of_others(_product, _same),
    "ReduceSum": _reduction(ops.Sum),
    "ReduceSumSquare": _of_sum(_square, _same, _square),
    "TopK": _top_k,
}
