"""The memory plan: the address of each tensor while the network runs, decided at compile time.

Where tensors are:

- Inputs and outputs are in the caller's buffers. An input is only read; an output buffer holds only its output. With
  the option ``io: arena`` both are in the arena: an input until its last reader, an output from its writer to the end.
- Constants are in flash.
- Data that is kept between runs is in a separate block, the state.
- All other tensors, and the scratch memory of kernels, share one block, the arena.

Tensors that share an address form a storage (``storages.py``). A storage has spans: a number of bytes and the first and
the last node that use them. A plan is made in this order:

1. Each tensor is a storage. The sides of a RESHAPE are one storage, and it costs nothing, unless neither is in the
   arena or its input is constant.
2. A tensor that is a contiguous part of another one, such as an operand of CONCATENATION along the outermost dimension
   larger than 1, moves into its storage at an offset (``views.py``). The node then needs no code. Both must be in the
   arena, and the offset a multiple of 16 bytes; ``make_view`` has the other conditions.
3. The nodes that read and write a storage determine its spans.
4. If a run no longer needs the old value of a state when it writes the new one, that is written in its place. Otherwise
   the new value stays in use until the end of the run and is copied then.
5. Tensors at the border of an NPU move into its working memory (``borders.py``), and the output of a node whose kernel
   permits it into the storage of an input in the arena that no later node reads.
6. ``arena.place`` chooses the offsets, so that no two storages have common bytes at the same time. Sizes are rounded up
   to 16 bytes.

Sharing an address can prevent a better packing: a view keeps the whole storage in use from the first part on, and an
output that overwrites an input must begin at its address. So plans without views and without borders of an NPU are also
tried. As long as the arena is larger than the lower bound, the most bytes in use at one time, so are plans in which
single nodes share nothing. The number of steps is limited: the same network always has the same plan.

For example, with float32 tensors and ``d`` an output of CONCATENATION::

    node 0   SOFTMAX        x[64]          -> a[64]     256 bytes
    node 1   ABS            a              -> b[64]     256
    node 2   SOFTMAX        a              -> c[64]     256
    node 3   CONCATENATION  b, c           -> d[128]    512
    node 4   SOFTMAX        d              -> y[128]    the caller's buffer

``b`` and ``c`` are views of ``d``, at its offsets 0 and 256, and node 3 copies nothing. ``d`` is in use from node 1,
which writes ``b``, to node 4, and ``a`` from node 0 to node 2. Both kernels that read ``a`` may overwrite it, but node
2 still reads it after ABS, and ``c`` is a part of ``d``. During nodes 1 and 2, ``a`` and ``d`` are in use, 768 bytes,
which is the lower bound. The plan reaches it::

    arena   0 to 511   d (b at 0, c at 256)
          512 to 767   a

A separate step, ``use_free_memory``, gives kernels that are faster with more scratch memory the largest part of the
arena that is free while they run. It neither moves a tensor nor makes the arena larger.

If the request has several memories, ``arenas.py`` does step 6: storages get memories as well, and plans are compared by
the cycles that accesses wait. Views and overwriting are tried in the same way, because a storage of several tensors is
in one memory. A plan exists only if everything fits.

The plan does not change the order of nodes (``order.py`` does), and does not split them: ``passes/fusion.py`` decides
which ones run row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library.cgen import Buffer, Span, Work, aligned, lower_bound, place
from mlfbuild.library.keys import ArenaMemory
from mlfbuild.native.graph import Graph
from mlfbuild.native.lowering import KernelCall
from mlfbuild.native.memory.arenas import Arenas, PlannedMemory, PlannedStorage, by_speed
from mlfbuild.native.memory.borders import arena_alignment, share_working_memory
from mlfbuild.native.memory.storages import (
    Location,
    Storage,
    StorageKind,
    leave_states,
    make_view,
    note_lifetimes,
    reuse_inputs,
    state_size,
    storages_of,
)

# Offsets are int32 literals in C.
LARGEST_ARENA = (1 << 31) - 1

_TRIED_STEPS = 200_000
"""Steps of all trials together, about half a second: twenty trials for a network of a hundred operators."""
_STEPS_A_NODE = 20
"""The cost of a trial besides packing."""


@dataclass(frozen=True)
class Plan:
    """The location of every tensor that nodes read or write."""

    locations: Mapping[str, Location]
    arena_size: int
    lower_bound: int
    """Bytes in use at the same time: no plan of these calls in this order is smaller."""
    scratch: tuple[int, ...]
    """The offset in the arena of each node's scratch memory; 0 for those that need none."""
    used: tuple[tuple[int, Span], ...]
    """The parts of the arena that hold tensors: their offsets, and their bytes and times."""
    copies: tuple[tuple[str, Location], ...]
    """Outputs and states to copy after all nodes, in this order, and their destinations."""
    inputs: tuple[Location, ...]
    outputs: tuple[Location, ...]
    """The places at which the caller writes each input before a run and reads each output after it."""
    state_size: int = 0
    """Bytes that are kept between runs."""
    views: frozenset[int] = frozenset()
    """Indices of the nodes that need no code, because their tensors are views of each other."""
    borders: frozenset[int] = frozenset()
    """Indices of the calls of an NPU that have tensors of the network in their working memory."""
    apart: frozenset[int] = frozenset()
    """Indices of the nodes that could share memory in one of these ways, but do not, because the arena is smaller."""
    memories: tuple[PlannedMemory, ...] = ()
    """The arenas in the memories of the request, in its order; their sizes are ``arena_size`` together. Empty without
    such memories."""
    storages: tuple[PlannedStorage, ...] = ()
    """The contents of ``memories``."""
    waits: int = 0
    """Thousandths of cycles that accesses to ``memories`` wait in a run."""
    waits_bound: int = 0
    """No plan with these storages waits less."""
    least_waits: int = 0
    """The waits if all were in the fastest memory."""
    curve: tuple[tuple[int, int], ...] = ()
    """Sizes of the fastest memory, and the waits of a plan with so much of it (``curve``)."""
    fits: bool = True
    """Whether all storages are in ``memories``; if not, only ``refused`` tells anything."""
    refused: tuple[Buffer, ...] = ()

    @property
    def arenas(self) -> tuple[PlannedMemory, ...]:
        """The memories that have an arena, if there are several; a single arena is a program's usual workspace."""
        used = tuple(each for each in self.memories if each.size)
        return used if len(used) > 1 else ()

    @property
    def is_best(self) -> bool:
        """Whether no other choice of views and overwriting can make it better."""
        if not self.fits:
            return False
        if len(self.memories) > 1:
            return self.waits <= self.least_waits
        return self.arena_size <= self.lower_bound

    @property
    def rank(self) -> tuple[bool, int, int]:
        """A better plan has a lower one."""
        return not self.fits, self.waits, self.arena_size if self.fits else self.lower_bound


