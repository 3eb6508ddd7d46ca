"""Element by element: rows for operators of one tensor in any order, and of several with numpy's broadcasting.

The row of an operator names its class in ``graph/ops``, which is imported when a model has the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Order, Value, as_onnx
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import UNSIGNED, Array, DType, GraphError, Operator, Quantization, Tensor, ops
from mlfbuild.native.graph.bases import Tabulated


def of_one_tensor(compute: Callable[[OpContext, Tensor], Tensor]) -> Converter:
    """Return a converter that applies ``compute`` element by element, regardless of the stored order.

    If the input is quantised and so is the result, that is done at once, and ``tabulation`` makes a table of it all.
    """

    def convert(op: OpContext) -> tuple[Value, ...]:
        value, target = op.value(0), op.held_target
        made = compute(op, value.tensor)
        # The output's own QuantizeLinear is converted here, so that tabulation sees one region from int8 to int8.
        if target is None or op.target is None or op.held(0).quantization is None or made.dtype is not DType.FLOAT32:
            return (Value(made, value.order),)
        return (op.real(op.emit(ops.Quantize(), [made], made.shape, op.target.holder, target), value.order),)

    return convert


def named(name: str) -> Operator:
    """Return the operator of the graph whose class is ``name`` and has no attributes."""
    operator: Operator = getattr(ops, name)()
    return operator


def plain(name: str) -> Converter:
    """Return the converter to an operator of one tensor that has no integer form."""
    return of_one_tensor(lambda op, x: op.unary(named(name), x))


def with_integers(name: str) -> Converter:
    """Return the converter to an operator of one tensor whose integer form supports all scales."""
    return lambda op: in_integers(op, named(name))


def in_integers(op: OpContext, operator: Operator) -> tuple[Value, ...]:
    """Apply ``operator`` to input 0, in integers if that is int16 and the scale of the output is known.

    int8 becomes a table of the float32 function, which has its exact values, and so do functions whose integer form is
    a table already: for int16, its interpolation may be too coarse.
    """
    held, target = op.held(0), op.held_target
    int16 = held.quantization is not None and held.tensor.dtype is DType.INT16
    if int16 and target is not None and not isinstance(operator, Tabulated):
        made = op.attempt(operator, [held.tensor], held.tensor.shape, target)
        if made is not None:
            return (op.real(made, held.order),)
    return of_one_tensor(lambda op, x: _also_narrow(op, operator, x))(op)


def of_integers_too(name: str) -> Converter:
    """Return the converter to an operator of one tensor that also has a form for int32; narrow integers wrap around."""
    return of_one_tensor(lambda op, x: _also_narrow(op, named(name), x))


def _also_narrow(op: OpContext, operator: Operator, x: Tensor) -> Tensor:
    # Narrow integers have no kernel: they are widened, which is exact, and wrap when they are cast back.
    if x.dtype not in NARROW:
        return op.unary(operator, x)
    return op.cast(op.unary(operator, op.cast(x, DType.INT32)), x.dtype)


def of_two(name: str) -> Converter:
    """Return the converter to an operator of two tensors, in its integer form if the scale of the output is known."""
    return lambda op: (_of_two(op, named(name)),)


def _of_two(op: OpContext, operator: Operator) -> Value:
    return _integer(op, operator) or arithmetic(op, operator, op.value(0), op.value(1))


def of_any_number(name: str) -> Converter:
    """Return the converter to an operator of any number of tensors, combined from the first to the last."""

    def convert(op: OpContext) -> tuple[Value, ...]:
        operator, count = named(name), len(op.node.inputs)
        if count == 1:
            return (op.held(0),)
        return (_of_two(op, operator) if count == 2 else accumulated(op, operator),)

    return convert


def accumulated(op: OpContext, operator: Operator) -> Value:
    """Return all inputs combined, from the first to the last."""
    result = op.value(0)
    for index in range(1, len(op.node.inputs)):
        result = arithmetic(op, operator, result, op.value(index))
    return result


def extreme_of(name: str) -> Converter:
    """Return the converter to MAXIMUM or MINIMUM; in integers, all tensors must have the scale of the first one."""

    def convert(op: OpContext) -> tuple[Value, ...]:
        values = [op.held(index) for index in range(len(op.node.inputs))]
        first = values[0]
        # Comparing stored numbers is right only if all have the same scale and zero point.
        if first.quantization is None or any(value.quantization != first.quantization for value in values):
            values = [op.builder.plain(value) for value in values]
        result = values[0]
        for value in values[1:]:
            result = extreme(op, named(name), result, value)
        return (result,)

    return convert


def comparison(name: str) -> Converter:
    """Return the converter to a comparison of two tensors."""
    return lambda op: (compared(op, named(name), op.value(0), op.value(1)),)


def logical(name: str) -> Converter:
    """Return the converter to an operator of two tensors of bool."""

    def convert(op: OpContext) -> tuple[Value, ...]:
        if op.value(0).dtype is not DType.BOOL:
            raise op.type_unsupported(op.value(0).tensor, "bool")
        return (combined(op, named(name), op.value(0), op.value(1), dtype=DType.BOOL),)

    return convert


def _integer(op: OpContext, operator: Operator) -> Value | None:
    first, second, target = _held(op, 0), _held(op, 1), op.held_target
    if first is None or second is None or target is None or (first.tensor.constant and second.tensor.constant):
        return None
    if first.tensor.dtype is not second.tensor.dtype:
        return None
    order, tensors, shape = aligned(op, (first, second))
    made = op.attempt(operator, tensors, shape, target)
    return None if made is None else op.real(made, order)


def _held(op: OpContext, index: int) -> Value | None:
    """Return input ``index`` if it is held as integers, or is a constant number that they can hold exactly."""
    if op.quantized(index) is None and op.is_constant(index):
        return _constant_number(op, op.constant(index, "number"))
    value = op.held(index)
    return value if value.quantization is not None else None


def _constant_number(op: OpContext, number: Array) -> Value | None:
    if number.size != 1 or number.dtype != np.float32:
        return None
    real = float(number.reshape(-1)[0])
    # The scale would be no normal float32.
    if not np.isfinite(real) or abs(real) < np.finfo(np.float32).tiny * 128:
        return None
    dtype = np.int8 if op.target is None or op.target.holder is DType.INT8 else np.int16
    greatest = int(np.iinfo(dtype).max)
    # The greatest stored value times the scale is the number, so that it is exact up to the rounding of the scale.
    scale = float(np.float32(abs(real) / greatest))
    stored = np.full(number.shape, greatest if real > 0 else -greatest, dtype)
    return op.real(op.weights("number", stored, Quantization((scale,), (0,))))


def arithmetic(op: OpContext, operator: Operator, first: Value, second: Value) -> Value:
    """Apply ``operator`` to two values of one type; integers of ``WIDER`` wrap around as in C.

    They broadcast like numpy's, in any stored order. uint64 is divided by ``unsigned_quotient``, other integers in a
    wider type, from which they are cast back.
    """
    if first.dtype not in WIDER or second.dtype is not first.dtype:
        return combined(op, operator, first, second)
    if isinstance(operator, ops.Div) and first.dtype is DType.UINT64:
        return unsigned_quotient(op, first, second)[0]
    # Truncated quotients of 16-bit integers are exact in float32, which has a division.
    divided = isinstance(operator, ops.Div) and first.dtype in NARROW - {DType.UINT16}
    wide = DType.FLOAT32 if divided else WIDER[first.dtype]
    made = combined(op, operator, as_type(op, first, wide), as_type(op, second, wide))
    return as_type(op, made, first.dtype)


NARROW = frozenset({DType.INT8, DType.UINT8, DType.INT16, DType.UINT16})
"""Integers that float32 represents exactly, as well as the truncated quotient of any two."""

WIDER: Mapping[DType, DType] = {
    **dict.fromkeys(NARROW, DType.INT32), **dict.fromkeys(UNSIGNED, DType.INT64)
}  # fmt: skip
"""The types in which the graph computes those that it only converts; the same bits are the int64 of a uint64."""


def unsigned_quotient(op: OpContext, first: Value, second: Value) -> tuple[Value, Value]:
    """Return the quotient and the remainder of uint64 by divisions of int64; 0 if the divisor is 0.

    Twice the quotient of the upper 63 bits is the quotient, or less by 1. A divisor with the highest bit set is
    contained once at most.

    Both are uint64 with the broadcast shape.
    """

    def number(value: int) -> Value:
        return Value(op.weights("number", np.array(value, np.int64)), ())

    def whole(value: Value) -> Value:
        return as_type(op, value, DType.INT64)

    x, y, zero, one = whole(first), whole(second), number(0), number(1)
    # A shift of int64 copies the sign, so the highest bit is cleared.
    half = combined(op, ops.BitwiseAnd(), combined(op, ops.RightShift(), x, one), number(np.iinfo(np.int64).max))
    even = combined(op, ops.Mul(), combined(op, ops.Div(), half, y), number(2))
    # What is left is less than twice the divisor, so that one comparison gives the missing bit.
    left = combined(op, ops.Sub(), x, combined(op, ops.Mul(), even, y))
    more = compared(op, ops.GreaterEqual(), as_type(op, left, DType.UINT64), second)
    small = combined(op, ops.Add(), even, whole(more))
    large = whole(compared(op, ops.GreaterEqual(), first, second))
    quotient = chosen(op, combined(op, ops.Less(), y, zero, dtype=DType.BOOL), large, small)
    # A divisor of 0 makes both results 0, whatever the comparisons above gave.
    valid = whole(combined(op, ops.NotEqual(), y, zero, dtype=DType.BOOL))
    rest = combined(op, ops.Sub(), x, combined(op, ops.Mul(), quotient, y))
    made = (combined(op, ops.Mul(), value, valid) for value in (quotient, rest))
    quotient, rest = (as_type(op, value, DType.UINT64) for value in made)
    return quotient, rest


def widened(op: OpContext, first: Value, second: Value) -> tuple[Value, Value]:
    """Return two values as the type in ``WIDER`` if they have one type and it is there, else as they are."""
    if first.dtype in WIDER and second.dtype is first.dtype:
        return as_type(op, first, WIDER[first.dtype]), as_type(op, second, WIDER[first.dtype])
    return first, second


def as_type(op: OpContext, value: Value, dtype: DType) -> Value:
    """Return the plain ``value`` converted to ``dtype``."""
    return Value(op.cast(value.tensor, dtype), value.order)


def extreme(op: OpContext, operator: Operator, first: Value, second: Value) -> Value:
    """Return the maximum or minimum of two values; integers of ``WIDER`` are compared and selected.

    Other types have a kernel. Both values have the same type, and the same scale if they are quantised; the result is
    the second one if one of them is NaN.
    """
    dtype = first.dtype
    if dtype not in WIDER or second.dtype is not dtype:
        return combined(op, operator, first, second)
    comparison = ops.Greater() if isinstance(operator, ops.Maximum) else ops.Less()
    condition = compared(op, comparison, first, second)
    # Types that SELECT does not have are selected as the wider type.
    if dtype is DType.UINT16 or dtype in UNSIGNED:
        first, second = widened(op, first, second)
    return as_type(op, chosen(op, condition, first, second), dtype)


def chosen(op: OpContext, condition: Value, first: Value, second: Value) -> Value:
    """Return elements of ``first`` where ``condition`` holds, else of ``second``.

    All three broadcast. The result has the type and the scale of the alternatives, which must be equal, and is stored
    in a common order.
    """
    order, tensors, shape = aligned(op, (condition, first, second))
    return Value(op.emit(ops.SelectV2(), tensors, shape, tensors[1].dtype), order)


def compared(op: OpContext, comparison: Operator, first: Value, second: Value) -> Value:
    """Compare two values of one type; integers of ``WIDER`` are compared as such, regardless of their scale.

    ``comparison`` is an operator of the graph such as ``ops.Less()``. The result is bool with the broadcast shape.
    """
    if first.dtype in WIDER and second.dtype is first.dtype:
        first, second = in_order(op, first), in_order(op, second)
    return combined(op, comparison, first, second, dtype=DType.BOOL)


def in_order(op: OpContext, value: Value) -> Value:
    """Return ``value`` as integers of ``WIDER`` in the same order: those of uint64 have the highest bit inverted."""
    wide = as_type(op, value, WIDER[value.dtype])
    return _with_highest_bit_inverted(op, wide) if value.dtype is DType.UINT64 else wide


def from_order(op: OpContext, value: Value, dtype: DType) -> Value:
    """Return the integers of ``dtype`` for which ``in_order`` returned ``value``."""
    return as_type(op, _with_highest_bit_inverted(op, value) if dtype is DType.UINT64 else value, dtype)


def _with_highest_bit_inverted(op: OpContext, value: Value) -> Value:
    highest = Value(op.weights("highest bit", np.array(np.iinfo(np.int64).min)), ())
    return combined(op, ops.BitwiseXor(), value, highest)


def combined(op: OpContext, operator: Operator, *values: Value, dtype: DType | None = None) -> Value:
    """Apply ``operator`` to values of one kind, stored in a common order.

    The result has the type and quantisation of the last value, or the type ``dtype``, which is for relations. Raises
    ``GraphError`` if the shapes do not broadcast.
    """
    order, tensors, shape = aligned(op, values)
    quantization = tensors[-1].quantization
    return values[-1].moved(op.emit(operator, tensors, shape, dtype, quantization), order) if dtype is None else (
        op.made(op.emit(operator, tensors, shape, dtype), order)
    )  # fmt: skip


def aligned(op: OpContext, values: Sequence[Value]) -> tuple[Order, list[Tensor], tuple[int, ...]]:
    """Return a common order, the tensors of ``values`` in it at full rank, and the shape to which they broadcast.

    Values of a lower rank get leading dimensions of 1, as numpy adds them. Raises ``GraphError`` if the shapes do not
    broadcast.
    """
    rank = max(value.rank for value in values)
    widest = [value for value in values if value.rank == rank]
    order = common_order(widest)
    tensors = [_widened(op, value, rank, order) for value in values]
    try:
        return order, tensors, np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    except ValueError:
        raise GraphError(op.node.place, f"{' and '.join(map(str, tensors))} do not broadcast") from None


def _widened(op: OpContext, value: Value, rank: int, order: Order) -> Tensor:
    """Return ``value`` with ``rank`` dimensions (leading ones of size 1), stored in ``order``."""
    # Leading dimensions of 1, as NumPy's broadcasting adds them.
    missing = rank - value.rank
    if missing:
        tensor = op.builder.reshaped(value.tensor, (*(1,) * missing, *value.tensor.shape))
        value = value.moved(tensor, (*range(missing), *(axis + missing for axis in value.order)))
    return op.builder.stored(value, order)


def common_order(values: Sequence[Value]) -> Order:
    """Return the first order other than ONNX's among ``values``, constants excluded; ONNX's if there is none."""
    # Channels last is preferred, because most images are stored so and would be transposed twice otherwise.
    onnx = as_onnx(values[0].rank)
    orders = [value.order for value in values if not value.tensor.constant]
    return next((order for order in orders if order != onnx), onnx)
