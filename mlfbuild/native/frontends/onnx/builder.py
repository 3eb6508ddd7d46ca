"""Tensors and nodes of the graph under construction."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.onnx.affine import Quantized
from mlfbuild.native.frontends.onnx.layout import UNSIGNED_OFFSET, Order, Value, as_onnx, moves_data, permutation
from mlfbuild.native.graph import (
    Array,
    ConstantBudget,
    DType,
    Graph,
    GraphError,
    Node,
    Operands,
    Operator,
    OperatorError,
    Quantization,
    Tensor,
    ops,
)
from mlfbuild.native.graph.bases import Movement

MAXIMUM_TENSOR_SIZE = (1 << 31) - 1
"""In bytes; C's int overflows beyond it."""

MAXIMUM_NODES = 1 << 16
"""As many as a TFLite file may have."""

MAXIMUM_DIMENSIONS = 32
"""The most dimensions of an array in numpy before version 2."""


class GraphBuilder:
    """Collects tensors under unique names and the nodes that write them."""

    def __init__(self, reserved: Collection[str], budget: ConstantBudget) -> None:
        """``reserved``: the names of inputs and outputs, which no other tensor may have."""
        self.budget = budget
        """The limit of the constants that operators become."""
        self.renamed: tuple[tuple[str, str], ...] = ()
        """The names of tensors that are outputs, and their names in the graph."""
        self.reported: list[tuple[str, Value]] = []
        """Outputs that the file does not have, such as the number of rows that are filled."""
        self._reserved = set(reserved)
        self._tensors: dict[str, Tensor] = {}
        self._nodes: list[Node] = []
        self._writers: dict[str, Node] = {}
        self._stored: dict[tuple[str, Order], Value] = {}
        self._plain: dict[tuple[str, DType], Tensor] = {}
        self._numbers: dict[str, int] = {}

    def input(self, name: str, shape: Sequence[int], dtype: DType, quantization: Quantization | None = None) -> Value:
        """Add an input of the model.

        It keeps its ``name``, which is reserved. ``shape`` is ONNX's and fixed; raises the errors of ``checked``.
        """
        tensor = replace(checked(name, shape, dtype), quantization=quantization)
        self._tensors[name] = tensor
        return Value(tensor, as_onnx(len(tensor.shape)))

    def without_elements(self, name: str, data: Array) -> Value:
        """Return ``data``, which has no elements, as an output of the model called ``name``."""
        tensor = Tensor(self._unique(name), data.shape, element_type(data), data=data)
        self._tensors[tensor.name] = tensor
        return Value(tensor, as_onnx(data.ndim))

    def input_without_elements(self, name: str, data: Array) -> None:
        """Add an input of the model that no node can read, like ``data``."""
        self._tensors[name] = Tensor(name, data.shape, element_type(data))

    def unsigned_input(self, name: str, shape: Sequence[int], held: Quantization) -> Value:
        """Add a uint8 input of the model and a node that converts it to int8, quantised as ``held``."""
        source = self.input(name, shape, DType.UINT8, _unsigned(held)).tensor
        like = replace(source, dtype=DType.INT8, quantization=held)
        tensor = self.emit(name, ops.Quantize(), [source], like)[0]
        # The caller passes uint8; everything inside computes with int8 that is lower by 128.
        return Value(tensor, as_onnx(len(shape)), DType.UINT8)

    def held_constant(self, name: str, data: Quantized) -> Value | None:
        """Add float32 constants in their quantised form; ``None`` if no tensor can hold it.

        The value is float32 in ONNX's terms, and its tensor int8 or int16. Scales along an axis have no such form;
        converters of layers read them as ``Quantized``.
        """
        held = data.held()
        if held is None:
            return None
        stored, quantization = held
        return Value(self.constant(name, stored, quantization), as_onnx(stored.ndim), DType.FLOAT32)

    def constant(self, name: str, data: Array, quantization: Quantization | None = None) -> Tensor:
        """Add a constant called ``name``; if the name is taken, a number is appended.

        Takes nothing from the budget of constants, because those of the file are free (``Emission.weights`` does).
        Raises ``UnsupportedModelError`` for types and sizes that no tensor has.
        """
        shaped = checked(self._unique(name), data.shape, element_type(data))
        tensor = replace(shaped, data=data, quantization=quantization)
        self._tensors[tensor.name] = tensor
        return tensor

    def report(self, name: str, value: Value) -> None:
        """Add an output that the file does not have; if ``name`` is taken, a number is appended."""
        free = self._unique(name)
        self._reserved.add(free)
        self.reported.append((free, value))

    def emit(self, name: str, operator: Operator, inputs: Sequence[Tensor | None], *likes: Tensor) -> list[Tensor]:
        """Add a node whose outputs have the types and shapes of ``likes``; their names begin with ``name``.

        Raises ``OperatorError`` if the operator cannot compute them.

        The result has the outputs in the order of ``likes``; ``None`` among ``inputs`` is an absent operand.
        """
        # Checked here and not only at the end, so that the message names the node of the file.
        reason = operator.check(Operands(inputs, name), likes)
        if reason is not None:
            raise OperatorError(name, reason)
        # A converter may make many nodes of one, such as a step of a loop.
        if len(self._nodes) == MAXIMUM_NODES:
            raise UnsupportedModelError(
                "model-too-large",
                place=f"tensor {name!r}",
                reason=f"the model becomes more than {MAXIMUM_NODES} operators",
                hint="use a smaller model",
            )
        outputs = []
        for like in likes:
            outputs.append(replace(like, name=self._unique(name)))
            self._tensors[outputs[-1].name] = outputs[-1]
        names = tuple(None if tensor is None else tensor.name for tensor in inputs)
        node = Node(outputs[0].name, operator, names, tuple(tensor.name for tensor in outputs))
        self._nodes.append(node)
        self._writers.update(dict.fromkeys(node.outputs, node))
        return outputs

    def is_rectified(self, tensor: Tensor) -> bool:
        """Return whether no element of the quantised ``tensor`` represents a negative number, as far as nodes show."""
        # Backwards through nodes that only select elements, to the operator that made the values.
        while (node := self._writers.get(tensor.name)) is not None:
            if isinstance(node.operator, ops.Relu | ops.Relu6):
                return True
            # These only select elements, so that the sign is that of their input.
            if not isinstance(node.operator, ops.MaxPool2D | Movement):
                return False
            source = self._tensors[node.inputs[0] or ""]
            # CONCATENATION is a movement of several tensors, not all of which need be rectified.
            if source.quantization != tensor.quantization or len(node.inputs) > 1:
                return False
            tensor = source
        return False

    def moved(self, operator: Operator, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        """Add a node that moves the elements of ``tensor`` and computes none.

        The quantisation stays, since no number changes.
        """
        like = replace(checked(tensor.name, shape, tensor.dtype), quantization=tensor.quantization)
        return self.emit(tensor.name, operator, [tensor], like)[0]

    def reshaped(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        """Return ``tensor`` with another shape and the same elements in the same order.

        A constant becomes another constant, everything else a RESHAPE; ``tensor`` itself is returned if it has the
        shape already. The quantisation stays.
        """
        if tensor.shape == tuple(shape):
            return tensor
        if tensor.data is not None:
            return self.constant(tensor.name, tensor.data.reshape(shape), tensor.quantization)
        return self.moved(ops.Reshape(), tensor, shape)

    def stored(self, value: Value, order: Order) -> Tensor:
        """Return the tensor of ``value`` with its dimensions in ``order``; it is transposed only once.

        ``order`` names ONNX's dimension of each stored one. A transposition that moves no element becomes a RESHAPE,
        and that of a constant is computed.
        """
        if value.order == order:
            return value.tensor
        # Two values may be one tensor with different meanings of its dimensions.
        # The wanted permutation is part of the key, since one tensor may be needed in several orders.
        key = (value.tensor.name, permutation(value.order, order))
        if key not in self._stored:
            self._stored[key] = Value(self._transposed(value.tensor, key[1]), order)
        return self._stored[key].tensor

    def _transposed(self, tensor: Tensor, axes: Order) -> Tensor:
        shape = [tensor.shape[axis] for axis in axes]
        if tensor.data is not None:
            return self.constant(tensor.name, np.transpose(tensor.data, axes), tensor.quantization)
        # Dimensions of 1 may change places without moving an element.
        if not moves_data(tensor.shape, axes):
            return self.reshaped(tensor, shape)
        return self.moved(ops.Transpose(axes), tensor, shape)

    def plain(self, value: Value) -> Value:
        """Return ``value`` in ONNX's own type; it is converted only once.

        A value that is held quantised becomes float32 by a DEQUANTIZE, uint8 that is held as int8 becomes uint8. A
        value that has its own type already is returned as it is.
        """
        if value.plain:
            return value
        key = (value.tensor.name, value.dtype)
        if key not in self._plain:
            self._plain[key] = self._as_declared(value)
        return Value(self._plain[key], value.order)

    def _as_declared(self, value: Value) -> Tensor:
        """Return the tensor of ``value``, which is float32 or uint8, in that type."""
        source, quantization = value.tensor, value.tensor.quantization
        if value.dtype is DType.FLOAT32:
            like = checked(source.name, source.shape, DType.FLOAT32)
            return self.emit(source.name, ops.Dequantize(), [source], like)[0]
        held = None if quantization is None else _unsigned(quantization)
        like = replace(checked(source.name, source.shape, DType.UINT8), quantization=held)
        return self.emit(source.name, ops.Quantize(), [source], like)[0]

    def nodes_since(self, count: int) -> tuple[list[Node], list[Tensor]]:
        """Return the nodes after the first ``count``, and the tensors that they write.

        ``count`` is what the property of that name returned before a piece of the network was converted.
        """
        nodes = self._nodes[count:]
        return nodes, [self._tensors[name] for node in nodes for name in node.outputs]

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self._nodes)

    def graph(self, name: str, inputs: Sequence[str], outputs: Sequence[tuple[str, Value]]) -> Graph:
        """Return the graph, whose outputs have ONNX's names, types and order of dimensions.

        Inputs keep their names; outputs get those of the file, if necessary by a RESHAPE.
        """
        # Only here, because outputs are known under the names of their tensors until the last node is converted.
        names: dict[str, str] = {}
        labels: dict[str, tuple[str, ...]] = {}
        for wanted, value in outputs:
            tensor = self.stored(self.plain(value), as_onnx(value.rank))
            if wanted in inputs or names.get(tensor.name) == wanted:  # an input, or one tensor that is two outputs
                continue
            # Two outputs that are one tensor, inputs and constants keep their tensor: a RESHAPE makes another one.
            if tensor.name in names or tensor.name in inputs or (tensor.constant and tensor.elements):  # keeps its name
                tensor = self.moved(ops.Reshape(), tensor, tensor.shape)
            names[tensor.name] = wanted
            labels[tensor.name] = value.labels
        self.renamed = tuple(names.items())
        nodes = [
            Node(names.get(node.name, node.name), node.operator,
                 tuple(None if name is None else names.get(name, name) for name in node.inputs),
                 tuple(names.get(output, output) for output in node.outputs))
            for node in self._nodes
        ]  # fmt: skip
        used = {*inputs, *names.values()}.union(*((*node.inputs, *node.outputs) for node in nodes))
        tensors = (
            replace(each, name=names.get(each.name, each.name), labels=labels.get(each.name, ()))
            for each in self._tensors.values()
        )
        return Graph(name, [t for t in tensors if t.name in used], nodes, inputs, [wanted for wanted, _ in outputs])

    def _unique(self, name: str) -> str:
        unique = name or "tensor"
        while unique in self._tensors or unique in self._reserved:
            # Each base name has a counter, so that thousands of equal names do not take quadratic time.
            self._numbers[name] = self._numbers.get(name, 1) + 1
            unique = f"{name}_{self._numbers[name]}"
        return unique


def _unsigned(held: Quantization) -> Quantization:
    return replace(held, zero_points=tuple(zero + UNSIGNED_OFFSET for zero in held.zero_points))


def element_type(data: Array) -> DType:
    """Return the type of the elements of ``data``; raises ``UnsupportedModelError`` for types that no tensor has."""
    try:
        return DType(data.dtype.name)
    except ValueError:
        raise UnsupportedModelError(
            "type-unsupported", reason=f"constants of {data.dtype.name} are not supported", hint="store them as float32"
        ) from None


def checked(name: str, shape: Sequence[int], dtype: DType) -> Tensor:
    """Return a tensor that C can hold; raises ``GraphError`` or ``UnsupportedModelError``.

    ``GraphError`` is for shapes that contradict ONNX (a negative dimension), ``UnsupportedModelError`` for tensors that
    are valid in ONNX: too many dimensions, no elements, or more than 2 GiB.
    """
    if any(size < 0 for size in shape):
        raise GraphError(f"tensor {name!r}", f"the shape {list(shape)} has a negative dimension")
    if len(shape) > MAXIMUM_DIMENSIONS:
        raise UnsupportedModelError(
            "tensor-rank-unsupported",
            place=f"tensor {name!r}",
            reason=f"{len(shape)} dimensions are not supported",
            hint=f"use at most {MAXIMUM_DIMENSIONS}",
        )
    if 0 in shape:
        raise UnsupportedModelError(
            "tensor-empty",
            place=f"tensor {name!r}",
            reason=f"the shape {list(shape)} has no elements, which is not supported",
        )
    if math.prod(shape) * dtype.size > MAXIMUM_TENSOR_SIZE:
        raise UnsupportedModelError(
            "model-too-large",
            place=f"tensor {name!r}",
            reason=f"{dtype.value}{list(shape)} takes more than 2 GiB",
            hint="use a smaller model",
        )
    # NumPy's own integers would be printed differently in messages.
    return Tensor(name, tuple(int(size) for size in shape), dtype)
