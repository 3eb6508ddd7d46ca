"""Run a graph in numpy, and find where another run of it first went astray."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mlfbuild.graph.types import Array, DType, Graph, Node, Tensor

FLOAT_TOLERANCE = 1e-5
"""Greatest difference of a float32 tensor's elements, as a part of its greatest magnitude."""


def evaluate(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return the value of every tensor of ``graph``, by name, for ``inputs`` by tensor name.

    Raises ``ValueError`` where an input is absent or has another shape or dtype than its tensor.
    """
    values = {tensor.name: tensor.data for tensor in graph.tensors.values() if tensor.data is not None}
    for name in graph.inputs:
        values[name] = _checked(graph.tensor(name), inputs.get(name))
    for node in graph.nodes:
        operands = [None if name is None else values[name] for name in node.inputs]
        results = node.operator.reference(graph.inputs_of(node), operands, graph.outputs_of(node))
        values.update(zip(node.outputs, results, strict=True))
    return values


def _checked(tensor: Tensor, value: Array | None) -> Array:
    if value is None:
        raise ValueError(f"input {tensor.name!r} has no value")
    if value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
        raise ValueError(f"input {tensor.name!r} is {value.dtype}{list(value.shape)}, should be {tensor}")
    return value


@dataclass(frozen=True)
class Difference:
    """The first tensor, in order of execution, whose value is not the expected one."""

    node: Node
    tensor: Tensor
    count: int
    """How many elements differ."""
    index: tuple[int, ...]
    """The first of them (integers), or the one that differs most (float32)."""
    expected: float
    got: float

    def __str__(self) -> str:
        return (
            f"{self.node.operator.name} {self.node.name!r}: {self.count} of {self.tensor.elements} elements differ, "
            f"at {list(self.index)} expected {self.expected}, got {self.got}"
        )


def first_difference(graph: Graph, expected: Mapping[str, Array], got: Mapping[str, Array]) -> Difference | None:
    """Return where ``got`` first differs from ``expected``, or ``None``.

    Both map tensor names to values; tensors that one of them lacks are passed over. Integers must be equal, float32
    within ``FLOAT_TOLERANCE``.
    """
    for node in graph.nodes:
        for tensor in graph.outputs_of(node):
            if tensor.name in expected and tensor.name in got:
                difference = _compare(node, tensor, expected[tensor.name], got[tensor.name])
                if difference is not None:
                    return difference
    return None


def _compare(node: Node, tensor: Tensor, expected: Array, got: Array) -> Difference | None:
    distance = np.abs(expected.astype(np.float64) - got)
    limit = FLOAT_TOLERANCE * np.abs(expected).max() if tensor.dtype is DType.FLOAT32 else 0
    wrong = ~(distance <= limit)  # not >, so that nan is wrong
    if not wrong.any():
        return None
    worst = np.argmax(distance) if tensor.dtype is DType.FLOAT32 else np.argmax(wrong)
    index = tuple(int(i) for i in np.unravel_index(worst, tensor.shape))
    return Difference(node, tensor, int(wrong.sum()), index, expected[index].item(), got[index].item())
