"""Arithmetic on tensors of the graph, for converters of operators that the graph lacks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import DType, GraphError, Operator, Tensor, ops

Converter = Callable[[OpContext], tuple[Value, ...]]


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


def binary(op: OpContext, operator: Operator, first: Tensor, second: Tensor | float) -> Tensor:
    """Apply ``operator`` to two tensors, with broadcasting.

    A number becomes a constant of the type of ``first``. The result has that type and the broadcast shape; raises
    ``GraphError`` if the shapes do not broadcast. Both must be stored in the same order (``elementwise`` sees to that).
    """
    # A Python number becomes a constant of the other operand's type.
    second = _tensor(op, second, first.dtype)
    try:
        shape = np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise GraphError(op.node.place, f"{first} and {second} do not broadcast") from None
    return op.emit(operator, [first, second], shape)


def unary(op: OpContext, operator: Operator, tensor: Tensor) -> Tensor:
    """Apply ``operator`` to every element.

    The result has the type and shape of ``tensor``.
    """
    return op.emit(operator, [tensor], tensor.shape)


def add(op: OpContext, first: Tensor, second: Tensor | float) -> Tensor:
    """Return first + second."""
    return binary(op, ops.Add(), first, second)


def summed(op: OpContext, parts: Iterable[Tensor]) -> Tensor:
    """Return the sum of ``parts``, of which there is at least one; each is added before the next one is requested."""
    return functools.reduce(functools.partial(add, op), parts)


def subtract(op: OpContext, first: Tensor, second: Tensor | float) -> Tensor:
    """Return first - second."""
    return binary(op, ops.Sub(), first, second)


def multiply(op: OpContext, first: Tensor, second: Tensor | float) -> Tensor:
    """Return first * second."""
    return binary(op, ops.Mul(), first, second)


def divide(op: OpContext, first: Tensor, second: Tensor | float) -> Tensor:
    """Return first / second."""
    return binary(op, ops.Div(), first, second)


def relation(op: OpContext, operator: Operator, first: Tensor, second: Tensor | float) -> Tensor:
    """Return the result of the comparison ``operator``, element by element.

    The result is bool with the broadcast shape. A number becomes a constant of the type of ``first``.
    """
    other = _tensor(op, second, first.dtype)
    return op.emit(operator, [first, other], np.broadcast_shapes(first.shape, other.shape), DType.BOOL)


def select(op: OpContext, condition: Tensor, first: Tensor | float, second: Tensor | float) -> Tensor:
    """Return elements of ``first`` where ``condition`` is true, else of ``second``.

    Numbers become constants of the type of the other alternative, or of float32 if both are numbers. All three
    broadcast.
    """
    like = next((tensor.dtype for tensor in (first, second) if isinstance(tensor, Tensor)), DType.FLOAT32)
    tensors = condition, _tensor(op, first, like), _tensor(op, second, like)
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    return op.emit(ops.SelectV2(), tensors, shape, tensors[1].dtype)


def cast(op: OpContext, tensor: Tensor, dtype: DType) -> Tensor:
    """Return ``tensor`` as another type.

    Converted like ONNX's Cast and C: a float32 loses its fraction. Returns ``tensor`` itself if it has the type
    already.
    """
    return tensor if tensor.dtype is dtype else op.emit(ops.Cast(), [tensor], tensor.shape, dtype)


def reduced(
    op: OpContext, kind: type[ops.Mean | ops.Sum | ops.ReduceMax | ops.ReduceMin], tensor: Tensor, axes: Sequence[int]
) -> Tensor:
    """Return ``tensor`` reduced along its stored ``axes``, which stay as dimensions of 1."""
    operator = kind(tuple(sorted(axes)), keep_dims=True)
    return op.emit(operator, [tensor], operator.output_shape(tensor.shape))


def _tensor(op: OpContext, number: Tensor | float, dtype: DType) -> Tensor:
    return number if isinstance(number, Tensor) else op.weights("number", np.array(number, dtype.numpy))


def whole_power(op: OpContext, x: Tensor, power: int) -> Tensor:
    """Return ``x`` to ``power`` by repeated squaring."""
    if power < 0:
        return divide(op, op.number("one", 1.0), whole_power(op, x, -power))
    if power == 0:
        return op.filled("one", x.shape, 1, x.dtype.numpy)
    # One product for each bit of the exponent instead of one for each power.
    return functools.reduce(functools.partial(multiply, op), _squares(op, x, power))


def _squares(op: OpContext, x: Tensor, power: int) -> Iterator[Tensor]:
    """Yield ``x`` to each power of two that ``power`` is the sum of."""
    while power:
        if power & 1:
            yield x
        power >>= 1
        x = multiply(op, x, x) if power else x


def positive_power(op: OpContext, x: Tensor, power: Tensor | float) -> Tensor:
    """Return ``x`` to ``power`` as exp(power * log(x)): 0 for 0, NaN for negative numbers."""
    return unary(op, ops.Exp(), multiply(op, unary(op, ops.Log(), x), power))


def log_of_sum_of_exponentials(op: OpContext, x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return log(sum(exp(x))) along the stored ``axes``; the maximum is subtracted first to avoid overflow."""
    greatest = reduced(op, ops.ReduceMax, x, axes)
    # exp of differences from the maximum is at most 1, so that the sum cannot overflow.
    powers = unary(op, ops.Exp(), subtract(op, x, greatest))
    return add(op, unary(op, ops.Log(), reduced(op, ops.Sum, powers, axes)), greatest)
