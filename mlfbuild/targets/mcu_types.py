"""The rows of the table of microcontrollers: clocks, caches, and memories with their wait states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from mlfbuild.core import UsageError
from mlfbuild.core.keys import Keys, parse_frequency
from mlfbuild.targets.part_keys import ControlKeys, PartMemoryKeys, TimingKeys


@dataclass(frozen=True)
class MemoryCache:
    """A cache or a set of line buffers between a core and memories."""

    size: int
    """Bytes."""
    line: int
    """Bytes of one line."""
    ways: int
    """Lines of a set; ``size // line`` for a fully associative cache."""
    policy: str = "lru"
    """Which line of a set is replaced: ``lru``, ``round-robin`` or ``pseudo-random``."""
    hit: int = 0
    """Wait states of an access that hits."""
    write_back: bool = False
    """Whether it holds written lines back, and allocates lines for writes; otherwise writes pass it."""
    miss: int = 0
    """Cycles that a miss takes besides those of the memory: look-up, bus matrix, bridge."""
    sector: int = 0
    """Bytes that a miss fills if parts of a line are valid independently; 0 for the whole line. A line has at most 64
    sectors."""


@dataclass(frozen=True)
class TimedMemory:
    """A memory of a microcontroller as its core sees it."""

    size: int
    """Bytes."""
    width: int = 4
    """Bytes that one access of the memory reads: 16 for a flash that reads 128 bits at a time."""
    waits: int = 0
    """Wait states of such an access at the clock of the part."""
    burst: int = -1
    """Wait states of each further access of a line fill; -1 if they are ``waits``."""
    write_waits: int = 0
    """Wait states of a write that no buffer hides."""
    hidden_waits: int = 0
    """Wait states of a load, without a cache, that the core does not notice."""
    fetch_waits: int = 0
    """Further wait states of an instruction fetch, without a cache; the core fetches the next word meanwhile."""
    prefetch: bool = False
    """Whether it reads the next ``width`` bytes of code ahead while the core executes."""
    fetch_cache: str = ""
    """The cache that instruction fetches pass; empty without one: the last ``width`` bytes are buffered then."""
    read_cache: str = ""
    """The cache that loads pass; it may be the same. Empty without one."""


