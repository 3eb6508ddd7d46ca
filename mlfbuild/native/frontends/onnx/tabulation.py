"""Replace operators that compute an int8 element from one int8 element by a table of 256 bytes, and int16 likewise.

An example is x * HardSigmoid(x) in a quantised network: its Dequantize, Mul, Add, Maximum, Minimum, Quantize and Mul
work element by element, and all that they read is one int8 tensor and constant numbers. The table has the results of
their own arithmetic, so no number changes, and one lookup replaces all of them:

    x (int8) -> DEQUANTIZE -> MUL 1/6 -> ADD 0.5 -> MAXIMUM -> MINIMUM -> QUANTIZE -> MUL x -> y (int8)
    x (int8) -> LOOKUP -> y (int8)

The table of int16 has every 128th value, and the kernel interpolates; it is used if all 65,536 results are within two
steps of those of the operators. Operators with another result that is still needed stay, as do those that move elements
or combine two tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from mlfbuild.native.graph import Array, DType, Graph, Node, Operands, Tensor, look_up, ops
from mlfbuild.native.graph.bases import Binary, Unary

_ELEMENTWISE = (Unary, Binary, ops.Quantize, ops.Dequantize, ops.Cast, ops.SelectV2)
_FUSED = (ops.Relu, ops.Quantize)
"""Operators that the compiler fuses into a layer, or that take no longer than a lookup."""


_TABULATED = (DType.INT8, DType.INT16)
_STEP = 128
"""Between two entries of the table of int16."""
# In steps of the output: interpolation cannot be exact everywhere.
_GREATEST_ERROR = 2


def tabulated(graph: Graph) -> Graph:
    """Return ``graph`` with lookups; all int8 outputs have the same values."""
    regions = _Regions(graph)
    replaced: dict[str, Node] = {}
    for node in graph.nodes:
        (name, *_) = node.outputs
        source = regions.source(name)
        if source is not None and regions.worthwhile(name, source):
            table = regions.table(name, source)
            if table is not None:
                replaced[name] = Node(node.name, ops.Lookup(table), (source,), node.outputs)
    if not replaced:
        return graph
    nodes = _needed(graph, [replaced.get(node.outputs[0], node) for node in graph.nodes])
    used = {*graph.inputs, *graph.outputs}.union(*((*node.inputs, *node.outputs) for node in nodes))
    tensors = [tensor for tensor in graph.tensors.values() if tensor.name in used]
    return Graph(graph.name, tensors, nodes, graph.inputs, graph.outputs, graph.states)


def _interpolated(results: Array) -> tuple[int, ...] | None:
    """Return the table of a function of int16 with these ``results``; ``None`` if interpolation is not exact enough.

    As in TensorFlow Lite's tables, entries are shifted by half of the error in the middle between two of them.
    """
    wanted = results.astype(np.int64)
    # The last entry belongs to 32768, which no int16 reaches: the value of 32767 stands for it.
    places = np.append(wanted[::_STEP], wanted[-1])
    between = (places[:-1] + places[1:]) / 2
    errors = np.rint((between - wanted[_STEP // 2 :: _STEP]) / 2).astype(np.int64)
    # Shifted entries halve the error in the middle, but not if the function has a corner there, such as a clamp.
    for table in (np.append(places[:-1] - errors, places[-1]), places):
        entries = np.clip(table, -(1 << 15), (1 << 15) - 1).astype(np.int16)
        made = look_up(entries, np.arange(-(1 << 15), 1 << 15))
        if np.abs(made - wanted).max() <= _GREATEST_ERROR:
            return tuple(entries.tolist())
    return None


def _needed(graph: Graph, nodes: list[Node]) -> list[Node]:
    """Return ``nodes`` without those whose results nothing reads any longer."""
    needed, kept = set(graph.results), []
    for node in reversed(nodes):
        if needed.intersection(node.outputs):
            needed.update(name for name in node.inputs if name is not None)
            kept.append(node)
    return kept[::-1]


class _Regions:
    """Finds for each tensor the one int8 or int16 tensor of which it is a function, element by element."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._writers: Mapping[str, Node] = {name: node for node in graph.nodes for name in node.outputs}
        self._leaves: dict[str, frozenset[str]] = {}
        for node in graph.nodes:  # in order of execution, so that no recursion is necessary
            for name in node.outputs:
                self._leaves[name] = self._find(name, node)

    def source(self, name: str) -> str | None:
        """Return the tensor of which the tensor ``name`` of the same type is a function; ``None`` if there is none."""
        (found,) = self._leaves[name]
        dtype = self._graph.tensor(name).dtype
        return found if found != name and dtype in _TABULATED and self._graph.tensor(found).dtype is dtype else None

    def worthwhile(self, name: str, source: str) -> bool:
        """Return whether a lookup is faster than the operators from ``source`` to ``name``."""
        nodes = list(self._between(name, source))
        # One operator of integers becomes a table when it is lowered. Float32 always costs more than a load.
        return sum(not isinstance(node.operator, _FUSED) for node in nodes) > 1 or any(
            self._graph.tensor(node.outputs[0]).dtype is DType.FLOAT32 for node in nodes
        )

    def table(self, name: str, source: str) -> tuple[int, ...] | None:
        """Return the table of ``name`` as a function of ``source``; ``None`` if it would not be exact enough."""
        limits = np.iinfo(self._graph.tensor(source).dtype.numpy)
        values: dict[str, Array] = {source: np.arange(limits.min, limits.max + 1).astype(limits.dtype)}
        for node in self._between(name, source):
            inputs = [self._spread(given, values, source) for given in node.inputs]
            output = replace(self._graph.tensor(node.outputs[0]), shape=values[source].shape)
            with np.errstate(all="ignore"):
                results = node.operator.reference(
                    Operands(tensor for tensor, _ in inputs), Operands(value for _, value in inputs), [output]
                )
            values[node.outputs[0]] = results[0]
        return tuple(values[name].tolist()) if limits.bits == 8 else _interpolated(values[name])

    def _spread(self, name: str | None, values: Mapping[str, Array], source: str) -> tuple[Tensor | None, Array | None]:
        if name is None:
            return None, None
        tensor = self._graph.tensor(name)
        # Constants have one element and broadcast to the whole table.
        if tensor.data is not None:
            data = tensor.data.reshape((1,))
            return replace(tensor, shape=(1,), data=data), data
        return replace(tensor, shape=values[source].shape), values[name]

    def _find(self, name: str, node: Node) -> frozenset[str]:
        own = frozenset([name])
        tensor = self._graph.tensor(name)
        if not isinstance(node.operator, _ELEMENTWISE):
            return own
        found: frozenset[str] = frozenset()
        for given in self._graph.inputs_of(node).present:
            if given.constant and given.elements == 1:
                continue
            # An element would depend on its position, not only on its value.
            if given.constant or given.shape != tensor.shape:
                return own
            # A tensor without a writer is its own source.
            found |= self._leaves.get(given.name, frozenset([given.name]))
        # Several sources would need a table of two dimensions: 65,536 entries for int8.
        if len(found) == 1 and self._graph.tensor(next(iter(found))).dtype in _TABULATED:
            return found
        return own

    def _between(self, name: str, source: str) -> Iterator[Node]:
        """Yield the nodes that compute ``name`` from ``source``, in order of execution."""
        wanted, found = {name}, []
        # The order of execution is kept, so that one pass from the end finds all writers.
        for node in reversed(self._graph.nodes):
            if wanted.intersection(node.outputs) and node.outputs[0] != source:
                found.append(node)
                wanted.update(given.name for given in self._graph.inputs_of(node).present if not given.constant)
        yield from reversed(found)
