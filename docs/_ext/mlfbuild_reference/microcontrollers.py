"""The page of the microcontrollers that the cycle model knows."""

from __future__ import annotations

from collections.abc import Iterator

from mlfbuild.targets import MCUS, Mcu, TimedMemory
from mlfbuild_reference.markdown import code, page, table

_ABOUT = (
    "A target may name one of these microcontrollers: `targets: {m4: {mcu: stm32l4r5, clock: 120 MHz}}`. mlfbuild then "
    "[models its cycles](../latency.md). The first memory has code and constants, the second all data, unless "
    "`regions` place them elsewhere. *Waits* are wait states. The key `timing` describes other microcontrollers, "
    "and other settings of these."
)
_ERROR = (
    "*Error* is what the memories add to the stated error of the core's model: the more values are assumptions, the "
    "larger it is. The files in `mlfbuild/targets/data` have the lines and ways of caches, name the "
    "manual that each value comes from, and list all assumptions."
)
_HEAD = ("mcu", "microcontroller", "core", "MHz", "memories", "caches", "error")


def microcontrollers_page() -> str:
    """Return the page ``reference/microcontrollers.md``."""
    return page(
        "Microcontrollers",
        "the tables in `mlfbuild/targets/data`",
        _ABOUT,
        _ERROR,
        table(_HEAD, (_row(mcu) for mcu in MCUS.values())),
        "## Wait states",
        "The highest clocks of the core in MHz, by wait states:",
        "\n".join(line for mcu in MCUS.values() for line in _steps(mcu)),
    )


def _row(mcu: Mcu) -> list[str]:
    memories = (f"{code(name)} {_memory(memory)}" for name, memory in mcu.memories.items())
    caches = (f"{code(name)} {_size(cache.size)}" for name, cache in mcu.caches.items())
    columns = [code(mcu.name), mcu.title, code(mcu.cpu), _mhz(mcu.clock), "; ".join(memories), "; ".join(caches)]
    return [*columns, f"{mcu.error} %"]


def _memory(memory: TimedMemory) -> str:
    facts = [
        _size(memory.size),
        f"{memory.width * 8} bits",
        f"{memory.waits} wait{'s' * (memory.waits > 1)}" if memory.waits else "",
    ]
    facts.append(f"{memory.burst} in a burst" if memory.burst >= 0 else "")
    facts.append(f"{memory.write_waits} on a write" if memory.write_waits else "")
    facts.append("prefetch" if memory.prefetch else "")
    return ", ".join(filter(None, facts))


def _steps(mcu: Mcu) -> Iterator[str]:
    """Yield a line for each memory of ``mcu`` with the highest clock for each number of wait states."""
    for memory, steps in mcu.wait_states.items():
        named = (f"{waits}: {_mhz(highest)}" for highest, waits in steps)
        clocks = [_mhz(highest) for highest, _ in steps]
        counted = [waits for _, waits in steps] == list(range(len(steps)))
        found = f"0 to {len(steps) - 1}: {', '.join(clocks)}" if counted and len(steps) > 1 else ", ".join(named)
        yield f"- {code(mcu.name)}, {code(memory)}, {found}"


def _mhz(clock: int) -> str:
    return f"{clock / 1e6:g}"


def _size(size: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size} bytes"
