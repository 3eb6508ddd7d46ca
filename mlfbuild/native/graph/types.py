"""Tensor, Node and Graph: frozen values that are checked on construction.

A ``Graph`` is a list of nodes in the order of execution. Nodes name the tensors they read and write; every tensor is
written at most once (single assignment). The constructor checks this, and the shape and type rules of each operator, so
other code can rely on them.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from mlfbuild.native.graph.operator import Operator

Array = npt.NDArray[Any]

_LONGEST_NAME = 160
"""Characters of a tensor's name in messages."""


class GraphError(ValueError):
    """A graph breaks a rule; ``where`` names the node or tensor."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where = where
        self.reason = reason

    def __reduce__(self) -> tuple[type[GraphError], tuple[str, str]]:
        return type(self), (self.where, self.reason)


class OperatorError(GraphError):
    """The tensors of a node contradict the rules of its operator; the structure of the graph is valid."""


class DType(enum.Enum):
    """Element types; the value is numpy's name."""

    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    INT64 = "int64"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT32 = "float32"
    BOOL = "bool"

    @property
    def numpy(self) -> np.dtype[Any]:
        """The numpy dtype."""
        return np.dtype(self.value)

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return self.numpy.itemsize


UNSIGNED = (DType.UINT32, DType.UINT64)
"""The types that only CAST and operators of signal processing use."""

EVERY = tuple(dtype for dtype in DType if dtype not in (DType.UINT16, *UNSIGNED))
"""The types of operators that only move elements; CAST converts uint16, which only ONNX files have."""


@dataclass(frozen=True)
class Quantization:
    """Affine quantisation: real = scale * (stored - zero point), as in TFLite's specification.

    One scale and zero point for the tensor, or one for each index of dimension ``axis`` (per channel).
    """

    scales: tuple[float, ...]
    zero_points: tuple[int, ...]
    axis: int = 0

    def __post_init__(self) -> None:
        if not self.scales or len(self.scales) != len(self.zero_points):
            raise GraphError("quantisation", f"{len(self.scales)} scales and {len(self.zero_points)} zero points")
        if not all(math.isfinite(scale) and scale > 0 for scale in self.scales):
            raise GraphError("quantisation", "every scale must be a positive number")

    @property
    def per_channel(self) -> bool:
        """Whether there is more than one scale."""
        return len(self.scales) > 1

    @property
    def scale(self) -> float:
        """The scale of a per-tensor quantisation (a float32 value); raises ``ValueError`` for per-channel ones."""
        (scale,) = self.scales
        return scale

    @property
    def zero_point(self) -> int:
        """The zero point of a per-tensor quantisation; raises ``ValueError`` for per-channel ones."""
        (zero_point,) = self.zero_points
        return zero_point


@dataclass(frozen=True, eq=False)
class Tensor:
    """A value of the network: a name, a static shape (row-major, NHWC for images), a type, perhaps constant data.

    Only inputs and outputs of a network may have no elements: no node reads or writes them, and such an output is
    constant.
    """

    name: str
    shape: tuple[int, ...]
    dtype: DType
    quantization: Quantization | None = None
    data: Array | None = None
    labels: tuple[str, ...] = ()
    """For an output: the texts that its integers are positions of, or the names of its last dimension."""

    def __post_init__(self) -> None:
        if not self.name:
            raise GraphError("tensor", "has no name")
        if any(size < 0 for size in self.shape):
            raise GraphError(f"tensor {self.name!r}", f"shape {list(self.shape)} has a dimension below 0")
        self._check_quantization()
        if self.data is not None:
            self._check_data(self.data)

    def _check_quantization(self) -> None:
        quantization = self.quantization
        if quantization is None or not quantization.per_channel:
            return
        if not 0 <= quantization.axis < len(self.shape) or self.shape[quantization.axis] != len(quantization.scales):
            raise GraphError(
                f"tensor {self.name!r}",
                f"{len(quantization.scales)} scales do not fit dimension {quantization.axis} of {list(self.shape)}",
            )

    def _check_data(self, data: Array) -> None:
        if data.shape != self.shape or data.dtype != self.dtype.numpy:
            raise GraphError(
                f"tensor {self.name!r}",
                f"holds {data.dtype}{list(data.shape)}, declared {self.dtype.value}{list(self.shape)}",
            )
        if self.dtype is DType.BOOL and data.view(np.uint8).max(initial=0) > 1:
            raise GraphError(f"tensor {self.name!r}", "holds a byte that is neither false (0) nor true (1)")
        data.setflags(write=False)

    @property
    def elements(self) -> int:
        """Number of elements (1 for a scalar)."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Size in bytes, without gaps between rows."""
        return self.elements * self.dtype.size

    @property
    def constant(self) -> bool:
        """Whether the value is known at compile time."""
        return self.data is not None

    def __str__(self) -> str:
        name = self.name if len(self.name) <= _LONGEST_NAME else f"{self.name[:_LONGEST_NAME]}..."
        return f"{name!r} {self.dtype.value}{list(self.shape)}"


@dataclass(frozen=True)
class Node:
    """One operator applied to tensors, named by tensor names; an absent optional input is ``None``."""

    name: str
    operator: Operator
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class State:
    """A value that a streaming network keeps from one run to the next; single assignment requires two tensors."""

    before: str
    """The tensor with the value of the previous run; on the first run, ``initial``."""
    after: str
    """The tensor whose value is kept for the next run."""
    initial: Array
    """The initial value, with the shape and dtype of both tensors."""