def plan_memory(
    graph: Graph, calls: Sequence[KernelCall], *, arena_io: bool = False, memories: tuple[ArenaMemory, ...] = ()
) -> Plan:
    """Return the memory plan of ``graph``, whose nodes are lowered to ``calls``.

    With ``arena_io``, inputs and outputs are in the arena. If storages do not fit into ``memories``, the plan has no
    ``fits``: ``check_fits`` raises the error for it.
    Raises ``UnsupportedModelError`` if the arena would be larger than 2 GiB, or if a state that its kernel can only
    update in place cannot be updated there.
    """
    planning = Planning(graph, calls, arena_io, Arenas(graph, calls, memories) if memories else None)
    # The first plan always runs to its end; only trials count against the limit of steps.
    plan = planning.plan(frozenset())
    work = Work(_TRIED_STEPS)
    # A view lets parts live as long as the whole; without views, short-lived parts can share memory with others.
    for sharing in filter(None, (plan.views, plan.borders)):
        plan = min(plan, planning.plan(sharing, work), key=lambda plan: plan.rank)
    # Greedy: each node is tried once, in order, and a change that helps is kept for the following trials.
    for index, call in enumerate(calls):
        if plan.is_best or work.left <= 0:
            break
        # Nodes that neither overwrite nor make views share nothing, so that a trial would give the same plan.
        if call.overwrites or index in plan.views | plan.borders:
            plan = min(plan, planning.plan(plan.apart | {index}, work), key=lambda plan: plan.rank)
    if plan.arena_size > LARGEST_ARENA:
        raise UnsupportedModelError(
            "arena-too-large",
            place=graph.name,
            reason=f"needs an arena of {plan.arena_size} bytes, but at most {LARGEST_ARENA} are supported",
            hint="use a smaller model",
        )
    # Only for the plan that is used: a trial may well separate a state from its update.
    _check_updates(graph, calls, plan.locations)
    return plan


def check_fits(graph: Graph, calls: Sequence[KernelCall], plan: Plan, memories: tuple[ArenaMemory, ...]) -> None:
    """Raise ``UnsupportedModelError`` if ``plan`` does not fit into ``memories``.

    The error names a memory, the operator during which the most bytes of it are in use, and how many it lacks.
    """
    if not plan.fits:
        raise Arenas(graph, calls, memories).refusal(plan.refused)


