"""The nodes and constants that the conversion of one node of a file adds to the graph, and arithmetic made of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from mlfbuild.native.frontends.onnx.builder import GraphBuilder, checked
from mlfbuild.native.frontends.onnx.layout import Order, Value, as_onnx
from mlfbuild.native.frontends.onnx.raw_graph import RawNode
from mlfbuild.native.graph import Array, DType, GraphError, Operator, OperatorError, Quantization, Tensor, ops


@dataclass(frozen=True, eq=False)
class Emission:
    """Adds nodes and constants to the graph of ``builder`` for ``node``, after whose first output they are named.

    Arithmetic takes tensors that are stored in the same order, and numbers, which become constants.
    """

    node: RawNode
    builder: GraphBuilder
    refused: list[str] = field(default_factory=list, kw_only=True)
    """The reasons why integer forms were not possible."""

    @property
    def name(self) -> str:
        """The name of the first output."""
        return self.node.outputs[0]

    def emit(
        self,
        operator: Operator,
        inputs: Sequence[Tensor | None],
        shape: Sequence[int],
        dtype: DType | None = None,
        quantization: Quantization | None = None,
    ) -> Tensor:
        """Add a node whose output has the type of its first input, unless ``dtype`` is given.

        ``shape`` is in the stored order. Raises ``OperatorError`` if the operator cannot compute it, and
        ``UnsupportedModelError`` for tensors that C cannot hold.
        """
        like = checked(self.name, shape, dtype or next(tensor.dtype for tensor in inputs if tensor is not None))
        return self.builder.emit(self.name, operator, inputs, replace(like, quantization=quantization))[0]

    def moved(self, operator: Operator, source: Tensor, shape: Sequence[int]) -> Tensor:
        """Add a node that moves the elements of ``source`` and computes none."""
        return self.emit(operator, [source], shape, quantization=source.quantization)

    def attempt(
        self, operator: Operator, inputs: Sequence[Tensor | None], shape: Sequence[int], quantization: Quantization
    ) -> Tensor | None:
        """Add a node in integers; ``None`` if the operator does not support these scales.

        ``shape`` is in the stored order. The reason for a refusal is kept in ``refused``.
        """
        first = inputs[0]
        # ``fine`` first: ONNX defines one rounding, which the 15 bits of TFLite's wide factors would miss.
        int16 = first is not None and first.dtype is DType.INT16
        if int16 and isinstance(operator, ops.Conv2D | ops.DepthwiseConv2D | ops.FullyConnected):
            with suppress(OperatorError):  # sums of 64 bits have other factors
                return self.emit(replace(operator, fine=True), inputs, shape, quantization=quantization)
        try:
            return self.emit(operator, inputs, shape, quantization=quantization)
        except OperatorError as error:
            self.refused.append(error.reason)
            return None

    def outputs(self, operator: Operator, source: Tensor, shapes: Sequence[Sequence[int]]) -> list[Tensor]:
        """Add a node that moves elements of ``source`` to tensors of ``shapes``."""
        likes = [replace(checked(self.name, shape, source.dtype), quantization=source.quantization) for shape in shapes]
        return self.builder.emit(self.name, operator, [source], *likes)

    def real(self, tensor: Tensor, order: Order | None = None) -> Value:
        """Return ``tensor``, float32 or quantised, as a float32 value, in ONNX's order unless ``order`` is given."""
        return Value(tensor, as_onnx(len(tensor.shape)) if order is None else order, DType.FLOAT32)

    def made(self, tensor: Tensor, order: Order | None = None) -> Value:
        """Return ``tensor`` as a value, in ONNX's order unless ``order`` is given."""
        return Value(tensor, as_onnx(len(tensor.shape)) if order is None else order)

    def weights(self, word: str, data: Array, quantization: Quantization | None = None) -> Tensor:
        """Add a constant of this node; its name ends in ``word``.

        Takes its bytes from the budget of the model, and raises ``UnsupportedModelError`` if they do not suffice.
        """
        # Here, and not in the builder, because constants of the file take nothing.
        self.builder.budget.take(self.node.place, data.nbytes)
        return self.builder.constant(f"{self.name}/{word}", np.asarray(data), quantization)

    def check_room(self, shape: Sequence[int], itemsize: int) -> None:
        """Raise ``UnsupportedModelError`` if an array of ``shape`` is more than this node may make."""
        self.builder.budget.check(self.node.place, math.prod(shape) * itemsize)

    def filled(self, word: str, shape: Sequence[int], value: float, dtype: npt.DTypeLike) -> Tensor:
        """Add a constant of this node with ``value`` in every element."""
        self.check_room(shape, np.dtype(dtype).itemsize)
        return self.weights(word, np.full(shape, value, dtype))

    def number(self, word: str, value: float) -> Tensor:
        """Add a float32 constant without dimensions."""
        return self.weights(word, np.array(value, np.float32))

    def brought_to(self, tensor: Tensor, quantization: Quantization, dtype: DType = DType.INT8) -> Tensor | None:
        """Return ``tensor`` as ``dtype`` with ``quantization``; ``None`` if the scales do not allow it.

        For scales that QUANTIZE supports, whose quotient must not exceed 2**30.
        """
        if tensor.quantization == quantization and tensor.dtype is dtype:
            return tensor
        try:
            return self.emit(ops.Quantize(), [tensor], tensor.shape, dtype, quantization)
        # A scale that QUANTIZE does not support leaves the operator in float32.
        except OperatorError:
            return None

    def binary(self, operator: Operator, first: Tensor, second: Tensor | float) -> Tensor:
        """Apply ``operator`` to two tensors, with broadcasting.

        A number becomes a constant of the type of ``first``. The result has that type and the broadcast shape; raises
        ``GraphError`` if the shapes do not broadcast. Both must be stored in the same order (``elementwise`` sees to
        that).
        """
        # A Python number becomes a constant of the other operand's type.
        second = self._tensor(second, first.dtype)
        try:
            shape = np.broadcast_shapes(first.shape, second.shape)
        except ValueError:
            raise GraphError(self.node.place, f"{first} and {second} do not broadcast") from None
        return self.emit(operator, [first, second], shape)

    def unary(self, operator: Operator, tensor: Tensor) -> Tensor:
        """Apply ``operator`` to every element.

        The result has the type and shape of ``tensor``.
        """
        return self.emit(operator, [tensor], tensor.shape)

    def add(self, first: Tensor, second: Tensor | float) -> Tensor:
        """Return first + second."""
        return self.binary(ops.Add(), first, second)

    def summed(self, parts: Iterable[Tensor]) -> Tensor:
        """Return the sum of ``parts``, of which there is at least one.

        Each is added before the next one is requested.
        """
        return functools.reduce(self.add, parts)

    def subtract(self, first: Tensor, second: Tensor | float) -> Tensor:
        """Return first - second."""
        return self.binary(ops.Sub(), first, second)

    def multiply(self, first: Tensor, second: Tensor | float) -> Tensor:
        """Return first * second."""
        return self.binary(ops.Mul(), first, second)

    def divide(self, first: Tensor, second: Tensor | float) -> Tensor:
        """Return first / second."""
        return self.binary(ops.Div(), first, second)

    def relation(self, operator: Operator, first: Tensor, second: Tensor | float) -> Tensor:
        """Return the result of the comparison ``operator``, element by element.

        The result is bool with the broadcast shape. A number becomes a constant of the type of ``first``.
        """
        other = self._tensor(second, first.dtype)
        return self.emit(operator, [first, other], np.broadcast_shapes(first.shape, other.shape), DType.BOOL)

    def select(self, condition: Tensor, first: Tensor | float, second: Tensor | float) -> Tensor:
        """Return elements of ``first`` where ``condition`` is true, else of ``second``.

        Numbers become constants of the type of the other alternative, or of float32 if both are numbers. All three
        broadcast.
        """
        like = next((tensor.dtype for tensor in (first, second) if isinstance(tensor, Tensor)), DType.FLOAT32)
        tensors = condition, self._tensor(first, like), self._tensor(second, like)
        shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
        return self.emit(ops.SelectV2(), tensors, shape, tensors[1].dtype)

    def cast(self, tensor: Tensor, dtype: DType) -> Tensor:
        """Return ``tensor`` as another type.

        Converted like ONNX's Cast and C: a float32 loses its fraction. Returns ``tensor`` itself if it has the type
        already.
        """
        return tensor if tensor.dtype is dtype else self.emit(ops.Cast(), [tensor], tensor.shape, dtype)

    def reduced(
        self, kind: type[ops.Mean | ops.Sum | ops.ReduceMax | ops.ReduceMin], tensor: Tensor, axes: Sequence[int]
    ) -> Tensor:
        """Return ``tensor`` reduced along its stored ``axes``, which stay as dimensions of 1."""
        operator = kind(tuple(sorted(axes)), keep_dims=True)
        return self.emit(operator, [tensor], operator.output_shape(tensor.shape))

    def _tensor(self, number: Tensor | float, dtype: DType) -> Tensor:
        return number if isinstance(number, Tensor) else self.weights("number", np.array(number, dtype.numpy))

    def whole_power(self, x: Tensor, power: int) -> Tensor:
        """Return ``x`` to ``power`` by repeated squaring."""
        if power < 0:
            return self.divide(self.number("one", 1.0), self.whole_power(x, -power))
        if power == 0:
            return self.filled("one", x.shape, 1, x.dtype.numpy)
        # One product for each bit of the exponent instead of one for each power.
        return functools.reduce(self.multiply, self._squares(x, power))

    def _squares(self, x: Tensor, power: int) -> Iterator[Tensor]:
        """Yield ``x`` to each power of two that ``power`` is the sum of."""
        while power:
            if power & 1:
                yield x
            power >>= 1
            x = self.multiply(x, x) if power else x

    def positive_power(self, x: Tensor, power: Tensor | float) -> Tensor:
        """Return ``x`` to ``power`` as exp(power * log(x)): 0 for 0, NaN for negative numbers."""
        return self.unary(ops.Exp(), self.multiply(self.unary(ops.Log(), x), power))

    def log_of_sum_of_exponentials(self, x: Tensor, axes: tuple[int, ...]) -> Tensor:
        """Return log(sum(exp(x))) along the stored ``axes``; the maximum is subtracted first to avoid overflow."""
        greatest = self.reduced(ops.ReduceMax, x, axes)
        # exp of differences from the maximum is at most 1, so that the sum cannot overflow.
        powers = self.unary(ops.Exp(), self.subtract(x, greatest))
        return self.add(self.unary(ops.Log(), self.reduced(ops.Sum, powers, axes)), greatest)
