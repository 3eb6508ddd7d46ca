"""Plan the execution of an executor graph: the address of each entry, and the calls in order.

Inputs and outputs are in the caller's buffers, parameters in flash, and all other entries in one storage. Their offsets
are chosen by lifetimes; the storage is never larger than with the graph's own storage ids. A ``__nop`` is not a call:
its output has the bytes of its input. Outputs that cannot be written in place are copied at the end.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter

from mlfbuild.core import InputFileError, UnsupportedModelError
from mlfbuild.library.cgen import Buffer, Span, aligned, place
from mlfbuild.library.graph_json import CALL, ExecutorGraph, GraphNode

# A table of 32-bit numbers would double the flash that the calls take.
MOST_TENSORS = 1 << 16
"""The most tensors of a static graph, because calls refer to them by 16-bit numbers."""
# Names of TVM's graph executor (`src/runtime/graph_executor`), which handles both itself instead of calling a kernel.
NO_CALL = "__nop"
COPY = "__copy"


class Area(enum.Enum):
    """The kinds of memory; the values are the names in ``mlf_executor.h``."""

    INPUT = enum.auto()
    OUTPUT = enum.auto()
    CONSTANT = enum.auto()
    STORAGE = enum.auto()


@dataclass(frozen=True)
class TensorPlace:
    """The location of a tensor."""

    area: Area
    position: int
    """Number of the input or output in call order, offset in the storage, or entry of the parameter.

    Parameters that are compiled into the module count as inputs after those of the caller.
    """


@dataclass(frozen=True)
class PlannedTensor:
    """An entry of the graph, or an output to which an entry is copied."""

    entry: int
    place: TensorPlace


@dataclass(frozen=True)
class PackedCall:
    """A call of a packed function with tensors, or a copy of the first one to the second."""

    function: str | None
    tensors: tuple[PlannedTensor, ...]
    name: str = field(default="", compare=False)
    """Name of the graph's node; for a copy, the name of the node that wrote the copied entry."""


@dataclass(frozen=True)
class GraphPlan:
    """The calls of a static executor and the addresses of their tensors."""

    graph: ExecutorGraph
    calls: tuple[PackedCall, ...]
    storage_size: int
    """Bytes."""
    linked: tuple[int, ...] = ()
    """The entries of parameters that are compiled into the module, in the order of their positions."""

    @property
    def functions(self) -> tuple[str, ...]:
        """The packed functions that are called, each once, in order of the first call.

        Copies call no function and are left out.
        """
        return tuple(dict.fromkeys(call.function for call in self.calls if call.function is not None))

    @property
    def parameters(self) -> tuple[int, ...]:
        """The entries of the parameters that calls read, in order of first use."""
        used = (tensor.place for call in self.calls for tensor in call.tensors)
        return tuple(dict.fromkeys(place.position for place in used if place.area is Area.CONSTANT))


def plan_graph(graph: ExecutorGraph, params: Collection[str], where: str, linked: Collection[str] = ()) -> GraphPlan:
    """Return the plan of ``graph``; ``where`` names it in messages.

    The arguments ``params`` are constants in the archive. The arguments ``linked`` are constants that are compiled into
    the module's own code. Raises ``InputFileError`` for an invalid ``__nop`` or ``__copy``, and
    ``UnsupportedModelError`` for a graph with more tensors than ``MOST_TENSORS``.
    """
    # Each output may need a second tensor, to which its entry is copied.
    if len(graph.shape) + len(graph.heads) > MOST_TENSORS:
        raise UnsupportedModelError(
            "graph-too-large",
            place=where,
            reason=f"the graph has {len(graph.shape)} tensors, and at most {MOST_TENSORS} are supported",
            hint="use a smaller model",
        )
    return _Planning(graph, params, linked, where).plan()


