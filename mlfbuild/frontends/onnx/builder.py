"""Tensors and nodes of the graph under construction."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from mlfbuild.errors import UnsupportedModelError
from mlfbuild.frontends.onnx.layout import Order, Value, as_onnx, moves_data, permutation
from mlfbuild.graph import Array, DType, Graph, GraphError, Node, Operator, Tensor, ops

MAXIMUM_TENSOR_SIZE = (1 << 31) - 1
"""Bytes; no microcontroller comes near, and beyond it C's int overflows."""


class GraphBuilder:
    """Collects tensors under unique names and the nodes that write them."""

    def __init__(self, reserved: Collection[str]) -> None:
        """``reserved`` are the names of inputs and outputs, which no other tensor gets."""
        self._reserved = frozenset(reserved)
        self._tensors: dict[str, Tensor] = {}
        self._nodes: list[Node] = []
        self._stored: dict[tuple[str, Order], Value] = {}

    def input(self, name: str, shape: Sequence[int], dtype: DType) -> Value:
        """Add an input of the model."""
        tensor = checked(name, shape, dtype)
        self._tensors[name] = tensor
        return Value(tensor, as_onnx(len(tensor.shape)))

    def constant(self, name: str, data: Array) -> Tensor:
        """Add a constant, called ``name`` as far as that is free."""
        tensor = replace(checked(self._unique(name), data.shape, element_type(data)), data=data.copy(order="C"))
        self._tensors[tensor.name] = tensor
        return tensor

    def emit(
        self, name: str, operator: Operator, inputs: Sequence[Tensor | None], shape: Sequence[int], dtype: DType
    ) -> Tensor:
        """Add a node that writes one tensor, called ``name`` as far as that is free."""
        output = checked(self._unique(name), shape, dtype)
        self._tensors[output.name] = output
        names = tuple(None if tensor is None else tensor.name for tensor in inputs)
        self._nodes.append(Node(output.name, operator, names, (output.name,)))
        return output

    def reshaped(self, tensor: Tensor, shape: Sequence[int]) -> Tensor:
        """Return ``tensor`` with another shape and the same elements in the same order."""
        if tensor.shape == tuple(shape):
            return tensor
        if tensor.data is not None:
            return self.constant(tensor.name, tensor.data.reshape(shape))
        return self.emit(tensor.name, ops.Reshape(), [tensor], shape, tensor.dtype)

    def stored(self, value: Value, order: Order) -> Tensor:
        """Return the tensor of ``value`` with its dimensions in ``order``, transposed once for all."""
        if value.order == order:
            return value.tensor
        key = (value.tensor.name, order)
        if key not in self._stored:
            self._stored[key] = Value(self._transposed(value.tensor, permutation(value.order, order)), order)
        return self._stored[key].tensor

    def _transposed(self, tensor: Tensor, axes: Order) -> Tensor:
        shape = [tensor.shape[axis] for axis in axes]
        if tensor.data is not None:
            return self.constant(tensor.name, np.transpose(tensor.data, axes))
        if not moves_data(tensor.shape, axes):
            return self.reshaped(tensor, shape)
        return self.emit(tensor.name, ops.Transpose(axes), [tensor], shape, tensor.dtype)

    def graph(self, name: str, inputs: Sequence[str], outputs: Sequence[tuple[str, Value]]) -> Graph:
        """Return the graph, whose outputs have ONNX's names and order of dimensions."""
        names: dict[str, str] = {}
        for wanted, value in outputs:
            tensor = self.stored(value, as_onnx(value.rank))
            if tensor.name in names or tensor.name in inputs or tensor.constant:  # has a name of its own to keep
                tensor = self.emit(wanted, ops.Reshape(), [tensor], tensor.shape, tensor.dtype)
            names[tensor.name] = wanted
        nodes = [
            Node(names.get(node.name, node.name), node.operator, _renamed(node.inputs, names),
                 tuple(names.get(output, output) for output in node.outputs))
            for node in self._nodes
        ]  # fmt: skip
        used = {*inputs, *names.values()}.union(*((*node.inputs, *node.outputs) for node in nodes))
        tensors = (replace(tensor, name=names.get(tensor.name, tensor.name)) for tensor in self._tensors.values())
        return Graph(name, [t for t in tensors if t.name in used], nodes, inputs, [wanted for wanted, _ in outputs])

    def _unique(self, name: str) -> str:
        taken = {*self._tensors, *self._reserved}
        unique, number = name or "tensor", 1
        while unique in taken:
            number += 1
            unique = f"{name}_{number}"
        return unique


def _renamed(inputs: Sequence[str | None], names: dict[str, str]) -> tuple[str | None, ...]:
    return tuple(None if name is None else names.get(name, name) for name in inputs)


def element_type(data: Array) -> DType:
    """Return the type of the elements of ``data``; raises ``UnsupportedModelError`` for those that no tensor has."""
    try:
        return DType(data.dtype.name)
    except ValueError:
        raise UnsupportedModelError(f"a constant of {data.dtype.name} is not supported; store it as float32") from None


def checked(name: str, shape: Sequence[int], dtype: DType) -> Tensor:
    """Return a tensor that C can hold; raises ``GraphError`` or ``UnsupportedModelError``."""
    if any(size < 0 for size in shape):
        raise GraphError(f"tensor {name!r}", f"the shape {list(shape)} has a negative dimension")
    if 0 in shape:
        raise UnsupportedModelError(f"tensor {name!r} has no elements (shape {list(shape)}), which is not supported")
    if math.prod(shape) * dtype.size > MAXIMUM_TENSOR_SIZE:
        raise UnsupportedModelError(f"tensor {name!r} {dtype.value}{list(shape)} takes more than 2 GiB")
    return Tensor(name, tuple(int(size) for size in shape), dtype)
