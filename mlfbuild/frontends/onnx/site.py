"""One node of a file, as the functions that convert operators see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.errors import UnsupportedModelError
from mlfbuild.frontends.onnx.builder import GraphBuilder
from mlfbuild.frontends.onnx.layout import Order, Value, as_onnx
from mlfbuild.frontends.onnx.reader import RawNode
from mlfbuild.graph import Array, DType, GraphError, Operator, Tensor


@dataclass(frozen=True, eq=False)
class Site:
    """A node, the version of ONNX's operators, and the graph that the node becomes a part of."""

    node: RawNode
    opset: int
    builder: GraphBuilder
    known: Mapping[str, Array]
    """The constants of the model by name."""
    find: Callable[[str], Value]
    """Returns the value of a name; constants become tensors of the graph only when asked for."""

    @property
    def name(self) -> str:
        """The name of the first output."""
        return self.node.outputs[0]

    def value(self, index: int = 0) -> Value:
        """Return input ``index``; raises ``GraphError`` where it is absent."""
        value = self.optional(index)
        if value is None:
            raise GraphError(self.node.place, f"input {index} is absent")
        return value

    def optional(self, index: int) -> Value | None:
        """Return input ``index``, ``None`` where it is absent."""
        return self.find(self.node.inputs[index]) if self.has(index) else None

    def has(self, index: int) -> bool:
        """Return whether input ``index`` is there."""
        return index < len(self.node.inputs) and bool(self.node.inputs[index])

    def tensor(self, index: int = 0) -> Tensor:
        """Return input ``index`` as ONNX stores it."""
        value = self.value(index)
        return self.builder.stored(value, as_onnx(value.rank))

    def constant(self, index: int, what: str) -> Array:
        """Return the elements of the constant input ``index``; ``what`` names its meaning in messages."""
        if not self.has(index):
            raise GraphError(self.node.place, f"input {index}, the {what}, is absent")
        name = self.node.inputs[index]
        if name not in self.known:
            raise self.unsupported(f"the {what} {name!r} must be constant")
        return self.known[name]

    def integers(self, name: str, index: int | None = None) -> tuple[int, ...] | None:
        """Return the integers of the attribute ``name`` or, where newer versions have it, of the constant input."""
        if index is not None and self.has(index):
            return tuple(int(value) for value in self.constant(index, name).reshape(-1))
        found = self.node.attributes.get(name)
        if found is None:
            return None
        if not isinstance(found, tuple) or not all(isinstance(value, int) for value in found):
            raise GraphError(self.node.place, f"attribute {name} is not a list of integers")
        return tuple(int(value) for value in found)

    def integer(self, name: str, default: int) -> int:
        """Return the integer attribute ``name``."""
        found = self.node.attributes.get(name, default)
        if not isinstance(found, int):
            raise GraphError(self.node.place, f"attribute {name} is not an integer")
        return found

    def number(self, name: str, default: float) -> float:
        """Return the attribute ``name``, a float."""
        found = self.node.attributes.get(name, default)
        if not isinstance(found, int | float):
            raise GraphError(self.node.place, f"attribute {name} is not a number")
        return float(found)

    def text(self, name: str, default: str) -> str:
        """Return the attribute ``name``, a string."""
        found = self.node.attributes.get(name, default)
        if not isinstance(found, str):
            raise GraphError(self.node.place, f"attribute {name} is not a string")
        return found

    def axis(self, axis: int, rank: int) -> int:
        """Return ``axis`` counted from the front; raises ``GraphError`` where there is no such dimension."""
        if not -rank <= axis < rank:
            raise GraphError(self.node.place, f"there is no dimension {axis} of {rank}")
        return axis % rank

    def axes(self, axes: Sequence[int], rank: int) -> tuple[int, ...]:
        """Return ``axes`` counted from the front, sorted; raises ``GraphError`` where one is there twice."""
        found = sorted(self.axis(axis, rank) for axis in axes)
        if len(set(found)) != len(found):
            raise GraphError(self.node.place, f"the dimensions {list(axes)} name one twice")
        return tuple(found)

    def emit(
        self, operator: Operator, inputs: Sequence[Tensor | None], shape: Sequence[int], dtype: DType | None = None
    ) -> Tensor:
        """Add a node of the graph, whose output has the type of its first input unless ``dtype`` says otherwise."""
        first = inputs[0]
        assert first is not None
        return self.builder.emit(self.name, operator, inputs, shape, dtype or first.dtype)

    def made(self, tensor: Tensor, order: Order | None = None) -> Value:
        """Return ``tensor`` as a value, in ONNX's order unless ``order`` says otherwise."""
        return Value(tensor, as_onnx(len(tensor.shape)) if order is None else order)

    def weights(self, word: str, data: Array) -> Tensor:
        """Add a constant of this node; ``word`` says what it is."""
        return self.builder.constant(f"{self.name}/{word}", np.asarray(data))

    def unsupported(self, reason: str) -> UnsupportedModelError:
        """Return the error for what is sound but not supported at this node."""
        return UnsupportedModelError(f"{self.node.place}: {reason}")
