"""Spread buffers with known lifetimes over several memories: each buffer gets a memory and an offset.

A buffer costs a number in each memory, such as the cycles that accesses to it wait there. The result has the least sum
of costs among all assignments whose buffers fit into the memories. That problem has a knapsack and a packing in it,
both NP-hard; networks are easy because few of their tensors are in use at the same time. The steps:

1. A search over time, in the order in which buffers begin. A state is the memory of each buffer that is in use; a step
   gives the next buffer a memory, if no memory has more bytes in use than it has. That bound ignores gaps between
   buffers, so that the cheapest sequence of steps is a lower bound of the cost. A layer of states is cut to the
   cheapest ``_STATES``; the bound is then only the sum of the lowest costs.
2. Complete assignments are visited in the order of their costs, as A* does with the costs that remain according to
   step 1. The first one whose memories can be packed (``arena.pack``) is the best one.
3. If none of the first ``_VISITS`` can be packed, the cheapest one is repaired: buffers leave a memory that is too
   small, those first that lose least. Then single buffers, and pairs in two memories, are exchanged while this lowers
   the cost.

For example, 8 bytes of fast memory, and three buffers that cost nothing there and as much as their accesses elsewhere::

    a   times 0 to 1   8 bytes   10 accesses
    b   times 1 to 2   4 bytes    9 accesses
    c   times 2 to 3   4 bytes    8 accesses

``a`` excludes ``b``. With ``a`` and ``c`` in fast memory the cost is 9, with ``b`` and ``c`` 10. ``bound`` is 9
as well: the assignment is proven to be the best one.

All limits are numbers of steps, so that the result is the same on every machine. Equal costs are decided in favour of
the memory that is first in the caller's order.

This module knows neither tensors nor cycles, and it does not decide which tensors share a buffer.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlfbuild.library.cgen.arena import Buffer, Packing, Work, pack, times_of

_STATES = 1_000
"""The most states of a layer. With two memories, more need ten buffers in use at the same time."""
_VISITS = 20_000
"""The most partial assignments that are visited in the order of their costs."""
_PACKED = 100
"""The most complete assignments that are packed before the cheapest one is repaired."""
_EXCHANGES = 300
"""The most packings that the improvement tries."""
_STEPS_A_STATE = 5
"""The steps of extending a state, in the unit of ``Work``."""

State = tuple[int, ...]
"""The memory of each buffer that is in use, in the order in which they begin."""


@dataclass(frozen=True)
class SpreadBuffers:
    """A memory and an offset for each buffer."""

    memories: tuple[int, ...]
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    """The bytes that are taken of each memory."""
    cost: int
    bound: int
    """No assignment costs less; equal to ``cost`` if this one is proven to be the best."""


def spread(
    buffers: Sequence[Buffer], costs: Sequence[Sequence[int]], sizes: Sequence[int], work: Work | None = None
) -> SpreadBuffers | None:
    """Return the cheapest assignment that is found, or ``None`` if there is none whose buffers fit.

    ``costs`` has for each buffer its cost in each memory, all at least 0, and ``sizes`` the bytes of each memory.
    ``work`` counts the steps for callers that try several sets of buffers. Raises as ``place``.
    """
    search = _Spreading(buffers, costs, sizes, work or Work(0))
    return search.run()


def shortage(buffers: Sequence[Buffer], sizes: Sequence[int], unit: int) -> tuple[int, int, int]:
    """Return (memory, bytes that it lacks, time of its peak) for ``buffers`` that do not fit.

    ``sizes`` are the bytes of the memories. The memory is the largest one: all buffers fit if it has so many more,
    a multiple of ``unit``.
    """
    largest = max(range(len(sizes)), key=sizes.__getitem__)
    free = [[0] * len(sizes)] * len(buffers)

    def with_more(units: int) -> SpreadBuffers | None:
        more = [size + units * unit * (at == largest) for at, size in enumerate(sizes)]
        return spread(buffers, free, more)

    low, high = 0, 1 + pack(buffers, 0).size // unit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if with_more(middle) is None else (low, middle)
    found = with_more(high)
    inside = [] if found is None else [buffers[at] for at, memory in enumerate(found.memories) if memory == largest]
    return largest, high * unit, peak(inside)


def peak(buffers: Sequence[Buffer]) -> int:
    """Return the first time at which the most bytes of ``buffers`` are in use; 0 without buffers."""
    times = times_of(buffers)
    used = [0] * len(times)
    for buffer in buffers:
        for at, size in buffer.uses(times):
            used[at] += size
    return times[used.index(max(used))] if times else 0


@dataclass(frozen=True)
class _Step:
    """The decision about one buffer."""

    buffer: int
    kept: tuple[int, ...]
    """Positions of the state before it, with its memory behind, that the state after it has."""
    checks: tuple[tuple[tuple[int, int], ...], ...]
    """For times until the next decision, the (position, bytes) of what is in use."""


@dataclass
class _Layers:
    """The states before each step, and what the rest costs from each of them at least."""

    states: list[dict[State, int]] = field(default_factory=list)
    """State -> the least cost that leads to it."""
    cut: bool = False
    """Whether states were left out."""


class _Spreading:
    def __init__(
        self, buffers: Sequence[Buffer], costs: Sequence[Sequence[int]], sizes: Sequence[int], work: Work
    ) -> None:
        self.buffers, self.costs, self.sizes, self.work = buffers, costs, sizes, work
        self.memories = range(len(sizes))
        self.steps = list(_steps(buffers))
        self.proven = True
        """Whether every assignment that was refused is known to be impossible."""
        self._packings: dict[tuple[int, tuple[int, ...]], Packing] = {}

    def run(self) -> SpreadBuffers | None:
        layers = self._layers()
        lowest = sum(min((cost for cost, size in zip(costs, self.sizes, strict=True) if buffer.size <= size), default=0)
                     for buffer, costs in zip(self.buffers, self.costs, strict=True))  # fmt: skip
        found, first, bound = self._in_order(layers) if layers.states[-1] else (None, None, lowest)
        if found is not None:
            exact = self.proven and not layers.cut
            return self._result(found, self._cost(found) if exact else max(lowest, 0 if layers.cut else bound))
        repaired = None if first is None else self._repaired(first)
        # Without states that were left out, no assignment has few enough bytes in use.
        if repaired is None and (first is not None or layers.cut):
            repaired = self._greedy()
        if repaired is None:
            return None
        return self._result(self._improved(repaired), lowest if layers.cut else bound)

    def _cost(self, assigned: Sequence[int]) -> int:
        return sum(costs[memory] for costs, memory in zip(self.costs, assigned, strict=True))

    def _layers(self) -> _Layers:
        layers = _Layers([{(): 0}])
        for step in self.steps:
            after: dict[State, int] = {}
            for state, cost in layers.states[-1].items():
                for memory, longer in self._extended(step, state):
                    total = cost + self.costs[step.buffer][memory]
                    if total < after.get(longer, total + 1):
                        after[longer] = total
            self.work.spend(_STEPS_A_STATE * len(layers.states[-1]) * len(self.sizes))
            if len(after) > _STATES:
                # Sorted by the state as well, so that the order of insertion does not matter.
                after = dict(sorted(after.items(), key=lambda item: (item[1], item[0]))[:_STATES])
                layers.cut = True
            layers.states.append(after)
        return layers

    def _extended(self, step: _Step, state: State) -> Iterator[tuple[int, State]]:
        """Yield each memory that the buffer of ``step`` can have, and the state after that."""
        size = self.buffers[step.buffer].size
        for memory in self.memories:
            longer = (*state, memory)
            if size <= self.sizes[memory] and all(self._holds(check, longer) for check in step.checks):
                yield memory, tuple([longer[at] for at in step.kept])

    def _holds(self, check: Sequence[tuple[int, int]], state: State) -> bool:
        used = [0] * len(self.sizes)
        for at, size in check:
            used[state[at]] += size
        return all(map(int.__le__, used, self.sizes))

    def _rests(self, layers: _Layers) -> list[dict[State, int]]:
        """Return for each layer the least cost from each of its states to the end; states without end are left out."""
        rests = [dict.fromkeys(layers.states[-1], 0)]
        for step, states in zip(self.steps[::-1], layers.states[-2::-1], strict=True):
            before: dict[State, int] = {}
            for state in states:
                ways = [
                    self.costs[step.buffer][memory] + rests[-1][longer]
                    for memory, longer in self._extended(step, state)
                    if longer in rests[-1]
                ]
                if ways:
                    before[state] = min(ways)
            rests.append(before)
        return rests[::-1]

    def _in_order(self, layers: _Layers) -> tuple[State | None, State | None, int]:
        """Return the first assignment in the order of costs that can be packed, the first one, and a lower bound."""
        rests = self._rests(layers)
        # Deeper ones first, so that equal costs lead straight to a complete assignment; then in the caller's order.
        queue: list[tuple[int, int, State, State]] = [(rests[0][()], 0, (), ())]
        first: State | None = None
        packed = visited = bound = 0
        while queue and visited < _VISITS and packed < _PACKED:
            bound, depth, chosen, state = heapq.heappop(queue)
            visited += 1
            if -depth == len(self.steps):
                assigned = self._by_buffer(chosen)
                first = assigned if first is None else first
                packed += 1
                if all(self._packed(memory, self._inside(assigned, memory)) for memory in self.memories):
                    return assigned, first, bound
                continue
            step = self.steps[-depth]
            spent = bound - rests[-depth][state]
            for memory, longer in self._extended(step, state):
                if longer in rests[1 - depth]:
                    least = spent + self.costs[step.buffer][memory] + rests[1 - depth][longer]
                    heapq.heappush(queue, (least, depth - 1, (*chosen, memory), longer))
        self.work.spend(_STEPS_A_STATE * visited)
        return None, first, bound

    def _by_buffer(self, chosen: State) -> State:
        """Return the memories in the order of the buffers, not of the steps."""
        memories = dict(zip((step.buffer for step in self.steps), chosen, strict=True))
        return tuple(memories[at] for at in range(len(self.buffers)))

    def _inside(self, assigned: Sequence[int], memory: int) -> tuple[int, ...]:
        return tuple(at for at, its in enumerate(assigned) if its == memory)

    def _packed(self, memory: int, inside: tuple[int, ...]) -> bool:
        """Return whether a packing of the buffers ``inside`` is found that fits into ``memory``."""
        size = self.sizes[memory]
        key = (memory, inside)
        if key not in self._packings:
            self._packings[key] = pack([self.buffers[at] for at in inside], size, self.work)
        packing = self._packings[key]
        self.proven &= packing.size <= size or packing.exact
        return packing.size <= size

    def _result(self, assigned: Sequence[int], bound: int) -> SpreadBuffers:
        offsets, sizes = [0] * len(self.buffers), []
        for memory in self.memories:
            inside = self._inside(assigned, memory)
            # Known to fit; now as small as possible.
            packing = pack([self.buffers[at] for at in inside], 0, self.work)
            if packing.size > self.sizes[memory]:
                packing = self._packings[memory, inside]
            for at, offset in zip(inside, packing.offsets, strict=True):
                offsets[at] = offset
            sizes.append(packing.size)
        cost = self._cost(assigned)
        return SpreadBuffers(tuple(assigned), tuple(offsets), tuple(sizes), cost, min(bound, cost))

    def _repaired(self, assigned: State) -> State | None:
        """Return ``assigned`` after buffers have left each memory that is too small for a memory behind it."""
        now = list(assigned)
        for memory in self.memories:
            while not self._packed(memory, inside := self._inside(now, memory)):
                moves = [
                    (self.costs[at][to] - self.costs[at][memory], -self.buffers[at].size, at, to)
                    for at in inside
                    for to in self.memories[memory + 1 :]
                    if self.buffers[at].size <= self.sizes[to]
                ]
                if not moves:
                    return None
                *_, at, to = min(moves)
                now[at] = to
        return tuple(now)

    def _greedy(self) -> State | None:
        """Return an assignment in which buffers get the cheapest memory that has room for them, in an order by a rule.

        The largest are first, then those that live longest; the last attempt prefers the memories at the end.
        """
        sizes = [(-buffer.size, at) for at, buffer in enumerate(self.buffers)]
        lives = [(buffer.first - buffer.last, *size) for buffer, size in zip(self.buffers, sizes, strict=True)]
        cheapest = [sorted(self.memories, key=costs.__getitem__) for costs in self.costs]
        last = [list(self.memories)[::-1]] * len(sizes)
        for order, preferred in ((sizes, cheapest), (lives, cheapest), (sizes, last)):
            now = [-1] * len(order)
            if all(self._finds_room(now, at, preferred[at]) for *_, at in sorted(order)):
                return tuple(now)
        return None

    def _finds_room(self, now: list[int], at: int, preferred: Sequence[int]) -> bool:
        """Assign the buffer ``at`` to the first memory that has room for it; return whether one has."""
        for memory in preferred:
            now[at] = memory
            if self._packed(memory, self._inside(now, memory)):
                return True
        return False

    def _improved(self, assigned: State) -> State:
        """Return ``assigned`` after moves and exchanges of buffers that lower the cost."""
        tried = 0
        better = True
        while better:
            better = False
            for change in self._changes(assigned):
                tried += 1
                if tried > _EXCHANGES:
                    return assigned
                now = list(assigned)
                for at, to in change:
                    now[at] = to
                if all(self._packed(to, self._inside(now, to)) for _, to in change):
                    assigned, better = tuple(now), True
                    break
        return assigned

    def _changes(self, assigned: State) -> list[tuple[tuple[int, int], ...]]:
        """Return the moves and exchanges that lower the cost, the best first, each as (buffer, memory) pairs."""
        gains = [
            (self.costs[at][assigned[at]] - self.costs[at][to], ((at, to),))
            for at in range(len(assigned))
            for to in self.memories
        ]
        pairs = [
            (gain + self.costs[other][to] - self.costs[other][assigned[at]], ((at, to), (other, assigned[at])))
            for gain, ((at, to),) in gains
            if gain > 0
            for other in self._inside(assigned, to)
            if self.buffers[other].sizes_beside(self.buffers[at])
        ]
        return [change for gain, change in sorted([*gains, *pairs], key=lambda each: (-each[0], each[1])) if gain > 0]


def _steps(buffers: Sequence[Buffer]) -> Iterator[_Step]:
    order = sorted(range(len(buffers)), key=lambda at: (buffers[at].first, -buffers[at].size, at))
    times = times_of(buffers)
    uses = [dict(buffer.uses(times)) for buffer in buffers]
    live: list[int] = []
    for index, at in enumerate(order):
        end = buffers[order[index + 1]].first if index + 1 < len(order) else times[-1] + 1
        live = [*live, at]
        # Also its own beginning, if others begin with it: what is too much already needs no further steps.
        window = [k for k, time in enumerate(times) if time == buffers[at].first or buffers[at].first <= time < end]
        checks = [tuple((place, uses[it][k]) for place, it in enumerate(live) if k in uses[it]) for k in window]
        kept = tuple(place for place, it in enumerate(live) if buffers[it].last >= end)
        yield _Step(at, kept, tuple(checks))
        live = [live[place] for place in kept]
