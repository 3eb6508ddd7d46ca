"""The memory plan: where each tensor lies while the network runs, decided at compile time.

Inputs and outputs lie in the caller's buffers. An input is only read; an output buffer holds nothing but its output.
Constants lie in flash. All other tensors, and the scratch memory of kernels, share one arena, whose offsets
``arena.place`` chooses. RESHAPE costs nothing where both sides can be the same bytes, nor does an operator whose
tensors are views of each other (``views.py``); and an operator whose kernel permits it writes over an input that nobody
reads later. What is kept between runs lies in a block of its own, the state; a run that is through with what was kept
writes there what it leaves, otherwise that is copied at the end.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mlfbuild.compilers.native.arena import Buffer, Span, lower_bound, place
from mlfbuild.compilers.native.ops.call import Call
from mlfbuild.compilers.native.views import views_of
from mlfbuild.errors import UnsupportedModelError
from mlfbuild.graph import Graph, Node, State
from mlfbuild.graph.ops import Reshape

ALIGNMENT = 16
"""Alignment in bytes of every tensor in the arena, and of the arena itself."""
STATE_ALIGNMENT = 8
"""Alignment in bytes of every tensor in the state, and of the state itself."""

LARGEST_ARENA = (1 << 31) - 1

_TRIALS = 100


class Area(enum.Enum):
    """The kinds of memory."""

    INPUT = enum.auto()
    OUTPUT = enum.auto()
    CONSTANT = enum.auto()
    ARENA = enum.auto()
    STATE = enum.auto()


@dataclass(frozen=True)
class Location:
    """Where a tensor lies."""

    area: Area
    position: int = 0
    """Index of the input or output, or offset in the arena or state; 0 for constants, which have names."""


@dataclass(frozen=True)
class Plan:
    """The location of every tensor that nodes read or write."""

    locations: Mapping[str, Location]
    arena_size: int
    lower_bound: int
    """Bytes that are in use at one time, so that no plan of these calls in this order is smaller."""
    scratch: tuple[int, ...]
    """The offset in the arena of each node's scratch memory; 0 for those that need none."""
    copies: tuple[tuple[str, Location], ...]
    """Outputs and states that no node writes in place, and where they have to be: in this order, after all nodes."""
    state_size: int = 0
    """Bytes that are kept between runs."""
    views: frozenset[int] = frozenset()
    """Indices of the nodes that have nothing to do, since their tensors are views of each other."""
    apart: frozenset[int] = frozenset()
    """Indices of the nodes that could write over an input or make views, and do not as the arena is smaller so."""


@dataclass
class _Storage:
    """Tensors that begin at one address, and when the bytes of each are in use."""

    area: Area
    position: int
    spans: list[Span] = field(default_factory=list)
    offsets: dict[str, int] = field(default_factory=dict)
    """Where the tensors begin that are views; all others do at 0."""

    def use(self, size: int, time: int) -> None:
        """Have ``size`` bytes in use from the first to the last time that this is told."""
        known = self.spans[0] if self.spans else Span(0, time, time)
        self.spans = [Span(max(known.size, size), known.first, time)]

    @property
    def last(self) -> int:
        return max(span.last for span in self.spans)


def plan_memory(graph: Graph, calls: Sequence[Call]) -> Plan:
    """Return the memory plan of ``graph``, whose nodes are lowered to ``calls``.

    Raises ``UnsupportedModelError`` where the arena would be larger than 2 GiB.
    """
    plan = _plan(graph, calls, apart=frozenset())
    if plan.views:  # the whole of something is in memory as soon as its first part is
        plan = min(plan, _plan(graph, calls, plan.views), key=lambda plan: plan.arena_size)
    # To share an address can stand in the way of a good packing.
    for index in range(min(len(calls), _TRIALS)):
        if plan.arena_size <= plan.lower_bound:
            break
        if calls[index].overwrites or index in plan.views:
            plan = min(plan, _plan(graph, calls, plan.apart | {index}), key=lambda plan: plan.arena_size)
    if plan.arena_size > LARGEST_ARENA:
        raise UnsupportedModelError(
            f"{graph.name}: the intermediate tensors need an arena of {plan.arena_size} bytes, at most {LARGEST_ARENA} "
            f"are supported; use a smaller model"
        )
    return plan