class _Planning:
    """Collects locations by root: the entry that has the bytes of an entry."""

    def __init__(self, graph: ExecutorGraph, params: Collection[str], linked: Collection[str], where: str) -> None:
        self._graph = graph
        self._where = where
        self._roots = self._aliases()
        self._places: dict[int, TensorPlace] = {}
        self._linked = self._name_arguments(params, linked)

    def plan(self) -> GraphPlan:
        # Before the storage: what is in a caller's buffer takes no part in it.
        copies = list(self._place_outputs())
        nodes = [(node, index) for index, node in enumerate(self._graph.nodes) if self._is_call(node)]
        calls = [(node, self._entries(node, index)) for node, index in nodes]
        size = self._place_storage([entries for _, entries in calls], {entry for entry, _ in copies})
        return GraphPlan(
            self._graph,
            (
                *(
                    PackedCall(None if node.function == COPY else node.function, self._tensors(entries), node.name)
                    for node, entries in calls
                ),
                *(
                    PackedCall(None, (*self._tensors([entry]), PlannedTensor(entry, to)), self._name(entry))
                    for entry, to in copies
                ),
            ),
            size,
            self._linked,
        )

    def _name(self, entry: int) -> str:
        """Return the name of the node that writes ``entry``."""
        return self._graph.nodes[bisect_right(self._graph.node_row_ptr, entry) - 1].name

    @staticmethod
    def _is_call(node: GraphNode) -> bool:
        return node.op == CALL and node.function != NO_CALL

    def _aliases(self) -> dict[int, int]:
        # Nodes are in topological order, so the root of an input is final before a `__nop` that reads it.
        roots = {entry: entry for entry in range(len(self._graph.shape))}
        for index, node in enumerate(self._graph.nodes):
            # TVM's executor checks neither; a damaged graph would make the generated C read beyond a buffer.
            if node.function in {NO_CALL, COPY}:
                self._check_pair(node, index)
            if node.function == NO_CALL:
                roots[self._graph.node_row_ptr[index]] = roots[self._graph.entry(node.inputs[0])]
        return roots

    def _check_pair(self, node: GraphNode, index: int) -> None:
        first, end = self._graph.node_row_ptr[index], self._graph.node_row_ptr[index + 1]
        sizes = [self._graph.tensor(self._graph.entry(source), "").size for source in node.inputs]
        if end - first != 1 or sizes != [self._graph.tensor(first, "").size]:
            raise InputFileError(
                "graph-node-invalid",
                place=f"{self._where}: node {index} {node.name!r}",
                reason=f"{node.function} requires one input and one output of the same size, and has "
                f"{len(node.inputs)} and {end - first} ({sizes} bytes)",
            )

    def _name_arguments(self, params: Collection[str], linked: Collection[str]) -> tuple[int, ...]:
        """Place the graph's arguments; returns the entries of those that are linked."""
        inputs: list[int] = []
        behind: list[int] = []
        for node in self._graph.arg_nodes:
            entry, name = self._graph.node_row_ptr[node], self._graph.nodes[node].name
            if name in params:
                self._places[entry] = TensorPlace(Area.CONSTANT, entry)
            else:
                (behind if name in linked else inputs).append(entry)
        # Linked parameters are pointers like inputs, so they have numbers after those that the caller sees.
        self._places.update((entry, TensorPlace(Area.INPUT, at)) for at, entry in enumerate((*inputs, *behind)))
        return tuple(behind)

    def _place_outputs(self) -> Iterator[tuple[int, TensorPlace]]:
        """Place outputs in the caller's buffers if possible; yield (entry, place) of those that must be copied."""
        for index, head in enumerate(self._graph.heads):
            entry, place = self._graph.entry(head), TensorPlace(Area.OUTPUT, index)
            # The bytes already are an input, a parameter or another output, and cannot be in a second buffer.
            if self._roots[entry] in self._places:
                yield entry, place
            else:
                self._places[self._roots[entry]] = place

    def _entries(self, node: GraphNode, index: int) -> tuple[int, ...]:
        first, end = self._graph.node_row_ptr[index], self._graph.node_row_ptr[index + 1]
        return (*(self._graph.entry(source) for source in node.inputs), *range(first, end))

    def _place_storage(self, calls: list[tuple[int, ...]], copied: Collection[int]) -> int:
        lives: dict[int, list[int]] = {}
        for at, entries in enumerate(calls):
            for entry in entries:
                lives.setdefault(self._roots[entry], []).append(at)
        for entry in copied:
            # Copies run after all calls, so what they read lives until then.
            lives.setdefault(self._roots[entry], []).append(len(calls))
        # Roots that already have a place are inputs, outputs or parameters.
        spans = {
            root: Span(self._size(root), min(times), max(times))
            for root, times in lives.items()
            if root not in self._places
        }
        apart = [[root] for root in spans]
        plans = [_packed(apart, spans), _packed(self._in_place(spans), spans), self._by_storage_id(list(spans))]
        # None of the three is always the smallest: placing by lifetimes is a heuristic, and overwriting in place forces
        # groups to one address. The last one is the bound that the graph itself sets.
        offsets, size = min(plans, key=itemgetter(1))
        self._places.update((root, TensorPlace(Area.STORAGE, at)) for root, at in offsets.items())
        return size

    def _in_place(self, spans: Mapping[int, Span]) -> list[list[int]]:
        """Return the roots in groups with the same address.

        If a call reads an entry for the last time and writes one with the same storage id, it overwrites the entry.
        """
        groups: list[list[int]] = []
        latest: dict[int, list[int]] = {}
        # In order of their first use, because only the entry that was written last under a storage id can be
        # overwritten.
        for root in sorted(spans, key=lambda root: spans[root].first):
            group = latest.get(self._graph.storage_id[root], [])
            if not group or spans[group[-1]].last != spans[root].first:
                group = latest[self._graph.storage_id[root]] = []
                groups.append(group)
            group.append(root)
        return groups

    def _size(self, root: int) -> int:
        """Return the bytes that a root needs: those of its largest entry."""
        sizes = (self._graph.tensor(entry, "").size for entry, its in self._roots.items() if its == root)
        return aligned(max(sizes))

    def _by_storage_id(self, roots: list[int]) -> tuple[dict[int, int], int]:
        """Return the offset of each root, and the bytes of all, if those with one storage id share memory."""
        sizes: dict[int, int] = {}
        for root in roots:
            storage = self._graph.storage_id[root]
            sizes[storage] = max(sizes.get(storage, 0), self._size(root))
        offsets, end = {}, 0
        for storage, size in sizes.items():
            offsets[storage] = end
            end += size
        return {root: offsets[self._graph.storage_id[root]] for root in roots}, end

    def _tensors(self, entries: Collection[int]) -> tuple[PlannedTensor, ...]:
        return tuple(PlannedTensor(entry, self._places[self._roots[entry]]) for entry in entries)


def _packed(groups: Sequence[Sequence[int]], spans: Mapping[int, Span]) -> tuple[dict[int, int], int]:
    """Return the offset of each root, and the total size; the roots of a group have the same offset."""
    # A group is one buffer with several lives, so `place` may put others between them.
    offsets, size = place([Buffer(tuple(spans[root] for root in group)) for group in groups])
    return {root: at for group, at in zip(groups, offsets, strict=True) for root in group}, size
