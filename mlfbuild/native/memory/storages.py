"""Decide which tensors share an address: they form a storage, which the memory plan places.

Inputs and outputs are in the caller's buffers (with the option ``io: arena``, in the arena), constants in flash, states
in a separate block, and all other storages in the arena.

Data: storages by the name of a tensor. At the beginning each tensor has its own; merging lets several names point to
one ``Storage``. Its spans tell how many bytes are in use from which node to which. A storage with a span from node 2 to
node 5 is free for others before and after; several spans begin at the same address, but need not overlap in time.

The steps, in the order in which ``plan.py`` calls them, because each relies on the result of those before it:

1. ``storages_of`` gives each tensor its kind of memory. Both sides of a RESHAPE share a storage, unless neither is in
   the arena: an input that is also an output stays in two buffers of the caller, and constants are C arrays.
2. ``make_view`` puts parts into the storage of the whole tensor. It must come before the lifetimes, since a view is in
   use as long as the whole.
3. ``note_lifetimes`` records the first and the last node of each storage.
4. ``leave_states`` lets the value after a run take the place of the value before it, if the last reader of the old
   value runs before the writer of the new one, or if the kernel of the writer permits it.
5. ``reuse_inputs`` lets outputs overwrite inputs, if the kernel reads each element before it writes to the address
   (``KernelCall.overwrites``) and no later node reads the input. It comes last, as it needs final lifetimes.

The conditions of ``make_view``, which are easy to get wrong:

- All tensors are in the arena. A buffer of the caller holds only its own tensor, at every time of a run.
- No storage occurs twice: in CONCATENATION(a, a), one ``a`` cannot be at two offsets.
- A part that moves is as large as its storage. Otherwise other tensors of that storage would be outside of the whole.
- Offsets are multiples of 16 bytes, the alignment of every tensor in the arena.

For example, a ring of 16 float32 values with the state ``h`` before a run and ``s`` after it::

    node 0   ADD       x, h -> s
    node 1   RESHAPE   s -> r
    node 2   RELU      r -> k
    node 3   ABS       k -> y

``s`` and ``r`` are one storage. ADD is the last node that reads ``h`` and permits the output to overwrite it, so ``s``
and ``r`` move into the state at offset 0: no copy at the end of the run. ``k`` may not overwrite ``r``, which is the
state now and not in the arena, so the arena has the 64 bytes of ``k``. ``y`` is in the caller's buffer.

This module does not choose offsets and weighs no alternatives: whether sharing makes the arena smaller is found by
``plan.py``, which makes a plan with it and others without.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mlfbuild.library.cgen import ALIGNMENT, STATE_ALIGNMENT, Span, aligned
from mlfbuild.native.graph import Graph, Node, State
from mlfbuild.native.graph.ops import Reshape
from mlfbuild.native.lowering import KernelCall
from mlfbuild.native.memory.views import views_of


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
        # One span for all uses, from the first to the last. Further spans come only from other storages that move in.
        self.spans = [Span(max(known.size, size), known.first, time)]
        self.last = time

    def absorb(self, other: Storage, storages: dict[str, Storage]) -> None:
        """Move the tensors of ``other``, and the times at which they are in use, into this storage."""
        # Spans stay separate, because the tensors that move in have times of their own.
        self.spans += other.spans
        self.last = max(self.last, other.last)
        self.names += other.names
        storages.update(dict.fromkeys(other.names, self))


def _state_sizes(graph: Graph) -> list[int]:
    return [aligned(state.initial.nbytes, STATE_ALIGNMENT) for state in graph.states]


def state_size(graph: Graph) -> int:
    """Return the bytes that are kept between runs.

    Each state begins at a multiple of ``STATE_ALIGNMENT``; gaps between them count.
    """
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
        # At first each tensor is alone; every later step only merges.
        storages[tensor.name] = Storage(StorageKind.CONSTANT if tensor.constant else StorageKind.ARENA, 0)
    for index, name in enumerate(() if arena_io else graph.inputs):
        storages[name] = Storage(StorageKind.INPUT, index)
    for name, offset in _state_offsets(graph).items():
        storages[name] = Storage(StorageKind.STATE, offset)
    # A state or a constant can also be an output. It stays where it is, and is copied after the run.
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
    # Merging them would put a tensor that is written into flash.
    if storages[source].area is StorageKind.CONSTANT:
        return  # constants are C arrays, which are not shared
    kept, gone = storages[source], storages[output]
    # ``gone`` should be the one in the arena: it gives up its place for the buffer of the caller or the state.
    if gone.area is not StorageKind.ARENA:
        kept, gone = gone, kept
    if gone.area is StorageKind.ARENA and gone is not kept:
        kept.absorb(gone, storages)


def make_view(graph: Graph, node: Node, storages: dict[str, Storage]) -> bool:
    """Move the tensors of ``node`` that are views of another one into its storage; ``False`` if not all can move.

    Returns ``False``, and changes nothing, also if the node makes no views. The conditions are those of the module.
    """
    views = views_of(graph, node)
    parts = [storages[view.part] for view in views]
    wholes = [storages[view.whole] for view in views]
    # One whole and different parts: ``len(parts) + 1`` storages, or some tensor would need two addresses.
    unique = len({id(storage) for storage in (*parts, *wholes[:1])}) == len(parts) + 1
    in_arena = all(storage.area is StorageKind.ARENA for storage in (*parts, *wholes))
    movable = all(_extent(graph, part) == graph.tensor(view.part).size
                  for view, part in zip(views, parts, strict=True))  # fmt: skip
    if not views or not unique or not in_arena or not movable or any(view.offset % ALIGNMENT for view in views):
        return False
    for view, part, whole in zip(views, parts, wholes, strict=True):
        # The whole may itself be a part of another tensor, so that offsets add up.
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

    Call it once, after all views are made, since a part that moves later would not extend the life of its whole.
    """
    ports = [[name for name in names if storages[name].area is StorageKind.ARENA]
             for names in (graph.inputs, graph.outputs)]  # fmt: skip
    # At time 0, before which no node runs; outputs at ``len(nodes)``, when all of them have.
    used = [(0, ports[0]), *((at, (*node.inputs, *node.outputs)) for at, node in enumerate(graph.nodes))]
    for index, names in (*used, (len(graph.nodes), ports[1])):
        for name in names:
            if name is not None:
                storage = storages[name]
                storage.use(storage.offsets.get(name, 0) + graph.tensor(name).size, index)