def _plan(graph: Graph, calls: Sequence[Call], apart: frozenset[int]) -> Plan:
    """Plan with the nodes ``apart`` neither writing over any input nor making views."""
    states = _state_offsets(graph)
    storages = _storages(graph, states)
    views = frozenset(at for at, node in enumerate(graph.nodes) if at not in apart and _view(graph, node, storages))
    _note_lifetimes(graph, storages)
    for state in graph.states:
        _leave_in_place(graph, calls, storages, state)
    for state in graph.states:  # what is copied must still be there at the end
        left = storages[state.after]
        left.use(left.offsets.get(state.after, 0) + graph.tensor(state.after).size, len(graph.nodes))
    _reuse_inputs(graph, calls, storages, apart)
    scratch = [_Storage(Area.ARENA, 0, [Span(call.scratch, at, at)]) for at, call in enumerate(calls)]
    arena = _in_arena([*storages.values(), *(used for used, call in zip(scratch, calls, strict=True) if call.scratch)])
    buffers = [Buffer(tuple(Span(_aligned(span.size), span.first, span.last) for span in storage.spans))
               for storage in arena]  # fmt: skip
    offsets, arena_size = place(buffers)
    for storage, offset in zip(arena, offsets, strict=True):
        storage.position = offset
    locations = {
        name: Location(storage.area, storage.position + storage.offsets.get(name, 0))
        for name, storage in storages.items()
    }
    return Plan(
        locations,
        arena_size,
        lower_bound(buffers),
        tuple(storage.position for storage in scratch),
        (*_output_copies(graph, locations), *_state_copies(graph, locations)),
        _state_size(graph),
        views,
        apart,
    )


