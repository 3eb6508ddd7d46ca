"""Waits of accesses over the size of the fastest memory: a curve for reports.

The network is planned again with other sizes of that memory, with the same calls, views and overwriting: nothing is
lowered again, and no alternatives are tried. More memory never makes a plan worse, so the curve falls in steps, and few
plans find them: each one halves the interval in which the curve falls most, down to 256 bytes. The sizes that are of
interest in any case are among them: none, the size of the request and 1 KiB more, and all that there is to place.

For example, with the buffers of ``arenas`` and 1,024 instead of 512 bytes of ``dtcm``, nothing waits::

    size     waits
       0    22,720 cycles
     256     2,240     the scratch memory has moved
     512     1,280     so has a
     896         0     so has b
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from mlfbuild.library.cgen import STATE_ALIGNMENT, Work, aligned
from mlfbuild.library.keys import ArenaMemory
from mlfbuild.native.graph import Graph
from mlfbuild.native.lowering import KernelCall
from mlfbuild.native.memory.arenas import Arenas, by_speed
from mlfbuild.native.memory.plan import Plan, Planning

_PLANS = 24
"""The most plans, which take less time than the plan of a network of MLPerf Tiny itself."""
_STEPS = 1_000_000
"""Steps after which no further plan begins. Only plans that are hard to pack take so many: one of them, and the curve
has few points, because the network itself takes long."""
_UNIT = 256
"""Bytes; the resolution of the curve."""
_MORE = 1024


def with_curve(
    graph: Graph, calls: Sequence[KernelCall], plan: Plan, memories: tuple[ArenaMemory, ...], *, arena_io: bool
) -> Plan:
    """Return ``plan``, the plan of ``calls``, with its curve if there are several ``memories``.

    The curve has pairs (bytes of the fastest memory, thousandths of cycles that accesses wait), each with fewer waits
    than the one before it. Sizes with which the network does not fit are not in it.
    """
    if len(memories) < 2:
        return plan
    fastest = by_speed(memories)[0]
    # All that there is to place fits beside each other.
    whole = aligned(plan.arena_size + aligned(plan.state_size, STATE_ALIGNMENT), _UNIT)
    given, work = memories[fastest].size, Work(_STEPS)

    def waits(size: int) -> int | None:
        changed = tuple(replace(each, size=size) if at == fastest else each for at, each in enumerate(memories))
        found = Planning(graph, calls, arena_io, Arenas(graph, calls, changed)).plan(plan.apart, work)
        return found.waits if found.fits else None

    known = {given: plan.waits}
    known |= {size: found for size in sorted({0, given + _MORE, max(given, whole)} - {given})
              if (found := waits(size)) is not None}  # fmt: skip
    tried = {0, *known}
    for _ in range(_PLANS - len(tried)):
        steps = [pair for pair in pairwise(sorted(tried)) if pair[1] - pair[0] > _UNIT]
        # The area of the step: where another point changes the drawn curve most.
        low, high = max(steps, key=lambda pair: _fall(known, *pair) * (pair[1] - pair[0]), default=(0, 0))
        if not steps or not _fall(known, low, high) or work.left <= 0:
            break
        middle = aligned((low + high) // 2, _UNIT) if high - low >= 2 * _UNIT else low + _UNIT
        tried.add(middle)
        found = waits(middle)
        if found is not None:
            known[middle] = found
    return replace(plan, curve=_falling(known))


def _fall(known: Mapping[int, int], low: int, high: int) -> int:
    """Return by how much the waits fall from ``low`` to ``high``; much if the network does not fit into ``low``."""
    if high not in known:
        return 0
    return known.get(low, 2 * max(known.values()) + 1) - known[high]


def _falling(known: Mapping[int, int]) -> tuple[tuple[int, int], ...]:
    """Return those of the sizes whose waits are below those of all smaller ones."""
    found: list[tuple[int, int]] = []
    for size, waits in sorted(known.items()):
        if not found or waits < found[-1][1]:
            found.append((size, waits))
    return tuple(found)
