"""Pack buffers with known lifetimes into little memory (dynamic storage allocation with offsets).

Data: a ``Buffer`` has spans, each a number of bytes that are in use from one time to another. All spans of a buffer
begin at its address. The result is an offset for each buffer, so that no two have common bytes at the same time, and
the size of the whole.

The problem is NP-hard, and most instances are easy: the lower bound, the peak of bytes in use at one time, is usually
reached. So the search is a sequence of methods, each slower and better than the one before, and stops at the bound:

1. Orders by a rule. An order of buffers determines a packing: each buffer in turn gets the lowest offset that is free
   during its whole lifetime. Tried are the largest first, the order of time, the longest lifetime first, and the
   largest product of both first.
2. Branch and bound from the bottom up (``skyline``), for at most 200 buffers. It can prove that there is no smaller
   packing.
3. Single buffers are moved to the front of the best order, as long as this makes the packing smaller.

All limits are numbers of steps, not times, so that the result is the same on every machine. ``Work`` is a limit over
several calls: the caller may try many plans of one network, and a large network must not take minutes.

For example, buffers of 48 bytes at times 2 to 4, 64 at 0 to 1, 48 at 1 to 3, 64 at 0, and 48 at 2. At time 2, three of
48 bytes are in use: the bound is 144. The best of the four rules needs 160::

    the best rule    160 bytes
    skyline          144 bytes    offsets 0, 0, 96, 64 and 48

The traps:

- Buffers have several spans if tensors share an address: an output that overwrites its input may be smaller or larger.
  Only spans that meet in time exclude each other, so a buffer is not a rectangle.
- A chain of operators in place has one buffer with hundreds of spans, which is why those that meet a given span are
  found by bisection.
- The number of pairs in use at the same time is limited. A file of a few hundred KB can declare tensors that all live
  at once, and would otherwise take gigabytes of memory.

It does not order the nodes, which would change lifetimes, and does not split a buffer. Sizes are the caller's, who
rounds them up for alignment.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from mlfbuild.library.cgen.skyline import Skyline, Uses


@dataclass(frozen=True)
class Span:
    """``size`` bytes in use from time ``first`` to time ``last``, both included."""

    size: int
    first: int
    last: int

    def meets(self, other: Span) -> bool:
        """Return whether both are in use at the same time."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class Buffer:
    """Spans that begin at the same address; those of one buffer may overlap in time."""

    spans: tuple[Span, ...]

    @property
    def size(self) -> int:
        """Bytes of the largest span."""
        return max(span.size for span in self.spans)

    @cached_property
    def first(self) -> int:
        """The time at which the earliest span begins."""
        return min(span.first for span in self.spans)

    @cached_property
    def last(self) -> int:
        """The time at which the latest span ends."""
        return max(span.last for span in self.spans)

    @cached_property
    def _sorted(self) -> tuple[list[Span], list[int], list[int]]:
        """The spans by their beginning, their beginnings, and the latest end up to each of them."""
        spans = sorted(self.spans, key=lambda span: span.first)
        return spans, [span.first for span in spans], list(accumulate((span.last for span in spans), max))

    def _during(self, other: Span) -> list[Span]:
        """Return the spans that meet ``other``; a chain of operators in place has hundreds of others."""
        spans, firsts, lasts = self._sorted
        # Both lists are sorted, `lasts` because it is a running maximum: spans that cannot meet `other` are cut off at
        # both ends.
        near = spans[bisect_left(lasts, other.first) : bisect_right(firsts, other.last)]
        return [span for span in near if span.last >= other.first]

    def sizes_beside(self, other: Buffer) -> tuple[tuple[int, int], ...]:
        """Return (own bytes, bytes of ``other``) of each pair of spans that meet."""
        if len(self.spans) == len(other.spans) == 1:
            own, its = self.spans[0], other.spans[0]
            return ((own.size, its.size),) if own.meets(its) else ()
        # The search in a sorted list is for the buffer with more spans.
        if len(self.spans) < len(other.spans):
            return tuple((own, its) for its, own in other.sizes_beside(self))
        # A dict keeps the order of insertion, which a set does not promise.
        return tuple({(own.size, its.size): None for its in other.spans for own in self._during(its)})

    def uses(self, times: Sequence[int]) -> Uses:
        """Return (index, bytes in use) for those of the sorted ``times`` at which the buffer is in use."""
        used: dict[int, int] = {}
        for span in self.spans:
            for index in range(bisect_left(times, span.first), bisect_right(times, span.last)):
                used[index] = max(used.get(index, 0), span.size)
        return sorted(used.items())


