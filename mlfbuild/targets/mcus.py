"""The table of microcontrollers for the cycle model, and the part without wait states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from mlfbuild.targets.data_files import rows
from mlfbuild.targets.mcu_types import Mcu, TimedMemory
from mlfbuild.targets.part_keys import PartKeys

_FILES = ("mcus_st", "mcus_others")


def _mcus() -> Mapping[str, Mcu]:
    found: dict[str, Mcu] = {}
    for name, keys in (row for table in _FILES for row in rows(table, PartKeys)):
        # Only entries before this one, so there are no circles.
        part = part_of_keys(name, keys, found[keys.based_on] if keys.based_on else None)
        found[name] = part.at(part.clock)
    return MappingProxyType(found)


def part_of_keys(name: str, keys: PartKeys, base: Mcu | None) -> Mcu:
    """Return the part ``name`` with the values of ``keys``, and those of ``base`` for what ``keys`` leaves out."""
    base = base or Mcu(name, keys.title, "", 0, {})
    given: dict[str, Any] = {
        "cpu": keys.cpu,
        "sources": keys.sources,
        "assumptions": keys.assumptions,
        "error": int(keys.error or 0),
        "memory": keys.memory,
        "control": keys.control,
    }
    changes = {field: value for field, value in given.items() if value}
    return replace(base.changed(keys), name=name, title=keys.title, **changes)


MCUS = _mcus()
"""Every microcontroller by its name in the project file."""


def ideal_mcu(cpu: str) -> Mcu:
    """Return a part for benchmarks whose memories have no wait states, with the core ``cpu``."""
    # Larger than any image, and as wide as the widest access of a core.
    memory = TimedMemory(1 << 31, 8)
    memories = dict.fromkeys(("flash", "sram", "itcm", "dtcm", "external"), memory)
    return Mcu(f"ideal-{cpu}", f"{cpu} without wait states", cpu, 100_000_000, memories)
