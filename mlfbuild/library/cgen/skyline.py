"""Search packings of buffers by branch and bound, from the bottom up.

Every packing can be pushed down without growing until each buffer rests on another one or on the bottom, and can then
be built in the order of offsets. So it is enough to place one buffer after the other, each on top of the placed buffers
that it meets, and never below the previous one. The placed buffers form a skyline, a height for each time. All others
go above the skyline and above the last offset, which bounds the size of every completion. If one buffer fits
completely below another, it is placed first.

The lowest and largest buffers are tried first, as in a greedy packing. The number of departures from this order is
limited, and the limit is doubled until it excludes no branch (limited discrepancy search), so that an early mistake
does not cost the whole search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Uses = Sequence[tuple[int, int]]
"""(time from 0, bytes) for the times at which a buffer is in use."""

_BUDGET = 20_000
"""The most offsets that a search computes, about 30 ms."""


@dataclass(frozen=True)
class _Partial:
    """A packing of some of the buffers."""

    offsets: Mapping[int, int]
    last: int
    """The offset of the buffer that was placed last."""
    heights: tuple[int, ...]
    """The height of the skyline at each time."""
    ahead: tuple[int, ...]
    """The bytes at each time of the buffers that are not placed."""
    left: Mapping[int, int]
    """The buffers that are not placed -> the offset of each on the skyline."""
    top: int
    """The most bytes at any time of the skyline and what is not placed, which goes above it."""


@dataclass
class Skyline:
    """The search for a packing of ``buffers`` in less than ``size`` bytes; it stops at ``bound``."""

    buffers: Sequence[Uses]
    size: int
    bound: int
    offsets: Mapping[int, int] = field(default_factory=dict, init=False)
    """Offset of each buffer in the smallest packing; empty until one is smaller than the initial ``size``."""
    exact: bool = field(default=False, init=False)
    """Whether no packing is smaller than ``size``."""
    _budget: int = field(default=_BUDGET, init=False)
    _cut: bool = field(default=False, init=False)
    """Whether the limit of departures has excluded a branch."""
    _seen: dict[tuple[frozenset[int], tuple[int, ...]], int] = field(default_factory=dict, init=False)
    """Partial packing -> the departures that were left when it was visited."""

    def __post_init__(self) -> None:
        # Bytes in use, summed over time: the buffers that are hardest to place come first.
        areas = [sum(size for _, size in uses) for uses in self.buffers]
        self._order = sorted(range(len(areas)), key=lambda index: -areas[index])
        """The buffers, the largest first. The search numbers them by their place here, to compare them quickly."""
        self._uses = [self.buffers[index] for index in self._order]
        self._most = [max((size for _, size in uses), default=0) for uses in self._uses]
        self._runs = [_runs(uses) for uses in self._uses]
        times = [{time for time, _ in uses} for uses in self._uses]
        # A placed buffer changes the skyline only during its own life, so others need no new offset.
        self._met = [{at for at, its in enumerate(times) if not own.isdisjoint(its)} for own in times]

    def run(self) -> int:
        """Search until the packing is exact or the budget is spent; return the number of computed offsets."""
        times = 1 + max((time for uses in self._uses for time, _ in uses), default=-1)
        ahead = [0] * times
        for uses in self._uses:
            for time, size in uses:
                ahead[time] += size
        left = dict.fromkeys(range(len(self._uses)), 0)
        start = _Partial({}, 0, (0,) * times, tuple(ahead), left, max(ahead, default=0))
        departures = 1
        self.exact = self.size <= self.bound
        while not self.exact and self._budget > 0:
            self._cut = False
            # A visit with fewer departures does not show that a search with more would find nothing.
            self._seen.clear()
            self._extend(start, departures)
            # Exact also without reaching the bound, if the whole tree was searched: no budget ran out and no branch
            # was cut.
            self.exact = self.size <= self.bound or (self._budget > 0 and not self._cut)
            # Doubled, so that all searches together cost about twice as much as the last one.
            departures *= 2
        return _BUDGET - self._budget

    def _extend(self, partial: _Partial, departures: int) -> None:
        """Visit all packings that begin with ``partial``."""
        if not partial.left:
            self.offsets = {self._order[index]: offset for index, offset in partial.offsets.items()}
            self.size = max(offset + self._most[index] for index, offset in partial.offsets.items())
            return
        key = (frozenset(partial.left), partial.heights)
        # The same buffers are left on the same skyline, which was searched with at least as many departures.
        if self._seen.get(key, -1) >= departures:
            return
        self._seen[key] = departures
        for rank, (offset, index) in enumerate(self._candidates(partial)):
            if self._budget <= 0 or self.size <= self.bound:
                return
            if rank > departures:
                self._cut = True
                return
            longer = self._with(partial, index, offset)
            if longer is not None:
                self._extend(longer, departures - rank)

    def _candidates(self, partial: _Partial) -> list[tuple[int, int]]:
        """Return (offset, index) of the buffers that can be placed next, the best first."""
        self._budget -= len(partial.left)
        possible = [(offset, at) for at, offset in partial.left.items() if offset >= partial.last]
        # A buffer that begins above the top of another one can wait for it.
        roof = min([offset + self._most[at] for offset, at in possible], default=0)
        return sorted([each for each in possible if each[0] < roof])

    def _with(self, partial: _Partial, index: int, offset: int) -> _Partial | None:
        """Return ``partial`` with the buffer ``index`` placed, or ``None`` if this cannot lead to a smaller packing."""
        ahead, uses = list(partial.ahead), self._uses[index]
        # The other buffers must go above the skyline and above this offset. Only the times at which this buffer is in
        # use change: everything that is needed then, including this buffer, goes above the offset.
        if max(partial.top, offset + max(ahead)) >= self.size:
            return None
        top = max(partial.top, offset + max([ahead[time] for time, _ in uses], default=0))
        heights = list(partial.heights)
        for time, size in uses:
            heights[time] = offset + size
            ahead[time] -= size
        runs, left = self._runs, dict(partial.left)
        del left[index]
        for at in left.keys() & self._met[index]:
            left[at] = max([max(heights[run]) for run in runs[at]])
        return _Partial({**partial.offsets, index: offset}, offset, tuple(heights), tuple(ahead), left, top)


def _runs(uses: Uses) -> list[slice]:
    """Return the ranges of consecutive times at which a buffer is in use; almost all buffers have one."""
    times = [time for time, _ in uses]
    starts = [time for at, time in enumerate(times) if at == 0 or times[at - 1] != time - 1]
    ends = [time + 1 for at, time in enumerate(times) if times[at + 1 : at + 2] != [time + 1]]
    return [slice(start, end) for start, end in zip(starts, ends, strict=True)]