class Work:
    """A limit of the work of several searches together, so that a large network does not take minutes.

    A step is about a microsecond: one buffer considered for one place.
    """

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        """Count ``steps``; those of a search that has begun may exceed the limit."""
        self.left -= steps


_SEARCHED_BUFFERS = 200
"""With more buffers, branch and bound could not complete even one packing within its budget."""
_IMPROVEMENT_STEPS = 2_000
_IMPROVEMENT_LOOKS = 400_000
"""The most comparisons with a neighbour during improvement, which bounds the time for networks of many buffers."""
_LOOKS_A_STEP = 10
"""Comparisons with a neighbour take this much less time than an offset of branch and bound."""
_MOST_PAIRS = 2_000_000
"""The most pairs of buffers in use at the same time; with more, the search would need minutes and gigabytes."""

Order = Sequence[int]
_Pairs = tuple[tuple[int, int], ...]


def place(buffers: Sequence[Buffer], work: Work | None = None) -> tuple[tuple[int, ...], int]:
    """Return the offset of each of ``buffers`` and the total size in bytes.

    The search has a limit of its own; ``work`` counts its steps for callers that try several plans.
    Raises ``OverflowError`` if too many buffers are in use at the same time.

    For example, two buffers that are never in use at the same time share their bytes::

        place([Buffer((Span(64, 0, 1),)), Buffer((Span(32, 2, 3),))])  # ((0, 0), 64)
    """
    packing = pack(buffers, 0, work)
    return packing.offsets, packing.size


@dataclass(frozen=True)
class Packing:
    """Offsets of buffers and the bytes that they take together."""

    offsets: tuple[int, ...]
    size: int
    exact: bool
    """Whether no packing is smaller than ``size``, unless the search stopped because ``size`` is small enough."""


