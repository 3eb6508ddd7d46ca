"""Memory maps of microcontrollers that people own: core, flash and RAM, without a cycle model.

``data/parts.csv`` has a row for each part, or for parts that differ only in their pins: ``stm32f407?g`` is the
STM32F407 with 1 MiB of flash in any package. A name may end as on the chip, so ``stm32f407vgt6`` is the same part.
``scripts/parts.py`` wrote the table and says where it comes from.

A part gives a target its ``cpu`` and its runner's ``memory``. Cycles need clocks, wait states and caches, which no
public file has for all parts: ``MCUS`` has the microcontrollers with a cycle model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from mlfbuild.targets.data_files import csv_rows
from mlfbuild.targets.mcu_types import Mcu
from mlfbuild.targets.part_keys import DeviceMemoryKeys, RegionKeys

_ORDERED_STM32 = re.compile(r"(stm32\w{4}[a-z]\w[a-z])\d\w*")
_SHORTEST = 6
"""Characters of a name whose sizes are worth listing: stm32f has hundreds of parts, stm32f4 dozens."""


@dataclass(frozen=True)
class KnownPart:
    """A microcontroller, or several that differ only in their pins."""

    name: str
    """In lower case; ``?`` stands for the letter of the package's pins."""
    cpu: str
    """Name in the table of CPUs."""
    memory: DeviceMemoryKeys
    """Regions for test firmware after reset."""
    chips: tuple[str, ...] = ()
    """Names in probe-rs of the parts that the row stands for; ``x`` stands for any letter."""
    pyocd: str = ""
    """Target type that pyOCD contains; empty if a CMSIS-Pack has it, or none."""

    def chip(self, name: str) -> str:
        """Return the name in probe-rs of the part that the user calls ``name``; empty if probe-rs does not have it.

        It is the name that ``probe-rs run --chip`` takes. Of several that fit, the first one is returned.
        """
        fitting = (chip for chip in self.chips if _same_letters(name.lower(), chip.lower()))
        return next(fitting, self.chips[0] if self.chips else "")

    def pyocd_type(self, name: str) -> str:
        """Return pyOCD's target type of the part that the user calls ``name``; empty if it is not known.

        CMSIS-Packs of ST call a part as it is marked, with ``x`` for the range of temperatures: ``stm32f407vgtx``.
        """
        ordered = _ORDERED_STM32.fullmatch(name.lower())
        return self.pyocd or (f"{ordered[1]}x" if ordered else "")


def _same_letters(name: str, chip: str) -> bool:
    """Return whether ``name`` and ``chip`` agree as far as both go; ``x`` of a chip, and ``?``, are any letter."""
    return all(one == other or other == "x" or one == "?" for one, other in zip(name, chip, strict=False))


@cache
def all_parts() -> Mapping[str, KnownPart]:
    """Return every part of the table by its name.

    The table has hundreds of rows; it is read when it is first used, and then kept.
    """
    found = {}
    for row in csv_rows("parts"):
        flash = RegionKeys(int(row["flash"], 16), int(row["flash size"])) if row["flash"] else None
        memory = DeviceMemoryKeys(RegionKeys(int(row["ram"], 16), int(row["ram size"])), flash)
        found[row["part"]] = KnownPart(row["part"], row["cpu"], memory, tuple(row["chips"].split()), row["pyocd"])
    return found


def part_called(name: str) -> KnownPart | None:
    """Return the part whose name, in any case, is ``name`` or begins it; ``None`` if there is none.

    >>> part_called("STM32F407VGT6").memory.flash.size >> 10
    1024
    """
    parts, lower = all_parts(), name.lower()
    # More than one pattern can match, and the longest is the most exact.
    matching = [part for pattern, part in parts.items() if fnmatchcase(lower, f"{pattern}*")]
    return max(matching, key=lambda part: len(part.name), default=None)


def model_of(name: str) -> Mcu | None:
    """Return the cycle model of the part ``name``: that of its name, or of the family whose name it begins with."""
    from mlfbuild.targets.mcus import MCUS  # a long table that most project files do not use

    lower = name.lower()
    return MCUS.get(name) or next((mcu for family, mcu in MCUS.items() if lower.startswith(family)), None)


def memory_of(mcu: str) -> tuple[str, DeviceMemoryKeys | None]:
    """Return the core of ``mcu``, a name that a target can have, and its memories if a table has them.

    The row of the cycle model takes precedence over that of the table of parts, unless ``mcu`` only begins as the
    model does.
    """
    model, part = model_of(mcu), part_called(mcu)
    if part is not None and (model is None or model.name != mcu):
        return part.cpu, part.memory
    assert model is not None
    return model.cpu, model.memory or (part.memory if part else None)


def parts_beginning(name: str) -> list[KnownPart]:
    """Return the parts that ``name`` is the beginning of: ``stm32f407`` has two sizes of flash."""
    lower = name.lower()
    return [part for part in all_parts().values() if part.name.startswith(lower)] if len(lower) >= _SHORTEST else []
