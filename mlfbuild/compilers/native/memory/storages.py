"""Decide which tensors share an address: they form a storage, which the memory plan places.

Inputs and outputs are in the caller's buffers (with the option ``io: arena``, in the arena), constants in flash, states
in a separate block, and all other storages in the arena.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlfbuild.cgen import ALIGNMENT, STATE_ALIGNMENT, Span, aligned
from mlfbuild.compilers.native.lowering import KernelCall
from mlfbuild.compilers.native.memory.views import views_of
from mlfbuild.graph import Graph, Node, State
from mlfbuild.graph.ops import Reshape


class StorageKind(enum.Enum):
    """The kinds of memory."""

    INPUT = enum.auto()
    OUTPUT = enum.auto()
    CONSTANT = enum.auto()
    ARENA = enum.auto()
    STATE = enum.auto()


@dataclass(frozen=True)
class Location:
    """The location of a tensor."""

    area: StorageKind
    position: int = 0
    """Index of the input or output, or offset in the arena or state; 0 for constants, which have names."""


@dataclass
class Storage:
    """Tensors in one piece of memory, and when its bytes are in use."""

    area: StorageKind
    position: int
    spans: list[Span] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    """Offsets of the tensors that are views; all others begin at 0."""
    names: list[str] = field(default_factory=list)
    """The tensors."""
    last: int = -1
    """The last node that uses any part."""

    def use(self, size: int, time: int) -> None:
        """Mark ``size`` bytes as in use at ``time``: between the first and the last call they stay in use."""
        known = self.spans[0] if self.spans else Span(0, time, time)
        self.spans = [Span(max(known.size, size), known.first, time)]
        self.last = time

    def absorb(self, other: Storage, storages: dict[str, Storage]) -> None:
        """Move the tensors of ``other``, and the times at which they are in use, into this storage."""
        self.spans += other.spans
        self.last = max(self.last, other.last)
        self.names += other.names
        storages.update(dict.fromkeys(other.names, self))


def _state_sizes(graph: Graph) -> list[int]:
    return [aligned(state.initial.nbytes, STATE_ALIGNMENT) for state in graph.states]


def state_size(graph: Graph) -> int:
    """Return the bytes that are kept between runs."""
    return sum(_state_sizes(graph))


def _state_offsets(graph: Graph) -> dict[str, int]:
    """Return the offset of each state in the block of states, by the name of its tensor before the run."""
    ends = itertools.accumulate(_state_sizes(graph), initial=0)
    return {state.before: end for state, end in zip(graph.states, ends, strict=False)}


def storages_of(graph: Graph, *, arena_io: bool = False) -> dict[str, Storage]:
    """Return the storage of each tensor; input and output of a RESHAPE share one if possible.

    With ``arena_io``, inputs and outputs are in the arena.
    """
    storages: dict[str, Storage] = {}
    for tensor in graph.tensors.values():
        storages[tensor.name] = Storage(StorageKind.CONSTANT if tensor.constant else StorageKind.ARENA, 0)
    for index, name in enumerate(() if arena_io else graph.inputs):
        storages[name] = Storage(StorageKind.INPUT, index)
    for name, offset in _state_offsets(graph).items():
        storages[name] = Storage(StorageKind.STATE, offset)
    for index, name in enumerate(() if arena_io else graph.outputs):
        if storages[name].area is StorageKind.ARENA:
            storages[name] = Storage(StorageKind.OUTPUT, index)
    for name, storage in storages.items():
        storage.names.append(name)
    for node in graph.nodes:
        if isinstance(node.operator, Reshape) and node.inputs[0] is not None:
            _share(storages, node.inputs[0], node.outputs[0])
    return storages


def _share(storages: dict[str, Storage], source: str, output: str) -> None:
    """Merge the storages of ``source`` and ``output``, unless neither is in the arena."""
    if storages[source].area is StorageKind.CONSTANT:
        return  # constants are C arrays, which are not shared
    kept, gone = storages[source], storages[output]
    if gone.area is not StorageKind.ARENA:
        kept, gone = gone, kept
    if gone.area is StorageKind.ARENA and gone is not kept:
        kept.absorb(gone, storages)


def make_view(graph: Graph, node: Node, storages: dict[str, Storage]) -> bool:
    """Move the tensors of ``node`` that are views of another one into its storage; ``False`` if not all can move."""
    views = views_of(graph, node)
    parts = [storages[view.part] for view in views]
    wholes = [storages[view.whole] for view in views]
    unique = len({id(storage) for storage in (*parts, *wholes[:1])}) == len(parts) + 1
    in_arena = all(storage.area is StorageKind.ARENA for storage in (*parts, *wholes))
    movable = all(_extent(graph, part) == graph.tensor(view.part).size
                  for view, part in zip(views, parts, strict=True))  # fmt: skip
    if not views or not unique or not in_arena or not movable or any(view.offset % ALIGNMENT for view in views):
        return False
    for view, part, whole in zip(views, parts, wholes, strict=True):
        start = whole.offsets.get(view.whole, 0) + view.offset
        whole.offsets.update({name: start + part.offsets.get(name, 0) for name in part.names})
        whole.absorb(part, storages)
    return True


def _extent(graph: Graph, storage: Storage) -> int:
    """Return the bytes from the beginning of ``storage`` to the end of its last tensor."""
    return max(storage.offsets.get(name, 0) + graph.tensor(name).size for name in storage.names)


def note_lifetimes(graph: Graph, storages: Mapping[str, Storage]) -> None:
    """Record the nodes between which the bytes of each storage are in use.

    Inputs in the arena are in use from the first node on, and outputs until after the last one.
    """
    ports = [[name for name in names if storages[name].area is StorageKind.ARENA]
             for names in (graph.inputs, graph.outputs)]  # fmt: skip
    used = [(0, ports[0]), *((at, (*node.inputs, *node.outputs)) for at, node in enumerate(graph.nodes))]
    for index, names in (*used, (len(graph.nodes), ports[1])):
        for name in names:
            if name is not None:
                storage = storages[name]
                storage.use(storage.offsets.get(name, 0) + graph.tensor(name).size, index)


def reuse_inputs(
    graph: Graph, calls: Sequence[KernelCall], storages: dict[str, Storage], apart: frozenset[int]
) -> None:
    """Let nodes overwrite an input in the arena that no later node reads, if their kernels permit it."""
    for index, (node, call) in enumerate(zip(graph.nodes, calls, strict=True)):
        output = storages[node.outputs[0]]
        for position in call.overwrites if index not in apart else ():
            name = str(node.inputs[position])
            source = storages[name]
            dies = source is not output and source.area is output.area is StorageKind.ARENA and source.last == index
            if dies and output.spans[0].first == index and _begin_together(graph, storages, name, node.outputs[0]):
                source.offsets.update(output.offsets)
                source.absorb(output, storages)
                break


def _begin_together(graph: Graph, storages: Mapping[str, Storage], source: str, output: str) -> bool:
    """Return whether ``output`` can begin where ``source`` does without overlapping other tensors of that storage."""
    theirs, its = storages[source].offsets, storages[output].offsets
    if theirs.get(source, 0) or its.get(output, 0):
        return False
    return not theirs or graph.tensor(output).size <= graph.tensor(source).size


def leave_states(graph: Graph, calls: Sequence[KernelCall], storages: dict[str, Storage]) -> None:
    """Let states be updated in place if possible; the others stay in use until the copy at the end of the run."""
    for state in graph.states:
        _leave_in_place(graph, calls, storages, state)
    for state in graph.states:
        left = storages[state.after]
        left.use(left.offsets.get(state.after, 0) + graph.tensor(state.after).size, len(graph.nodes))


def _leave_in_place(graph: Graph, calls: Sequence[KernelCall], storages: dict[str, Storage], state: State) -> None:
    """Let a state be updated in place, if its old value is no longer needed when the new one is written."""
    kept, left = storages[state.before], storages[state.after]
    if left.area is not StorageKind.ARENA or left.offsets or any(storages[name] is kept for name in graph.results):
        return
    if any(storages[name] is left for name in graph.inputs):
        return  # the caller writes it before the run
    writer = left.spans[0].first
    if kept.spans and kept.last >= writer and not _updates(graph, calls, storages, state, writer):
        return
    kept.absorb(left, storages)


def _updates(
    graph: Graph, calls: Sequence[KernelCall], storages: Mapping[str, Storage], state: State, writer: int
) -> bool:
    """Return whether the node at ``writer`` is the last that reads ``state``, and its kernel may overwrite it."""
    node, kept = graph.nodes[writer], storages[state.before]
    reads = [at for at, name in enumerate(node.inputs) if name is not None and storages[name] is kept]
    writes = [at for at, name in enumerate(node.outputs) if storages[name] is storages[state.after]]
    allowed = {*calls[writer].updates, *((at, 0) for at in calls[writer].overwrites)}
    return kept.last == writer and len(writes) == 1 and all((at, writes[0]) in allowed for at in reads)
