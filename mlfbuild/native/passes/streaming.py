"""Turn a network of a window into one that receives a row of it per run, for the option ``stream``.

Firmware that listens moves a window over its features, such as 30 rows of 40, by one row per run, so that the layers
compute nearly all of their rows a second time. The network here computes each row once and keeps it::

    x[1,30,1,40] -> DEPTHWISE_CONV_2D 3x1 -> [1,28,1,40] -> CONV_2D 1x1 -> [1,28,1,128] -> ... -> y[1,3]
    x[1,1,1,40] -> last 3 rows [1,3,1,40] -> DEPTHWISE_CONV_2D 3x1 -> [1,1,1,40] -> CONV_2D 1x1 -> ... -> y[1,3]

Rules:

1. A tensor has rows if its newest row depends on the newest rows of the input alone, as the row before depended on the
   rows before: convolutions and pools along time without stride and padding, operators on single elements or within
   rows, and changes of shape that keep the rows; other operands are constant. Its node then computes only the newest
   row, from as many rows as its filter covers.
2. Any other operator that reads a tensor with rows receives all of them from a state, and nothing behind it changes.
   So every network is right, and one with padding along time gains only what is before the padding.
3. Before the first run the window has zeros. The states begin with the rows that this window has in each layer.

The integers are therefore those of the network of the window, in every run. The pass runs before all others, which know
nothing of it: a state is advanced by the node that ``shift_states`` makes of the same states in a file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.graph import Array, Graph, Node, State, Tensor, evaluate
from mlfbuild.native.graph.bases import Binary, Unary, Window
from mlfbuild.native.graph.ops import (
    AveragePool2D,
    Conv2D,
    DepthwiseConv2D,
    Dequantize,
    FullyConnected,
    MaxPool2D,
    Quantize,
    Reshape,
    Shift,
    Softmax,
)

TIME = 1
"""The dimension of the input that a run advances by one."""


def streamed(graph: Graph) -> Graph:
    """Return the network that receives the newest row of the input of ``graph``, along dimension 1, in each run.

    An output that has rows is the newest one. Raises ``UnsupportedModelError`` if ``graph`` has another number of
    inputs than one, states, or an input without several rows.
    """
    names = graph.inputs
    if len(names) != 1 or graph.states or graph.tensor(names[0]).shape[TIME : TIME + 1] in ((), (0,), (1,)):
        raise UnsupportedModelError(
            "not-a-window",
            place=f"{graph.name}: options.stream",
            reason="needs a network without states whose only input has several rows, in dimension 1",
            hint="remove it",
        )
    streaming = _Streaming(graph, evaluate(graph, {names[0]: _silence(graph.tensor(names[0]))}))
    streaming.rows[names[0]] = TIME
    streaming.fixed.update(tensor.name for tensor in graph.tensors.values() if tensor.constant)
    for node in graph.nodes:
        streaming.add(node)
    return streaming.result()


def windows_of(rows: Array, window: Tensor) -> Array:
    """Return the window after each of consecutive runs, [runs, *window.shape], for the rows that they receive.

    ``rows`` is [runs, *shape of a row], of the type of ``window``, which has zeros before the first run. A network that
    is not ``streamed`` gives the same results for these windows.
    """
    history = np.concatenate([_silence(window), *rows], axis=TIME)
    size = window.shape[TIME]
    return np.stack([history.take(range(run + 1, run + 1 + size), TIME) for run in range(len(rows))])


def _silence(window: Tensor) -> Array:
    """Return a window of zeros."""
    return np.full(window.shape, 0 if window.quantization is None else window.affine.zero_point, window.dtype.numpy)


@dataclass
class _Streaming:
    graph: Graph
    silent: Mapping[str, Array]
    """The value of every tensor for a window of zeros."""
    rows: dict[str, int] = field(default_factory=dict)
    """The tensors that have rows, of which a run computes the newest, and the dimension of the rows."""
    fixed: set[str] = field(default_factory=set)
    """The constants, and what is computed of them."""
    nodes: list[Node] = field(default_factory=list)
    kept: dict[str, Tensor] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    """States by the name of their new value."""
    stop: Node | None = None
    """The first node that needs all rows."""

    def add(self, node: Node) -> None:
        """Add ``node``, and before it the states that it reads."""
        if all(name is None or name in self.fixed for name in node.inputs):
            self.fixed.update(node.outputs)
        found = self._by_row(node)
        if found is None:
            if any(name in self.rows for name in node.inputs):
                self.stop = self.stop or node
            self.nodes.append(self._reading(node, None))
            return
        span, axis = found
        self.nodes.append(self._reading(node, span))
        # A single row is the whole tensor, and nothing behind it has to know.
        if self.graph.tensor(node.outputs[0]).shape[axis] > 1:
            self.rows[node.outputs[0]] = axis

    def result(self) -> Graph:
        newest = {name: self._cut(self.graph.tensor(name), 1) for name in self.rows}
        tensors = {**self.graph.tensors, **newest, **self.kept}
        graph, states = self.graph, list(self.states.values())
        made = Graph(graph.name, list(tensors.values()), self.nodes, graph.inputs, graph.outputs, states)
        notes = list(graph.notes)
        if self.stop is not None:
            notes.append(f"stream: {self.stop.place} and the operators behind it work on all rows in each run")
        return made.with_notes(notes, litert=graph.litert)

    def _cut(self, tensor: Tensor, count: int) -> Tensor:
        """Return ``tensor`` with ``count`` rows."""
        axis = self.rows[tensor.name]
        return replace(tensor, shape=(*tensor.shape[:axis], count, *tensor.shape[axis + 1 :]))

    def _by_row(self, node: Node) -> tuple[int, int] | None:
        """Return the rows that ``node`` needs for a row, and the dimension of its rows, or ``None``: it needs all."""
        having = [name for name in node.inputs if name in self.rows]
        others = {name for name in node.inputs if name is not None and name not in self.rows}
        # A tensor that depends on the whole window, such as that of a gate, had other values for the rows before.
        if not having or len(node.outputs) != 1 or not others <= self.fixed:
            return None
        source, output, axis = self.graph.tensor(having[0]), self.graph.tensor(node.outputs[0]), self.rows[having[0]]
        operator, inputs = node.operator, self.graph.inputs_of(node)
        if isinstance(operator, Conv2D | DepthwiseConv2D) and having == [node.inputs[0]]:
            span = _span(operator.window(inputs[1]), axis)
        elif isinstance(operator, AveragePool2D | MaxPool2D):
            span = _span(operator.window(), axis)
        elif isinstance(operator, Reshape):
            at = _axis_of_rows(source.shape, axis, output.shape)
            return None if at is None else (1, at)
        elif isinstance(operator, FullyConnected | Softmax) and having == [node.inputs[0]]:
            span = 1 if axis < len(source.shape) - 1 and output.shape[:-1] == source.shape[:-1] else None
        elif isinstance(operator, Unary | Quantize | Dequantize):
            span = 1
        elif isinstance(operator, Binary):
            span = 1 if self._aligned(node, axis, output) else None
        else:
            span = None
        return None if span is None else (span, axis)

    def _aligned(self, node: Node, axis: int, output: Tensor) -> bool:
        """Return whether each operand has the rows of ``output``, or one value for all of them."""
        for name in node.inputs:
            shape = self.graph.tensor(str(name)).shape
            # Shapes are broadcast from their ends, so that a dimension is counted from there.
            at = axis - len(output.shape) + len(shape)
            size = shape[at] if at >= 0 else 1
            if size != (output.shape[axis] if name in self.rows else 1) or self.rows.get(str(name), at) != at:
                return False
        return True

    def _reading(self, node: Node, span: int | None) -> Node:
        """Return ``node``, which reads the newest ``span`` rows of each input with rows; ``None`` for all of them."""
        inputs = (self._last(name, span) if name in self.rows else name for name in node.inputs)
        return replace(node, inputs=tuple(inputs))

    def _last(self, name: str | None, span: int | None) -> str:
        tensor = self.graph.tensor(str(name))
        axis = self.rows[tensor.name]
        count = tensor.shape[axis] if span is None else span
        if count == 1:
            return tensor.name
        before, after = f"{tensor.name} (last {count} before)", f"{tensor.name} (last {count})"
        if after not in self.states:
            rows = replace(self._cut(tensor, count), name=after)
            self.kept |= {before: replace(rows, name=before), after: rows}
            # The rows that a window of zeros would have left behind.
            initial = self.silent[tensor.name].take(range(tensor.shape[axis] - count, tensor.shape[axis]), axis)
            self.states[after] = State(before, after, initial)
            self.nodes.append(Node(after, Shift(axis), (before, tensor.name), (after,)))
        return after


def _span(window: Window, axis: int) -> int | None:
    """Return the rows under a window that moves by single rows inside the image, else ``None``."""
    at = axis - 1
    if at not in (0, 1) or window.stride[at] != 1 or window.padding[at] != (0, 0):
        return None
    return window.reach[at]


def _axis_of_rows(shape: tuple[int, ...], axis: int, new: tuple[int, ...]) -> int | None:
    """Return the dimension of ``new`` with the rows of ``shape`` along ``axis``, if each of them stays together."""
    for at, size in enumerate(new):
        # With equally many elements before it, a row of the one is a row of the other.
        if size == shape[axis] and math.prod(new[:at]) == math.prod(shape[:axis]):
            return at
    return None