def _aligned(size: int, alignment: int = ALIGNMENT) -> int:
    return -(-size // alignment) * alignment


def _state_sizes(graph: Graph) -> list[int]:
    return [_aligned(state.initial.nbytes, STATE_ALIGNMENT) for state in graph.states]


def _state_size(graph: Graph) -> int:
    return sum(_state_sizes(graph))


def _state_offsets(graph: Graph) -> dict[str, int]:
    """Return where in the state each one begins, by the name of its tensor before the run."""
    ends = itertools.accumulate(_state_sizes(graph), initial=0)
    return {state.before: end for state, end in zip(graph.states, ends, strict=False)}


def _storages(graph: Graph, states: Mapping[str, int]) -> dict[str, _Storage]:
    """Give each tensor a storage; the two sides of a RESHAPE share one where the rules of buffers allow it."""
    storages: dict[str, _Storage] = {}
    for tensor in graph.tensors.values():
        storages[tensor.name] = _Storage(Area.CONSTANT if tensor.constant else Area.ARENA, 0)
    for index, name in enumerate(graph.inputs):
        storages[name] = _Storage(Area.INPUT, index)
    for name, offset in states.items():
        storages[name] = _Storage(Area.STATE, offset)
    for index, name in enumerate(graph.outputs):
        if storages[name].area is Area.ARENA:
            storages[name] = _Storage(Area.OUTPUT, index)
    for node in graph.nodes:
        if isinstance(node.operator, Reshape) and node.inputs[0] is not None:
            _share(storages, node.inputs[0], node.outputs[0])
    return storages


def _share(storages: dict[str, _Storage], source: str, output: str) -> None:
    """Let the tensors ``source`` and ``output`` have one storage, unless both have a place of their own already."""
    if storages[source].area is Area.CONSTANT:
        return  # a constant is the C array of its own tensor only
    kept, gone = storages[source], storages[output]
    if gone.area is not Area.ARENA:
        kept, gone = gone, kept
    if gone.area is Area.ARENA:
        for name, storage in storages.items():
            if storage is gone:
                storages[name] = kept


def _view(graph: Graph, node: Node, storages: dict[str, _Storage]) -> bool:
    """Let the tensors of ``node`` that are views of another one be in its storage, where all of them can."""
    views = views_of(graph, node)
    parts = [storages[view.part] for view in views]
    wholes = [storages[view.whole] for view in views]
    unique = len({id(storage) for storage in (*parts, *wholes[:1])}) == len(parts) + 1
    in_arena = all(storage.area is Area.ARENA for storage in (*parts, *wholes))
    movable = all(_extent(graph, storages, part) == graph.tensor(view.part).size
                  for view, part in zip(views, parts, strict=True))  # fmt: skip
    if not views or not unique or not in_arena or not movable or any(view.offset % ALIGNMENT for view in views):
        return False
    for view, part, whole in zip(views, parts, wholes, strict=True):
        start = whole.offsets.get(view.whole, 0) + view.offset
        for name, storage in storages.items():
            if storage is part:
                whole.offsets[name] = start + part.offsets.get(name, 0)
                storages[name] = whole
    return True


def _extent(graph: Graph, storages: Mapping[str, _Storage], storage: _Storage) -> int:
    """Return the bytes from the beginning of ``storage`` to the end of its last tensor."""
    names = (name for name, its in storages.items() if its is storage)
    return max(storage.offsets.get(name, 0) + graph.tensor(name).size for name in names)


def _note_lifetimes(graph: Graph, storages: Mapping[str, _Storage]) -> None:
    for index, node in enumerate(graph.nodes):
        for name in (*node.inputs, *node.outputs):
            if name is not None:
                storage = storages[name]
                storage.use(storage.offsets.get(name, 0) + graph.tensor(name).size, index)


def _reuse_inputs(graph: Graph, calls: Sequence[Call], storages: dict[str, _Storage], apart: frozenset[int]) -> None:
    """Let a node write its output over an input in the arena that dies with it, where its kernel permits that."""
    for index, (node, call) in enumerate(zip(graph.nodes, calls, strict=True)):
        output = storages[node.outputs[0]]
        for position in call.overwrites if index not in apart else ():
            name = str(node.inputs[position])
            source = storages[name]
            dies = source is not output and source.area is output.area is Area.ARENA and source.last == index
            if dies and output.spans[0].first == index and _begin_together(graph, storages, name, node.outputs[0]):
                source.spans += output.spans
                source.offsets.update(output.offsets)
                storages.update({name: source for name, storage in storages.items() if storage is output})
                break


def _begin_together(graph: Graph, storages: Mapping[str, _Storage], source: str, output: str) -> bool:
    """Whether the bytes of ``output``, in one storage with ``source``, would be those of no other tensor in that."""
    theirs, its = storages[source].offsets, storages[output].offsets
    if theirs.get(source, 0) or its.get(output, 0):
        return False
    return not theirs or graph.tensor(output).size <= graph.tensor(source).size


def _leave_in_place(graph: Graph, calls: Sequence[Call], storages: dict[str, _Storage], state: State) -> None:
    """Let a state be written where it was read from, if by then nobody has to see what was there."""
    kept, left = storages[state.before], storages[state.after]
    if left.area is not Area.ARENA or left.offsets or any(storages[name] is kept for name in graph.results):
        return
    writer = left.spans[0].first
    if kept.spans and kept.last >= writer and not _updates(graph, calls, storages, state, writer):
        return
    kept.spans += left.spans
    storages.update({name: kept for name, storage in storages.items() if storage is left})


def _updates(graph: Graph, calls: Sequence[Call], storages: Mapping[str, _Storage], state: State, writer: int) -> bool:
    """Whether ``state`` is read for the last time by the node at ``writer``, whose kernel may write over it."""
    node, kept = graph.nodes[writer], storages[state.before]
    reads = [at for at, name in enumerate(node.inputs) if name is not None and storages[name] is kept]
    writes = [at for at, name in enumerate(node.outputs) if storages[name] is storages[state.after]]
    allowed = {*calls[writer].updates, *((at, 0) for at in calls[writer].overwrites)}
    return kept.last == writer and len(writes) == 1 and all((at, writes[0]) in allowed for at in reads)


def _output_copies(graph: Graph, locations: Mapping[str, Location]) -> Iterator[tuple[str, Location]]:
    for index, name in enumerate(graph.outputs):
        if locations[name] != Location(Area.OUTPUT, index):
            yield name, Location(Area.OUTPUT, index)


def _state_copies(graph: Graph, locations: Mapping[str, Location]) -> Iterator[tuple[str, Location]]:
    """Yield the states to be copied: each after those that still read what is there, as in a line of delays."""
    waiting = {
        locations[state.before]: state.after
        for state in graph.states
        if locations[state.before] != locations[state.after]
    }
    while waiting:
        read = {locations[name] for name in waiting.values()}
        free = [location for location in waiting if location not in read]
        if not free:
            raise UnsupportedModelError(
                f"{graph.name}: the states {', '.join(repr(name) for name in waiting.values())} change places with "
                f"each other, which is not supported; compute at least one of them"
            )
        for location in free:
            yield waiting.pop(location), location


def _in_arena(storages: Iterable[_Storage]) -> list[_Storage]:
    unique = {id(storage): storage for storage in storages if storage.area is Area.ARENA and storage.spans}
    return list(unique.values())
