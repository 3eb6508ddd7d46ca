"""Place storages in the arenas of several memories, so that accesses wait as few cycles as possible.

Every storage of the arena gets one memory and an offset in its arena, and the state as a whole gets one memory. The
costs are the waits of the accesses that the kernels are estimated to make (``accesses``); ``library.cgen.spread``
solves the problem, for each memory that the state can have. If all memories wait equally long, which is also the case
if nothing is known of their speeds, the order of the request ranks them, and the accesses to later ones are what is
minimised.

The arenas follow each other in one row of addresses, which no program has: the first memory in use begins at 0, the
next one where it ends. So a location is one number, as with a single arena, and ``PlannedMemory.base`` leads back to
the memory. Sizes are multiples of 16 bytes, so that no storage is in two memories.

For example, 512 bytes of memory ``dtcm`` that never waits, and ``ddr``, in which each access waits five cycles::

    storage   bytes   nodes    accesses   memory   position
    a           256   0 to 1        192   dtcm          0
    b           512   1 to 2        256   ddr         512
    scratch     128   1           4,096   dtcm        256

    dtcm   base 0     384 bytes        ddr   base 384   512 bytes

``b`` does not fit beside ``a`` and the scratch memory of node 1. It waits 1,280 cycles; ``scratch`` would wait 20,480.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library.cgen import (
    ALIGNMENT,
    STATE_ALIGNMENT,
    Buffer,
    SpreadBuffers,
    Work,
    aligned,
    lower_bound,
    peak,
    shortage,
    spread,
)
from mlfbuild.library.keys import ArenaMemory
from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import EthosU, Reshape
from mlfbuild.native.lowering import KernelCall
from mlfbuild.native.memory.accesses import Accesses, Traffic, accesses_of
from mlfbuild.native.memory.borders import arena_alignment
from mlfbuild.native.memory.storages import Storage, StorageKind, state_size

_RANK = 1_000
"""The wait of a memory behind another one, if the speeds are not known."""


@dataclass(frozen=True)
class PlannedMemory:
    """The arena in one memory."""

    memory: ArenaMemory
    base: int
    """Its offset in the row of all arenas."""
    size: int
    """Bytes; 0 if no storage is there."""
    lower_bound: int = 0
    """Bytes in use at the same time."""
    peak: int = 0
    """The node during which they are in use."""
    state: int = 0
    """Bytes of the state, which is in the same memory beside the arena."""

    @property
    def end(self) -> int:
        """The end of its storages in the row of all arenas: before the reserved bytes."""
        return self.base + self.size - self.memory.reserved


@dataclass(frozen=True)
class PlannedStorage:
    """Tensors in one piece of an arena, or the scratch memory of a node, with the reason for its memory."""

    tensors: tuple[str, ...]
    """Empty for scratch memory."""
    memory: str
    offset: int
    """In the arena of its memory."""
    size: int
    first: int
    last: int
    """Nodes; the number of nodes if the caller reads it after the run."""
    traffic: Traffic
    saved: int = 0
    """Thousandths of cycles that its accesses wait less than in the slowest memory."""

    @property
    def accesses(self) -> int:
        """Loads and stores in a run."""
        return self.traffic.loads + self.traffic.stores


@dataclass(frozen=True)
class PlacedArenas:
    """Storages with their memories."""

    positions: tuple[int, ...]
    """In the row of all arenas."""
    memories: tuple[PlannedMemory, ...]
    """Those of the request, in its order."""
    storages: tuple[PlannedStorage, ...]
    waits: int
    """Thousandths of cycles that accesses wait in a run."""
    waits_bound: int
    """At least so many, with these storages."""
    least_waits: int
    """The waits if each storage were in the fastest memory."""


def speeds(memories: Sequence[ArenaMemory]) -> tuple[tuple[int, int], ...]:
    """Return (wait of a load, wait of a store) of each memory, in thousandths of cycles; ranks if all are equal."""
    known = [(memory.load_wait, memory.store_wait) for memory in memories]
    return tuple(known) if len(set(known)) > 1 else tuple((_RANK * at, _RANK * at) for at in range(len(known)))


def by_speed(memories: Sequence[ArenaMemory]) -> list[int]:
    """Return the positions of ``memories``, the fastest first, equal ones in their order."""
    waits = speeds(memories)
    return sorted(range(len(memories)), key=lambda at: (sum(waits[at]), at))


class Arenas:
    """The memories of a request, and the accesses of the calls of a network."""

    def __init__(self, graph: Graph, calls: Sequence[KernelCall], memories: tuple[ArenaMemory, ...]) -> None:
        self.graph, self.memories = graph, memories
        several = len(memories) > 1
        pairs = zip(graph.nodes, calls, strict=True)
        self._accesses: list[Accesses] = [accesses_of(graph, node, call) for node, call in pairs] if several else []
        self._order = by_speed(memories)
        self._state = aligned(state_size(graph), STATE_ALIGNMENT)
        self._line = arena_alignment(graph)

    def place(
        self,
        storages: Mapping[str, Storage],
        arena: Sequence[Storage],
        scratch: Sequence[Storage],
        buffers: Sequence[Buffer],
        views: frozenset[int],
        work: Work | None,
    ) -> PlacedArenas | None:
        """Return the places of ``arena``, whose storages are ``buffers``; ``None`` if they do not fit.

        ``storages`` are those of all tensors, ``scratch`` those of the nodes, and ``views`` nodes without code.
        Raises as ``library.cgen.place``.
        """
        traffic = self._traffic(storages, scratch, views)
        waits = [speeds(self.memories)[at] for at in self._order]
        costs = [[traffic[id(each)].waits(*wait) for wait in waits] for each in arena]
        kept = {id(each): each for each in storages.values() if each.area is StorageKind.STATE}
        state = sum((traffic[key] for key in kept), Traffic())
        best: tuple[int, int, SpreadBuffers] | None = None
        # The state can only be in one of a few memories, so that each of them is tried, with the best arenas beside it.
        for at in range(len(waits) if self._state else 1):
            # The state is beside the arena: what it takes is missing there.
            sizes = [
                # Rounded down, because the end of an arena is rounded up to a line and must then still fit.
                (memory.size - memory.reserved - self._state * (at == place)) // self._line * self._line
                for place, memory in enumerate(self._sorted)
            ]
            found = None if min(sizes) < 0 else spread(buffers, costs, sizes, work)
            if found is not None:
                added = state.waits(*waits[at])
                if best is None or found.cost + added < best[2].cost + best[1]:
                    best = (at, added, found)
        if best is None:
            return None
        least = sum(min(each) for each in [*costs, [state.waits(*wait) for wait in waits]])
        return self._placed(best, arena, buffers, traffic, least)

    @property
    def _sorted(self) -> list[ArenaMemory]:
        return [self.memories[at] for at in self._order]

    def _placed(
        self,
        best: tuple[int, int, SpreadBuffers],
        arena: Sequence[Storage],
        buffers: Sequence[Buffer],
        traffic: Mapping[int, Traffic],
        least: int,
    ) -> PlacedArenas:
        state_at, added, found = best
        # In the order of the request again; the search has the fastest first.
        ranks = [self._order.index(at) for at in range(len(self.memories))]
        ends = [
            aligned(found.sizes[rank], self._line) + memory.reserved
            for rank, memory in zip(ranks, self.memories, strict=True)
        ]
        bases = list(accumulate(ends, initial=0))
        memories = []
        for at, (memory, rank) in enumerate(zip(self.memories, ranks, strict=True)):
            inside = [buffer for buffer, its in zip(buffers, found.memories, strict=True) if its == rank]
            state = self._state if rank == state_at else 0
            memories.append(PlannedMemory(memory, bases[at], ends[at], lower_bound(inside), peak(inside), state))
        numbers = [self._order[rank] for rank in found.memories]
        waits = speeds(self.memories)
        planned = tuple(
            PlannedStorage(
                tuple(each.names), self.memories[at].name, offset, buffer.size, buffer.first, buffer.last,
                (its := traffic[id(each)]), its.waits(*waits[self._order[-1]]) - its.waits(*waits[at]),
            )
            for each, buffer, at, offset in zip(arena, buffers, numbers, found.offsets, strict=True)
        )  # fmt: skip
        positions = tuple(bases[at] + offset for at, offset in zip(numbers, found.offsets, strict=True))
        return PlacedArenas(positions, tuple(memories), planned, found.cost + added, found.bound + added, least)

    def _traffic(
        self, storages: Mapping[str, Storage], scratch: Sequence[Storage], views: frozenset[int]
    ) -> Mapping[int, Traffic]:
        """Return the accesses to each storage in a run, by its identity."""
        found: dict[int, Traffic] = defaultdict(Traffic)
        for at, accesses in enumerate(self._accesses):
            if at in views or _is_same_place(self.graph.nodes[at], storages):
                continue  # these need no code
            is_npu_call = isinstance(self.graph.nodes[at].operator, EthosU)
            for name, traffic in accesses.tensors.items():
                if not is_npu_call:
                    found[id(storages[name])] += traffic
                elif storages[name] is not scratch[at]:  # the core copies it; other tensors only the NPU accesses
                    found[id(storages[name])] += traffic
                    # A copy: what is loaded from the one is stored to the other.
                    found[id(scratch[at])] += Traffic(traffic.stores, traffic.loads)
            found[id(scratch[at])] += accesses.scratch
        return found

    def refusal(self, buffers: Sequence[Buffer]) -> UnsupportedModelError:
        """Return the error for ``buffers`` that do not fit: a memory, the node at its peak, and the bytes missing."""
        sizes = [max(0, memory.size - memory.reserved) for memory in self.memories]
        # The message assumes the state where there is most room for it.
        largest = max(range(len(sizes)), key=sizes.__getitem__)
        sizes[largest] = max(0, sizes[largest] - self._state)
        at, missing, time = shortage(buffers, sizes, ALIGNMENT)
        memory, nodes = self.memories[at], self.graph.nodes
        missing += max(0, self._state - memory.size)
        state = f"; {self._state} bytes are its state" if self._state else ""
        time = min(time, len(nodes) - 1)
        # By its number, which reports list: names in TensorFlow Lite files are often longer than a line.
        where = f"operator {time} ({nodes[time].operator.label})" if nodes else "the caller"
        others = "".join(f", {each.size} of {each.name}" for each in self.memories if each is not memory)
        return UnsupportedModelError(
            "memories-too-small",
            place=f"{self.graph.name}: memory {memory.name!r}",
            reason=f"{missing} bytes are missing at the peak, {where}: "
            f"the model may take {memory.size} bytes of it{others}{state}",
            hint="let the model take more of it, add a memory, or use a smaller model",
        )


def _is_same_place(node: Node, storages: Mapping[str, Storage]) -> bool:
    """Return whether ``node`` is a RESHAPE whose sides are one storage."""
    return isinstance(node.operator, Reshape) and storages[str(node.inputs[0])] is storages[node.outputs[0]]