class Graph:
    """A network, checked on construction.

    ``tensors`` maps names to tensors, ``nodes`` are in order of execution, ``inputs`` and ``outputs`` are tensor
    names in call order, ``states`` are kept between runs. Raises ``GraphError`` if a name is not a tensor, a tensor is
    written twice or read before it is written (as in every cycle), or the rules of an operator are broken.
    """

    def __init__(
        self,
        name: str,
        tensors: Sequence[Tensor],
        nodes: Sequence[Node],
        inputs: Sequence[str],
        outputs: Sequence[str],
        states: Sequence[State] = (),
        notes: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.nodes = tuple(nodes)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.states = tuple(states)
        self.notes = tuple(notes)
        """What a user should know about this network, such as operators that run in float32 in a quantised one."""
        self.litert = False
        """Whether the numbers are those of LiteRT, because TensorFlow Lite Micro does not run this network."""
        named: dict[str, Tensor] = {}
        for tensor in tensors:
            if tensor.name in named:
                raise GraphError(f"tensor {tensor.name!r}", "is declared twice")
            named[tensor.name] = tensor
        self.tensors: Mapping[str, Tensor] = MappingProxyType(named)
        self._check()

    def with_notes(self, notes: Sequence[str], *, litert: bool = False) -> Graph:
        """Return this graph, with ``notes``; ``litert`` marks one with the numbers of LiteRT."""
        other = copy(self)
        other.notes = tuple(notes)
        other.litert = self.litert or litert
        return other

    @property
    def sources(self) -> tuple[str, ...]:
        """The tensors that have a value before any node runs: inputs and states."""
        return self.inputs + tuple(state.before for state in self.states)

    @property
    def results(self) -> tuple[str, ...]:
        """The tensors whose values are needed after all nodes ran: outputs and states."""
        return self.outputs + tuple(state.after for state in self.states)

    def tensor(self, name: str) -> Tensor:
        """Return the tensor called ``name``; raises ``KeyError``."""
        return self.tensors[name]

    def inputs_of(self, node: Node) -> tuple[Tensor | None, ...]:
        """Return the tensors that ``node`` reads, ``None`` for absent optional ones."""
        return tuple(None if name is None else self.tensors[name] for name in node.inputs)

    def outputs_of(self, node: Node) -> tuple[Tensor, ...]:
        """Return the tensors that ``node`` writes."""
        return tuple(self.tensors[name] for name in node.outputs)

    def readers(self, name: str) -> tuple[Node, ...]:
        """Return the nodes that read the tensor ``name``, in order."""
        return tuple(self._readers.get(name, ()))

    @cached_property
    def _readers(self) -> Mapping[str, Sequence[Node]]:
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            for name in dict.fromkeys(node.inputs):
                if name is not None:
                    found.setdefault(name, []).append(node)
        return found

    @cached_property
    def constants(self) -> tuple[Tensor, ...]:
        """The constant tensors that a node reads, or that are outputs or states, in order of first use."""
        return tuple(tensor for tensor in self._used() if tensor.constant and tensor.elements)

    def _used(self) -> Iterator[Tensor]:
        seen = set()
        for name in (*(name for node in self.nodes for name in node.inputs if name is not None), *self.results):
            if name not in seen:
                seen.add(name)
                yield self.tensors[name]

    def _check(self) -> None:
        where = f"graph {self.name!r}"
        for kind, names in (("input", self.inputs), ("output", self.outputs), ("state", self.sources + self.results)):
            for name in names:
                if name not in self.tensors:
                    raise GraphError(where, f"{kind} {name!r} is not a tensor")
        written = set(self.sources)
        if len(written) != len(self.sources):
            raise GraphError(where, "names an input or a state twice")
        for name in self.sources:
            if self.tensors[name].constant:
                raise GraphError(f"tensor {name!r}", "is an input or a state and constant")
        for node in self.nodes:
            self._check_node(node, written)
        for name in self.results:
            if name not in written and not self.tensors[name].constant:
                raise GraphError(where, f"nothing writes the output {name!r}")
        for state in self.states:
            self._check_state(state)

    def _check_state(self, state: State) -> None:
        before, after = self.tensors[state.before], self.tensors[state.after]
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            raise GraphError(f"state {before}", f"is left as {after}")
        if (state.initial.shape, state.initial.dtype) != (before.shape, before.dtype.numpy):
            raise GraphError(f"state {before}", f"begins as {state.initial.dtype}{list(state.initial.shape)}")

    def _check_node(self, node: Node, written: set[str]) -> None:
        where = f"{node.operator.name} {node.name!r}"
        for name in (*node.inputs, *node.outputs):
            if name is not None and name not in self.tensors:
                raise GraphError(where, f"{name!r} is not a tensor")
        for name in (*node.inputs, *node.outputs):
            if name is not None and not self.tensors[name].elements:
                raise GraphError(where, f"{name!r} has no elements")
        for name in node.inputs:
            if name is not None and name not in written and not self.tensors[name].constant:
                raise GraphError(where, f"reads {name!r} before anything wrote it (a cycle, or nodes out of order)")
        for name in node.outputs:
            if name in written or self.tensors[name].constant:
                raise GraphError(where, f"writes {name!r}, which already has a value")
            written.add(name)
        reason = node.operator.check(self.inputs_of(node), self.outputs_of(node))
        if reason is not None:
            raise OperatorError(where, reason)
