"""The arenas of a network over several memories: what stands where, what that gains, and what other sizes would.

All of it is in the network that the compiler recorded; nothing is planned here. Tensors that share bytes, such as both
sides of a RESHAPE, are one place: they overlap in bytes and in time, and nothing else does.

``saved`` and ``waits`` are cycles that accesses wait in a run, by estimate. If the speeds of memories are not known,
they are accesses, each counted as often as its memory has others before it, and ``timed`` is false.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mlfbuild.library import ARENA, Network

KIB = 1024


@dataclass
class _Place:
    """Bytes of the row of all arenas that tensors share, or that are scratch memory."""

    start: int
    end: int
    first: int
    last: int
    accesses: int
    saved: int
    tensors: list[int] = field(default_factory=list)
    operator: int | None = None

    def overlaps(self, other: _Place) -> bool:
        together = self.first <= other.last and other.first <= self.last
        return together and self.start < other.end and other.start < self.end

    def absorb(self, other: _Place) -> None:
        self.start, self.end = min(self.start, other.start), max(self.end, other.end)
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.accesses, self.saved = max(self.accesses, other.accesses), max(self.saved, other.saved)
        self.tensors = sorted([*self.tensors, *other.tensors])


def arenas_json(network: Network) -> dict[str, Any]:
    """Return the arenas of ``network`` as JSON values; empty if it was planned for one memory.

    ``offset`` counts from the beginning of the arena of its memory. ``saved`` is by comparison with the slowest memory,
    and ``more`` what 1 KiB more of the fastest one would save.
    """
    if len(network.memories) < 2:
        return {}
    waits = [(each.load_wait, each.store_wait) for each in network.memories]
    timed = len(set(waits)) > 1
    fastest = min(range(len(waits)), key=lambda at: (sum(waits[at]) if timed else 0, at))
    limit = network.memories[fastest].limit
    now = _waits(network, limit)
    places = list(_places(network))
    memories = [_memory(network, at, base, places) for at, base in enumerate(network.bases)]
    return {
        "arenas": {
            "fastest": network.memories[fastest].name,
            "timed": timed,
            "waits": now,
            "more": now - _waits(network, limit + KIB),
            "memories": memories,
            "curve": [[point.size, point.waits] for point in network.curve],
        }
    }


def _waits(network: Network, size: int) -> int:
    """Return the waits with ``size`` bytes of the fastest memory."""
    return next((point.waits for point in reversed(network.curve) if point.size <= size), 0)


def _memory(network: Network, at: int, base: int, places: list[_Place]) -> dict[str, Any]:
    memory, usage = network.memories[at], network.usage_of(at)
    inside = [place for place in places if base <= place.start < base + memory.size]
    peak = max(usage, default=0)
    return {
        "name": memory.name,
        "base": base,
        "size": memory.size,
        "limit": memory.limit,
        "state": memory.state,
        "load_wait": memory.load_wait,
        "store_wait": memory.store_wait,
        "peak": peak,
        "peak_at": usage.index(peak) if usage else 0,
        "saved": sum(place.saved for place in inside),
        "places": [
            {
                "tensors": place.tensors,
                "operator": place.operator,
                "offset": place.start - base,
                "size": place.end - place.start,
                "first": place.first,
                "last": place.last,
                "accesses": place.accesses,
                "saved": place.saved,
            }
            for place in sorted(inside, key=lambda place: (-place.saved, place.start, place.first))
        ],
    }


def _places(network: Network) -> Iterator[_Place]:
    found: list[_Place] = []
    for at, tensor in enumerate(network.tensors):
        if tensor.memory != ARENA or tensor.offset is None:
            continue
        place = _Place(tensor.offset, tensor.offset + tensor.size, tensor.first, tensor.last,
                       tensor.accesses or 0, tensor.saved or 0, [at])  # fmt: skip
        for other in [each for each in found if each.overlaps(place)]:
            found.remove(other)
            place.absorb(other)
        found.append(place)
    yield from found
    for at, operator in enumerate(network.operators):
        if (scratch := operator.scratch) is not None:
            yield _Place(scratch.offset, scratch.offset + scratch.size, at, at,
                         scratch.accesses or 0, scratch.saved or 0, operator=at)  # fmt: skip