def pack(buffers: Sequence[Buffer], enough: int, work: Work | None = None) -> Packing:
    """Return a packing of ``buffers``; the search stops as soon as it takes at most ``enough`` bytes.

    ``work`` and errors as for ``place``.
    """
    search = _Search(buffers, enough)
    search.run()
    if work is not None:
        work.spend(search.steps + search.looks // _LOOKS_A_STEP)
    return Packing(search.offsets, search.size, search.done)


def lower_bound(buffers: Sequence[Buffer]) -> int:
    """Return the peak of bytes in use, the least possible size of a packing.

    No packing can be smaller, but buffers that cannot be arranged without gaps may need more.
    """
    used: dict[int, int] = {}
    for uses in uses_of(buffers):
        for index, size in uses:
            used[index] = used.get(index, 0) + size
    return max(used.values(), default=0)


def _neighbours(buffers: Sequence[Buffer]) -> list[list[tuple[int, _Pairs]]]:
    """Return for each of ``buffers`` the others in use at the same time, with ``Buffer.sizes_beside``."""
    _check_pairs(buffers)
    near: list[list[tuple[int, _Pairs]]] = [[] for _ in buffers]
    active: list[int] = []
    for index in sorted(range(len(buffers)), key=lambda index: buffers[index].first):
        buffer = buffers[index]
        # A sweep over time: only buffers that have not ended can meet the next one, so pairs that never meet cost
        # nothing.
        active = [other for other in active if buffers[other].last >= buffer.first]
        for other in active:
            if pairs := buffer.sizes_beside(buffers[other]):
                near[index].append((other, pairs))
                near[other].append((index, tuple((its, own) for own, its in pairs)))
        active.append(index)
    return near


def _check_pairs(buffers: Sequence[Buffer]) -> None:
    lasts = sorted(buffer.last for buffer in buffers)
    firsts = sorted(buffer.first for buffer in buffers)
    # Of the buffers that began earlier, those that have not ended: the number of pairs, without making them.
    before = [index - bisect_left(lasts, first) for index, first in enumerate(firsts)]
    if sum(before) > _MOST_PAIRS:
        raise OverflowError(f"{max(before) + 1} tensors are in use at the same time")


def times_of(buffers: Sequence[Buffer]) -> list[int]:
    """Return the times at which a span of any of ``buffers`` begins, in order."""
    # The use only rises when a span begins, so these times suffice for its peak.
    return sorted({span.first for buffer in buffers for span in buffer.spans})


def uses_of(buffers: Sequence[Buffer]) -> list[Uses]:
    """Return (index in ``times_of``, bytes in use) of each of ``buffers``."""
    times = times_of(buffers)
    return [buffer.uses(times) for buffer in buffers]


class _Search:
    """The best packing found so far."""

    def __init__(self, buffers: Sequence[Buffer], enough: int) -> None:
        self.buffers = buffers
        self.sizes = [buffer.size for buffer in buffers]
        self.lives = [(buffer.first, buffer.last) for buffer in buffers]
        self.bound = max(lower_bound(buffers), enough)
        """Bytes at which the search stops."""
        self.neighbours = _neighbours(buffers)
        # A flat list for the innermost loop of the search, which would otherwise unpack tuples of tuples.
        self.pairs = [[(other, own, its) for other, pairs in near for own, its in pairs] for near in self.neighbours]
        self.order: Order = ()
        self.offsets: tuple[int, ...] = ()
        self.size = -1
        self.exact = False
        self.steps = len(buffers)
        """Offsets that branch and bound computed, and buffers."""
        self.looks = 0
        """Comparisons with a neighbour."""

    def run(self) -> None:
        for order in self._rules():
            self._try(order)
        if not self.done and len(self.sizes) <= _SEARCHED_BUFFERS:
            self._search()
        self._improve()

    @property
    def done(self) -> bool:
        return self.exact or 0 <= self.size <= self.bound

    def _rules(self) -> Iterator[Order]:
        sizes, lives, indices = self.sizes, self.lives, range(len(self.sizes))
        # The largest first, the earliest first, the longest-lived first, the largest product of both first: each is the
        # best one for some networks.
        yield sorted(indices, key=lambda i: (-sizes[i], lives[i][0]))
        yield sorted(indices, key=lambda i: (lives[i][0], -sizes[i]))
        yield sorted(indices, key=lambda i: (lives[i][0] - lives[i][1], -sizes[i]))
        yield sorted(indices, key=lambda i: (-sizes[i] * (lives[i][1] - lives[i][0] + 1), i))

    def _try(self, order: Order) -> bool:
        """Pack in ``order``; return whether the packing is the best so far, and keep it if so."""
        if self.done:
            return False
        offsets = [-1] * len(self.sizes)
        size = 0
        for index in order:
            offsets[index] = self._lowest(index, offsets)
            # A buffer with many neighbours takes longer to place, so these are what is counted.
            self.looks += len(self.neighbours[index])
            size = max(size, offsets[index] + self.sizes[index])
            # It can only grow from here.
            if 0 <= self.size <= size:
                return False
        self.order, self.offsets, self.size = order, tuple(offsets), size
        return True

    def _lowest(self, index: int, offsets: Sequence[int]) -> int:
        """Return the lowest offset at which the buffer ``index`` does not overlap a buffer that has an offset."""
        taken = [(at - own, at + its) for other, own, its in self.pairs[index] if (at := offsets[other]) >= 0]
        # By their lower ends, so that one pass finds the lowest gap.
        taken.sort()
        offset = 0
        for below, above in taken:  # what starts strictly between the two overlaps
            if offset <= below:
                break
            offset = max(offset, above)
        return offset

    def _search(self) -> None:
        """Search for a smaller packing by branch and bound, which can prove that there is none."""
        skyline = Skyline(uses_of(self.buffers), self.size, self.bound)
        self.steps += skyline.run()
        self.exact = skyline.exact
        # Empty if the search found nothing smaller; the packing by rules then stays.
        if skyline.offsets:
            self.offsets, self.size = tuple(skyline.offsets[index] for index in range(len(self.sizes))), skyline.size

    def _improve(self) -> None:
        """Move single buffers to the front as long as this makes the packing smaller."""
        looks = sum(len(near) for near in self.neighbours)
        # A round packs all buffers once for each buffer, so its cost grows with the square of their number.
        steps = min(_IMPROVEMENT_STEPS, _IMPROVEMENT_LOOKS // max(looks, 1))
        better = True
        while better and not self.done:
            better = False
            for index in range(len(self.sizes)):
                steps -= 1
                if steps < 0:
                    return
                # The first improvement is kept, and the rest of the round goes on from it.
                if self._try([index, *(other for other in self.order if other != index)]):
                    better = True