def reuse_inputs(
    graph: Graph, calls: Sequence[KernelCall], storages: dict[str, Storage], apart: frozenset[int]
) -> None:
    """Let nodes overwrite an input in the arena that no later node reads, if their kernels permit it.

    Output 0 of a node moves into the storage of the first input that qualifies. Nodes in ``apart`` are left out.
    """
    for index, (node, call) in enumerate(zip(graph.nodes, calls, strict=True)):
        output = storages[node.outputs[0]]
        for position in call.overwrites if index not in apart else ():
            # A ``None`` never occurs here: kernels list only operands that they have.
            name = str(node.inputs[position])
            source = storages[name]
            # Only in the arena: the caller's inputs are never written, and an output buffer holds only its output.
            dies = source is not output and source.area is output.area is StorageKind.ARENA and source.last == index
            # Written for the first time by this node: an output storage with older parts is a whole that views fill.
            if dies and output.spans[0].first == index and _begin_together(graph, storages, name, node.outputs[0]):
                source.offsets.update(output.offsets)
                source.absorb(output, storages)
                # One input is enough: the output has one address.
                break


def _begin_together(graph: Graph, storages: Mapping[str, Storage], source: str, output: str) -> bool:
    """Return whether ``output`` can begin where ``source`` does without overlapping other tensors of that storage."""
    theirs, its = storages[source].offsets, storages[output].offsets
    # A view in the middle of a whole: an output there could reach into the next part.
    if theirs.get(source, 0) or its.get(output, 0):
        return False
    # With views, ``source`` may be the first of several parts, and a larger output would reach into the second.
    return not theirs or graph.tensor(output).size <= graph.tensor(source).size


def leave_states(graph: Graph, calls: Sequence[KernelCall], storages: dict[str, Storage]) -> None:
    """Let states be updated in place if possible; the others stay in use until the copy at the end of the run.

    Raises nothing: whether an operator must update its state in place is checked when all addresses are known
    (``plan``).
    """
    for state in graph.states:
        _leave_in_place(graph, calls, storages, state)
    for state in graph.states:
        left = storages[state.after]
        # Also if it moved: time ``len(nodes)`` keeps its bytes until the run has ended.
        left.use(left.offsets.get(state.after, 0) + graph.tensor(state.after).size, len(graph.nodes))


def _leave_in_place(graph: Graph, calls: Sequence[KernelCall], storages: dict[str, Storage], state: State) -> None:
    """Let a state be updated in place, if its old value is no longer needed when the new one is written."""
    kept, left = storages[state.before], storages[state.after]
    # The old value is still wanted after the run, if it is itself an output or the new value of another state.
    if left.area is not StorageKind.ARENA or left.offsets or any(storages[name] is kept for name in graph.results):
        return
    if any(storages[name] is left for name in graph.inputs):
        return  # the caller writes it before the run
    writer = left.spans[0].first
    # The old value is read until ``kept.last``, so that writing it earlier would destroy it.
    if kept.spans and kept.last >= writer and not _updates(graph, calls, storages, state, writer):
        return
    kept.absorb(left, storages)


def _updates(
    graph: Graph, calls: Sequence[KernelCall], storages: Mapping[str, Storage], state: State, writer: int
) -> bool:
    """Return whether the node at ``writer`` is the last that reads ``state``, and its kernel may overwrite it."""
    node, kept = graph.nodes[writer], storages[state.before]
    # Every operand in the storage counts, since a view or RESHAPE of the state is read at the same address.
    reads = [at for at, name in enumerate(node.inputs) if name is not None and storages[name] is kept]
    writes = [at for at, name in enumerate(node.outputs) if storages[name] is storages[state.after]]
    # ``updates`` are the states that a kernel advances in place, ``overwrites`` inputs that output 0 may replace.
    allowed = {*calls[writer].updates, *((at, 0) for at in calls[writer].overwrites)}
    return kept.last == writer and len(writes) == 1 and all((at, writes[0]) in allowed for at in reads)