@dataclass(frozen=True)
class Mcu:
    """A microcontroller: one core with its caches and memories, at one clock.

    A model for cycles only: ``mlfbuild.timing`` adds up costs of its core (``cpu``) and the wait states of
    ``memories``, which depend on the clock. ``error`` is what the memories add to the stated error of the core.
    """

    name: str
    """The project file's word: ``stm32l4r5``."""
    title: str
    """Description: ``STM32L4R5 and its family``."""
    cpu: str
    """Name in the table of CPUs."""
    clock: int
    """Highest clock of the core in Hz; the default."""
    memories: Mapping[str, TimedMemory]
    """By name: ``flash``, ``sram``, ``itcm``, ``dtcm``, ``external``. The first contains code and constants, the second
    all data, unless a project places them elsewhere. ``waits`` are those at ``clock``."""
    caches: Mapping[str, MemoryCache] = field(default_factory=dict)
    """By name, as memories refer to them."""
    wait_states: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    """For memories whose wait states depend on the clock: pairs of the highest clock in Hz and the wait states, in
    ascending order."""
    sources: Sequence[str] = ()
    """Documents with their sections."""
    assumptions: Sequence[str] = ()
    """Settings of the part that are assumed (bank mode, prefetch, caches), and values that no public document has."""
    error: int = 0
    """Added to the stated error of the core for the memories, in per cent."""
    memory: PartMemoryKeys | None = None
    """Regions for test firmware that is loaded through a debugger; ``None`` if the table has none."""
    control: ControlKeys | None = None
    """The registers that have the settings of the first memory; ``None`` if the table has none."""

    def at(self, clock: int) -> Mcu:
        """Return the part at ``clock`` Hz, with the wait states that it needs there.

        Raises ``UsageError`` for a clock that the part does not reach.
        """
        if not 0 < clock <= self.clock:
            reason = f"{self.name} runs at 1 Hz to {self.clock} Hz"
            raise UsageError(
                "clock-out-of-range", place=f"{clock} Hz", reason=reason, hint="choose a clock in the range"
            )
        slower = {
            # Steps are ascending, so the first one that reaches the clock has the fewest wait states that suffice.
            name: replace(self.memories[name], waits=next(waits for highest, waits in steps if clock <= highest))
            for name, steps in self.wait_states.items()
        }
        return replace(self, clock=clock, memories={**self.memories, **slower})

    def with_data_in(self, memory: str) -> Mcu:
        """Return the part with its data in ``memory`` instead of its second one.

        ``memory`` is a name in ``memories`` (``KeyError`` otherwise). The first memory, with code and constants, stays
        first.
        """
        code, *_ = self.memories
        # The second memory has all data.
        order = dict.fromkeys((code, memory, *self.memories))
        return replace(self, memories={name: self.memories[name] for name in order})

    def as_set(self, read: Callable[[int], int]) -> Mcu:
        """Return the part with the settings of its first memory that its control registers have.

        ``read`` returns the word at an address. Settings that the table names no bits for stay.
        """
        name = next(iter(self.memories))
        settings = {} if self.control is None else self.control.values(read)
        off = {getattr(self.memories[name], each) for each in ("fetch_cache", "read_cache") if settings.get(each) == 0}
        found: dict[str, Any] = {"waits": settings["waits"]} if "waits" in settings else {}
        if "prefetch" in settings:
            found["prefetch"] = bool(settings["prefetch"])
        # The cache of a core serves all memories.
        memories = {
            each: replace(
                memory,
                fetch_cache="" if memory.fetch_cache in off else memory.fetch_cache,
                read_cache="" if memory.read_cache in off else memory.read_cache,
            )
            for each, memory in self.memories.items()
        }
        return replace(self, memories={**memories, name: replace(memories[name], **found)})

    def settings(self) -> str:
        """Return the settings of the first memory for people: ``flash: 5 wait states, prefetch off, caches on``."""
        name, memory = next(iter(self.memories.items()))
        states = f"{memory.waits} wait state{'' if memory.waits == 1 else 's'}"
        caches = [word for word, cache in (("code", memory.fetch_cache), ("data", memory.read_cache)) if cache]
        cached = f"cache for {' and '.join(caches)}" if caches else "no cache"
        return f"{name}: {states}, prefetch {'on' if memory.prefetch else 'off'}, {cached}"

    def changed(self, keys: TimingKeys) -> Mcu:
        """Return the part at its highest clock with the values that ``keys`` has.

        The required values of a new memory or cache are 0 if ``keys`` has none.
        """
        # Copies: the row of the table is shared by all targets.
        memories, caches, steps = dict(self.memories), dict(self.caches), dict(self.wait_states)
        for name, memory in keys.memories.items():
            memories[name] = _merged(memories.get(name), memory, TimedMemory)
            # A fixed number replaces the wait states by clock.
            if memory.waits is not None:
                steps.pop(name, None)
            if memory.wait_states:
                steps[name] = tuple((parse_frequency(clock) or 0, waits) for clock, waits in memory.wait_states.items())
        for name, cache in keys.caches.items():
            caches[name] = _merged(caches.get(name), cache, MemoryCache)
        clock = keys.clock or self.clock
        return replace(self, clock=clock, memories=memories, caches=caches, wait_states=steps)


_Row = TypeVar("_Row", TimedMemory, MemoryCache)


def needed_keys(row: type[TimedMemory | MemoryCache]) -> tuple[str, ...]:
    """Return the fields that a new memory or cache must have."""
    return ("size",) if row is TimedMemory else ("size", "line", "ways")


def _merged(base: _Row | None, keys: Keys, row: type[_Row]) -> _Row:
    """Return ``base``, or a new ``row``, with the values that ``keys`` has."""
    known = {each.name for each in fields(row)}
    given = {name: value for name, value in vars(keys).items() if name in known and value is not None}
    return replace(base, **given) if base is not None else row(**{**dict.fromkeys(needed_keys(row), 0), **given})
