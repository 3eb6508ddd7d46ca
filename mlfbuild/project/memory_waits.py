"""Average waits of a core for words of a memory, from the values of the cycle model.

The plan of arenas needs two numbers for each memory: the cycles that 1,000 loads and 1,000 stores of a word wait if
bytes are accessed in order. They follow the plugin that models cycles (``verify/emulator/memories.h``):

- Without a cache, a word takes ``waits``, and ``burst`` + 1 for each further access of a narrow memory, less
  ``hidden_waits``. A store waits ``write_waits``.
- With a cache, one word of a line, or of a sector, misses: it waits for the look-up and the first part, and the words
  behind it for what of the line is still on its way while the core takes a word a cycle. All words wait ``hit``.
- A write-back cache reads the line before it is written, and writes it back later. The core does not wait for one
  store, but a row of stores is as slow as the memory.

Tensors that fit a cache and are read again cost less than this; their order among memories stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from mlfbuild.project.memory_keys import TargetMemoryKeys
from mlfbuild.targets import MemoryCache, MemoryKeys, TimedMemory

_WORD = 4
_LOADS = 1000
_RANK = 1000
"""The wait of 1,000 words of each memory above that of the one before it, if only their order is known."""


def is_timed(keys: TargetMemoryKeys | None) -> bool:
    """Return whether ``keys`` say how fast a memory is."""
    names = [field.name for field in fields(MemoryKeys) if field.name != "size"]
    return keys is not None and any(getattr(keys, name) not in (None, {}) for name in names)


def waits_of(
    known: tuple[Mapping[str, TimedMemory], Mapping[str, MemoryCache]], names: Sequence[str], *, timed: bool
) -> list[tuple[int, int]]:
    """Return the waits of 1,000 loads and of 1,000 stores for each of the memories ``names``.

    ``known`` has memories and caches by name. If nothing is ``timed``, the first memory waits least, so that the bytes
    that go to later ones are fewest.
    """
    if not timed:
        return [(at * _RANK, at * _RANK) for at in range(len(names))]
    memories, caches = known
    found = [memories.get(name, TimedMemory(0)) for name in names]
    return [_waits(memory, caches.get(memory.read_cache)) for memory in found]


def _waits(memory: TimedMemory, cache: MemoryCache | None) -> tuple[int, int]:
    burst = memory.waits if memory.burst < 0 else memory.burst
    if cache is None:
        wait = memory.waits + (_WORD - 1) // memory.width * (burst + 1) - memory.hidden_waits
        return max(0, wait) * _LOADS, memory.write_waits * _LOADS
    line = cache.sector or cache.line
    words, parts = max(1, line // _WORD), max(1, -(-line // memory.width))
    stream = (parts - 1) * (burst + 1)
    load = cache.hit * words + cache.miss + memory.waits + max(0, stream - words)
    if not cache.write_back:
        return load * _LOADS // words, memory.write_waits * _LOADS
    store = cache.miss + memory.waits + 1 + stream + parts * (memory.write_waits + 1)
    return load * _LOADS // words, max(0, store - words) * _LOADS // words
