"""Operators that take elements of several tensors one by one, with numpy's broadcasting."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.frontends.onnx.layout import Order, Value, as_onnx, channels_last
from mlfbuild.frontends.onnx.operators.arithmetic import Converter, cast
from mlfbuild.frontends.onnx.operators.pieces import common_order
from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import Array, DType, GraphError, Operator, Quantization, Tensor, ops


def _binary(operator: Operator) -> Converter:
    """Return the converter of an operator with an integer form, taken where the scale of its output is known."""

    def convert(site: Site) -> tuple[Value, ...]:
        return (_integer(site, operator) or arithmetic(site, operator, site.value(0), site.value(1)),)

    return convert


def _integer(site: Site, operator: Operator) -> Value | None:
    first, second, target = _held(site, 0), _held(site, 1), site.held_target
    if first is None or second is None or target is None or (first.tensor.constant and second.tensor.constant):
        return None
    order, tensors, shape = aligned(site, (first, second))
    made = site.attempt(operator, tensors, shape, target)
    return None if made is None else site.real(made, order)


def _held(site: Site, index: int) -> Value | None:
    """Return input ``index`` if it is held as int8, or is a constant number that int8 can hold exactly."""
    if site.quantized(index) is None and site.is_constant(index):
        return _constant_number(site, site.constant(index, "number"))
    value = site.held(index)
    return value if value.quantization is not None and value.tensor.dtype is DType.INT8 else None


def _constant_number(site: Site, number: Array) -> Value | None:
    if number.size != 1 or number.dtype != np.float32:
        return None
    real = float(number.reshape(-1)[0])
    if not np.isfinite(real) or abs(real) < np.finfo(np.float32).tiny * 128:
        return None
    greatest = 127
    scale = float(np.float32(abs(real) / greatest))
    stored = np.full(number.shape, greatest if real > 0 else -greatest, np.int8)
    return site.real(site.weights("number", stored, Quantization((scale,), (0,))))


def _variadic(operator: Operator) -> Converter:
    """Combine any number of inputs from the first on."""

    def convert(site: Site) -> tuple[Value, ...]:
        if len(site.node.inputs) == 1:
            return (site.held(0),)
        if len(site.node.inputs) == 2:
            return _binary(operator)(site)
        result = site.value(0)
        for index in range(1, len(site.node.inputs)):
            result = arithmetic(site, operator, result, site.value(index))
        return (result,)

    return convert


def arithmetic(site: Site, operator: Operator, first: Value, second: Value) -> Value:
    """Compute ``operator`` of two values of one type; narrow integers wrap round, as C's do."""
    if first.dtype not in NARROW or second.dtype is not first.dtype:
        return combined(site, operator, first, second)
    wide = DType.FLOAT32 if isinstance(operator, ops.Div) else DType.INT32
    made = combined(site, operator, as_type(site, first, wide), as_type(site, second, wide))
    return as_type(site, made, first.dtype)


NARROW = frozenset({DType.INT8, DType.UINT8, DType.INT16})
"""Integers that float32 holds exactly, and any quotient of two cut to a whole number too."""


def as_type(site: Site, value: Value, dtype: DType) -> Value:
    """Return the plain ``value`` converted to ``dtype``."""
    return Value(cast(site, value.tensor, dtype), value.order)


def _extreme(operator: Operator) -> Converter:
    """MAXIMUM and MINIMUM in integers want one scale for all tensors; it is the first input's."""

    def convert(site: Site) -> tuple[Value, ...]:
        values = [site.held(index) for index in range(len(site.node.inputs))]
        first = values[0]
        if first.quantization is None or any(value.quantization != first.quantization for value in values):
            values = [site.builder.plain(value) for value in values]
        result = values[0]
        for value in values[1:]:
            result = extreme(site, operator, result, value)
        return (result,)

    return convert


def extreme(site: Site, operator: Operator, first: Value, second: Value) -> Value:
    """Return the greater or the lesser of two values; of narrow integers, the one of which a comparison says so."""
    if first.dtype not in NARROW or second.dtype is not first.dtype:
        return combined(site, operator, first, second)
    comparison = ops.Greater() if isinstance(operator, ops.Maximum) else ops.Less()
    return chosen(site, _compared(site, comparison, first, second), first, second)