def use_free_memory(calls: Sequence[KernelCall], plan: Plan) -> tuple[list[KernelCall], Plan]:
    """Return ``calls`` with more scratch memory where it is free and makes them faster, and their plan.

    Nothing else moves, and the arena does not grow. With several memories, only the fastest of them is used.

    A kernel with ``grown`` has variants that are faster with more scratch memory. ``plan`` must be the plan of
    ``calls``. Returns the calls in the same order, and the plan with the new offsets of scratch memory.
    """
    faster, scratch = list(calls), list(plan.scratch)
    first, end = 0, plan.arena_size
    if plan.memories:
        fastest = plan.memories[by_speed([each.memory for each in plan.memories])[0]]
        first, end = fastest.base, fastest.end
    used: list[list[tuple[int, int]]] = [[] for _ in calls]
    for start, span in plan.used:
        for at in range(span.first, min(span.last + 1, len(calls))):
            used[at].append((start, start + span.size))
    for at, call in enumerate(calls):
        if call.grown is not None:
            # Scratch memory of the node itself is not in ``used``, so that its present place counts as free.
            offset, size = _largest_gap(used[at], first, end)
            faster[at] = call.with_room(size)
            # Never smaller: a kernel whose larger variant does not fit keeps what it was lowered with.
            if faster[at].scratch > call.scratch:
                scratch[at] = offset
    return faster, replace(plan, scratch=tuple(scratch))


def _largest_gap(used: list[tuple[int, int]], first: int, behind: int) -> tuple[int, int]:
    """Return offset and bytes of the largest part of the arena between the ranges ``used``.

    ``used`` has pairs (start, end) in bytes, which may overlap; gaps are between ``first`` and ``behind``.
    """
    used = sorted(each for each in used if first < each[1] and each[0] < behind)
    # The running maximum of the ends: ranges overlap, since a view lies inside of its whole.
    ends = accumulate((end for _, end in used), max, initial=first)
    starts = (*(start for start, _ in used), behind)
    return max(((end, start - end) for end, start in zip(ends, starts, strict=True)), key=lambda gap: gap[1])


def _check_updates(graph: Graph, calls: Sequence[KernelCall], locations: Mapping[str, Location]) -> None:
    for node, call in zip(graph.nodes, calls, strict=True):
        for read, written in call.updates:
            before, after = str(node.inputs[read]), node.outputs[written]
            # Equal locations mean in place; a copy at the end of the run would come too late for the kernel.
            if locations[before] != locations[after]:
                raise UnsupportedModelError(
                    "state-used-twice",
                    place=f"{graph.name}: {node.operator.name} {node.name!r}",
                    reason=f"its state {before!r} is also used by another operator or as an output",
                    hint="use a separate state for each operator, and copy a state that is an output",
                )


