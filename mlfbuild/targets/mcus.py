"""The table of microcontrollers for the cycle model: clocks, memories with their wait states, and caches, with sources.

A value without a public document is an assumption, is named as one, and makes the part's stated error larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mlfbuild.targets.mcu_types import Mcu, TimedMemory
from mlfbuild.targets.mcus_others import OTHERS
from mlfbuild.targets.mcus_st import ST

MCUS: Mapping[str, Mcu] = MappingProxyType({mcu.name: mcu for mcu in (*ST, *OTHERS)})
"""Every microcontroller by its name in the project file."""


def ideal_mcu(cpu: str) -> Mcu:
    """Return a part for benchmarks whose memories have no wait states, with the core ``cpu``."""
    memory = TimedMemory(1 << 31, 8)
    memories = dict.fromkeys(("flash", "sram", "itcm", "dtcm", "external"), memory)
    return Mcu(f"ideal-{cpu}", f"{cpu} without wait states", cpu, 100_000_000, memories)