def chosen(site: Site, condition: Value, first: Value, second: Value) -> Value:
    """Return elements of ``first`` where ``condition`` holds, else of ``second``."""
    order, tensors, shape = aligned(site, (condition, first, second))
    return Value(site.emit(ops.SelectV2(), tensors, shape, tensors[1].dtype), order)


def _compared(site: Site, comparison: Operator, first: Value, second: Value) -> Value:
    """Compare two values of one type; narrow integers as int32, whatever they may mean by a scale."""
    if first.dtype in NARROW and second.dtype is first.dtype:
        first, second = as_type(site, first, DType.INT32), as_type(site, second, DType.INT32)
    return combined(site, comparison, first, second, dtype=DType.BOOL)


def _modulo(site: Site) -> tuple[Value, ...]:
    """Return what is left of a division of integers, with the sign of the divisor, or of the dividend if ``fmod``."""
    first, second = site.value(0), site.value(1)
    dtype = first.dtype
    if dtype is DType.FLOAT32:
        raise site.unsupported(f"{first.tensor}; supported are integers, whose quotient is exact")
    if dtype in NARROW and second.dtype is dtype:
        first, second = as_type(site, first, DType.INT32), as_type(site, second, DType.INT32)
    whole = combined(site, ops.Mul(), combined(site, ops.Div(), first, second), second)
    rest = combined(site, ops.Sub(), first, whole)
    if not site.integer("fmod", 0):
        zero = Value(site.weights("zero", np.zeros((), rest.dtype.numpy)), ())
        signs = [combined(site, ops.Less(), value, zero, dtype=DType.BOOL) for value in (rest, second)]
        differ = combined(site, ops.NotEqual(), *signs, dtype=DType.BOOL)
        some = combined(site, ops.NotEqual(), rest, zero, dtype=DType.BOOL)
        turned = combined(site, ops.LogicalAnd(), differ, some, dtype=DType.BOOL)
        rest = chosen(site, turned, combined(site, ops.Add(), rest, second), rest)
    return (as_type(site, rest, dtype),)


def _comparison(operator: Operator) -> Converter:
    def convert(site: Site) -> tuple[Value, ...]:
        return (_compared(site, operator, site.value(0), site.value(1)),)

    return convert


def _logical(operator: Operator) -> Converter:
    def convert(site: Site) -> tuple[Value, ...]:
        if site.value(0).dtype is not DType.BOOL:
            raise site.unsupported(f"{site.value(0).tensor}; supported is bool")
        return (combined(site, operator, site.value(0), site.value(1), dtype=DType.BOOL),)

    return convert


def combined(site: Site, operator: Operator, *values: Value, dtype: DType | None = None) -> Value:
    """Apply ``operator`` to values of one kind, stored in the order of one that would have to be moved otherwise."""
    order, tensors, shape = aligned(site, values)
    quantization = tensors[-1].quantization
    return values[-1].moved(site.emit(operator, tensors, shape, dtype, quantization), order) if dtype is None else (
        site.made(site.emit(operator, tensors, shape, dtype), order)
    )  # fmt: skip


def aligned(site: Site, values: Sequence[Value]) -> tuple[Order, list[Tensor], tuple[int, ...]]:
    """Return an order, the tensors of ``values`` with all dimensions stored in it, and the shape they broadcast to."""
    rank = max(value.rank for value in values)
    widest = [value for value in values if value.rank == rank]
    order = common_order(widest)
    tensors = [_widened(site, value, rank, order) for value in values]
    try:
        return order, tensors, np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    except ValueError:
        raise GraphError(site.node.place, f"{' and '.join(map(str, tensors))} do not broadcast") from None


def _widened(site: Site, value: Value, rank: int, order: Order) -> Tensor:
    """Return ``value`` with ``rank`` dimensions, sizes of 1 in front, stored in ``order``."""
    missing = rank - value.rank
    if missing:
        tensor = site.builder.reshaped(value.tensor, (*(1,) * missing, *value.tensor.shape))
        value = value.moved(tensor, (*range(missing), *(axis + missing for axis in value.order)))
    return site.builder.stored(value, order)