class Planning:
    """The plans of one network."""

    def __init__(self, graph: Graph, calls: Sequence[KernelCall], arena_io: bool, arenas: Arenas | None) -> None:
        self.graph, self.calls, self.arena_io, self.arenas = graph, calls, arena_io, arenas

    def plan(self, apart: frozenset[int], work: Work | None = None) -> Plan:
        """Return a plan in which the nodes ``apart`` do not share memory; ``work`` counts steps."""
        graph, calls = self.graph, self.calls
        if work is not None:
            work.spend(len(calls) * _STEPS_A_NODE)
        storages = storages_of(graph, arena_io=self.arena_io)
        # The order of the calls matters and is explained in ``storages.py``: each one relies on those before it.
        views = frozenset(
            at for at, node in enumerate(graph.nodes) if at not in apart and make_view(graph, node, storages)
        )
        note_lifetimes(graph, storages)
        leave_states(graph, calls, storages)
        borders = share_working_memory(graph, storages, apart)
        reuse_inputs(graph, calls, storages, apart)
        # Other scratch memory is a storage of one node, so that it is packed together with the tensors.
        scratch = [Storage(StorageKind.ARENA, 0, [Span(call.scratch, at, at)]) for at, call in enumerate(calls)]
        for at, name in borders.items():
            scratch[at] = storages[name]
        outputs = _outputs(graph, storages, self.arena_io)
        arena = _in_arena([*storages.values(), *(used for used, call in zip(scratch, calls, strict=True)
                                                 if call.scratch), *outputs])  # fmt: skip
        plan = self._placed(storages, arena, scratch, views, work)
        locations = {
            name: Location(storage.area, storage.position + storage.offsets.get(name, 0))
            for name, storage in storages.items()
        }
        read_at = tuple(
            locations[name] if storage is storages[name] else Location(storage.area, storage.position)
            for name, storage in zip(graph.outputs, outputs, strict=True)
        )
        return replace(
            plan,
            locations=locations,
            scratch=tuple(storage.position for storage in scratch),
            # Without scratch memory: ``use_free_memory`` replaces it, so that its place must count as free.
            used=tuple(
                (storage.position, Span(aligned(span.size), span.first, span.last))
                for storage in _in_arena(storages.values())
                for span in storage.spans
            ),
            copies=(*_output_copies(graph, locations, read_at), *_state_copies(graph, locations)),
            inputs=tuple(locations[name] for name in graph.inputs),
            outputs=read_at,
            state_size=state_size(graph),
            views=views,
            borders=frozenset(borders),
            apart=apart,
        )

    def _placed(
        self,
        storages: Mapping[str, Storage],
        arena: Sequence[Storage],
        scratch: Sequence[Storage],
        views: frozenset[int],
        work: Work | None,
    ) -> Plan:
        """Set the positions of ``arena``; return the sizes and memories of a plan."""
        # Rounded up, so that every offset stays a multiple of 16 bytes wherever a buffer is placed.
        buffers = [Buffer(tuple(Span(aligned(span.size), span.first, span.last) for span in storage.spans))
                   for storage in arena]  # fmt: skip
        line = arena_alignment(self.graph)
        plan = Plan({}, 0, aligned(lower_bound(buffers), line), (), (), (), (), ())
        try:
            if self.arenas is None:
                positions, size = place(buffers, work)
                plan = replace(plan, arena_size=aligned(size, line))
            else:
                placed = self.arenas.place(storages, arena, scratch, buffers, views, work)
                if placed is None:
                    return replace(plan, fits=False, refused=tuple(buffers))
                positions, memories = placed.positions, placed.memories
                plan = replace(
                    plan, arena_size=sum(each.size for each in memories), memories=memories, storages=placed.storages,
                    waits=placed.waits, waits_bound=placed.waits_bound, least_waits=placed.least_waits,
                )  # fmt: skip
        except OverflowError as error:
            reason = f"{error}, more than the memory planner supports"
            hint = "use a smaller model"
            raise UnsupportedModelError(
                "too-many-live-tensors", place=self.graph.name, reason=reason, hint=hint
            ) from None
        for storage, position in zip(arena, positions, strict=True):
            storage.position = position
        return plan


def _outputs(graph: Graph, storages: Mapping[str, Storage], arena_io: bool) -> list[Storage]:
    """Return where the caller reads each output; constants and states are copied there at the end of the run."""
    if not arena_io:
        return [Storage(StorageKind.OUTPUT, index) for index in range(len(graph.outputs))]
    # Time ``len(nodes)`` is after the last node: the caller reads the copies then.
    end = len(graph.nodes)
    copies = {
        name: Storage(StorageKind.ARENA, 0, [Span(graph.tensor(name).size, end, end)])
        for name in graph.outputs
        if storages[name].area is not StorageKind.ARENA
    }
    return [copies.get(name, storages[name]) for name in graph.outputs]


def _output_copies(
    graph: Graph, locations: Mapping[str, Location], read_at: Sequence[Location]
) -> Iterator[tuple[str, Location]]:
    # ``dict.fromkeys`` because a tensor may be an output twice: with ``io: arena`` both are one copy.
    for name, location in dict.fromkeys(zip(graph.outputs, read_at, strict=True)):
        if locations[name] != location and graph.tensor(name).elements:
            yield name, location


def _state_copies(graph: Graph, locations: Mapping[str, Location]) -> Iterator[tuple[str, Location]]:
    """Yield the states to copy, each after the copies that read its destination, as in a delay line."""
    waiting = {
        # A state whose new value has its place already needs no copy.
        locations[state.before]: state.after
        for state in graph.states
        if locations[state.before] != locations[state.after]
    }
    while waiting:
        # In a delay line a state moves to the place of the next one, which must have moved before.
        read = {locations[name] for name in waiting.values()}
        free = [location for location in waiting if location not in read]
        if not free:
            raise UnsupportedModelError(
                "states-swapped",
                place=graph.name,
                reason=f"the states {', '.join(repr(name) for name in waiting.values())} are swapped in each run",
                hint="compute at least one of them with an operator",
            )
        for location in free:
            yield waiting.pop(location), location


def _in_arena(storages: Iterable[Storage]) -> list[Storage]:
    # By identity: many names share a storage, and equal storages are still different memory. Without spans no node uses
    # it.
    unique = {id(storage): storage for storage in storages if storage.area is StorageKind.ARENA and storage.spans}
    return list(unique.values())
