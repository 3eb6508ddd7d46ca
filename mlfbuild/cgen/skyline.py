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
"""The most offsets that a search computes, about 50 ms."""


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
    left: frozenset[int]


@dataclass
class Skyline:
    """The search for a packing of ``buffers`` in less than ``size`` bytes; ``bound`` is a lower bound."""

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

    def run(self) -> None:
        """Search until the packing is exact or the budget is spent."""
        times = 1 + max((time for uses in self.buffers for time, _ in uses), default=-1)
        ahead = [0] * times
        for uses in self.buffers:
            for time, size in uses:
                ahead[time] += size
        start = _Partial({}, 0, (0,) * times, tuple(ahead), frozenset(range(len(self.buffers))))
        departures = 1
        self.exact = self.size == self.bound
        while not self.exact and self._budget > 0:
            self._cut = False
            self._seen.clear()
            self._extend(start, departures)
            self.exact = self.size == self.bound or (self._budget > 0 and not self._cut)
            departures *= 2

    def _extend(self, partial: _Partial, departures: int) -> None:
        """Visit all packings that begin with ``partial``."""
        if not partial.left:
            self.offsets = partial.offsets
            self.size = max(offset + self._most(index) for index, offset in partial.offsets.items())
            return
        key = (partial.left, partial.heights)
        if self._seen.get(key, -1) >= departures:
            return
        self._seen[key] = departures
        for rank, (offset, index) in enumerate(self._candidates(partial)):
            if self._budget <= 0 or self.size == self.bound:
                return
            if rank > departures:
                self._cut = True
                return
            longer = self._with(partial, index, offset)
            if longer is not None:
                self._extend(longer, departures - rank)

    def _most(self, index: int) -> int:
        return max((size for _, size in self.buffers[index]), default=0)

    def _candidates(self, partial: _Partial) -> list[tuple[int, int]]:
        """Return (offset, index) of the buffers that can be placed next, the best first."""
        self._budget -= len(partial.left)
        heights = partial.heights
        offsets = ((max((heights[time] for time, _ in self.buffers[at]), default=0), at) for at in partial.left)
        possible = [(offset, at) for offset, at in offsets if offset >= partial.last]
        roof = min((offset + self._most(at) for offset, at in possible), default=0)
        below = [(offset, at) for offset, at in possible if offset < roof]
        return sorted(below, key=lambda each: (each[0], -sum(size for _, size in self.buffers[each[1]]), each[1]))

    def _with(self, partial: _Partial, index: int, offset: int) -> _Partial | None:
        """Return ``partial`` with the buffer ``index`` placed, or ``None`` if this cannot lead to a smaller packing."""
        heights, ahead = list(partial.heights), list(partial.ahead)
        for time, size in self.buffers[index]:
            heights[time] = offset + size
            ahead[time] -= size
        least = max(max(height, offset) + size if size else height for height, size in zip(heights, ahead, strict=True))
        if least >= self.size:
            return None
        offsets = {**partial.offsets, index: offset}
        return _Partial(offsets, offset, tuple(heights), tuple(ahead), partial.left - {index})