def _where(site: Site) -> tuple[Value, ...]:
    """Take elements of X where the condition holds, else of Y."""
    condition, first, second = (site.value(index) for index in range(3))
    return (chosen(site, condition, first, second),)


def _trilu(site: Site) -> tuple[Value, ...]:
    """Keep what is above (or below) a diagonal of the last two dimensions, 0 elsewhere."""
    value = site.value(0)
    if value.rank < 2:
        raise GraphError(site.node.place, f"takes matrices, not {value.tensor}")
    diagonal = site.constant_integer(1, "diagonal") if site.has(1) else 0
    rows, columns = np.arange(value.shape[-2])[:, np.newaxis], np.arange(value.shape[-1])
    upper = site.integer("upper", 1) != 0
    mask = columns - rows >= diagonal if upper else columns - rows <= diagonal
    kept = Value(site.weights("mask", mask), as_onnx(2))
    zero = Value(site.weights("zero", np.zeros((), value.dtype.numpy)), ())
    return (chosen(site, kept, value, zero),)


def _batch_normalization(site: Site) -> tuple[Value, ...]:
    """Scale and shift every channel: y = (x - mean) / sqrt(variance + epsilon) * scale + bias."""
    if site.integer("training_mode", 0) or any(site.node.outputs[1:]):
        raise site.unsupported("training_mode")
    value = site.value(0)
    scale, bias, mean, variance = (
        site.constant(index, what).astype(np.float64)
        for index, what in enumerate(("scale", "bias", "mean", "variance"), start=1)
    )
    order = channels_last(value.rank)
    source = site.builder.stored(value, order)
    if value.rank < 2 or any(array.shape != source.shape[-1:] for array in (scale, bias, mean, variance)):
        raise GraphError(site.node.place, f"has {scale.size} scales for {source}")
    factor = scale / np.sqrt(variance + site.real_attribute("epsilon", 1e-5))
    scaled = site.emit(ops.Mul(), [source, _floats(site, "scale", factor)], source.shape)
    shifted = site.emit(ops.Add(), [scaled, _floats(site, "offset", bias - mean * factor)], source.shape)
    return (Value(shifted, order),)


def _floats(site: Site, word: str, values: Array) -> Tensor:
    return site.weights(word, values.astype(np.float32))


def _mean(site: Site) -> tuple[Value, ...]:
    """Take the mean of all inputs."""
    result = site.value(0)
    for index in range(1, len(site.node.inputs)):
        result = arithmetic(site, ops.Add(), result, site.value(index))
    share = site.number("share", 1 / len(site.node.inputs))
    return (Value(site.emit(ops.Mul(), [result.tensor, share], result.tensor.shape), result.order),)


def _prelu(site: Site) -> tuple[Value, ...]:
    """Negative elements times a slope, which broadcasts to the input."""
    value, slope = site.value(0), site.value(1)
    if slope.rank > value.rank:
        raise site.unsupported(f"a slope of {slope.rank} dimensions for {value.rank}")
    return (combined(site, ops.PRelu(), value, slope),)


OPERATORS = {
    "Add": _binary(ops.Add()),
    "And": _logical(ops.LogicalAnd()),
    "BatchNormalization": _batch_normalization,
    "Div": _binary(ops.Div()),
    "Equal": _comparison(ops.Equal()),
    "Greater": _comparison(ops.Greater()),
    "GreaterOrEqual": _comparison(ops.GreaterEqual()),
    "Less": _comparison(ops.Less()),
    "LessOrEqual": _comparison(ops.LessEqual()),
    "Max": _extreme(ops.Maximum()),
    "Mean": _mean,
    "Min": _extreme(ops.Minimum()),
    "Mod": _modulo,
    "Mul": _binary(ops.Mul()),
    "Or": _logical(ops.LogicalOr()),
    "PRelu": _prelu,
    "Sub": _binary(ops.Sub()),
    "Sum": _variadic(ops.Add()),
    "Trilu": _trilu,
    "Where": _where,
    "Xor": _logical(ops.NotEqual()),
}
