"""The microcontroller that a target describes: a row of the table, values of the project, or both."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mlfbuild import targets
from mlfbuild.project.specification import TargetSpec

if TYPE_CHECKING:
    from mlfbuild.targets import Mcu

_EXTERNAL = ("qspi", "ospi", "psram", "ddr")
"""Regions that are the memory ``external`` of a microcontroller without memories of their names."""
_OWN_ERROR = 5
"""Added to the stated error of the core, in per cent: the model was not compared with the project's own memories."""


def mcu_of(target: TargetSpec) -> Mcu | None:
    """Return the microcontroller of ``target`` at its clock; ``None`` if its cycles are not modelled.

    It is the row of ``mcu`` with the values of ``timing``, or what ``timing`` describes without a row. Raises
    ``UsageError`` for a clock that it does not reach, which the reader of a project file has refused already.
    """
    mcu = whole_mcu(target)
    if mcu is None:
        return None
    return mcu.at(target.clock or mcu.clock)


def memory_of_region(mcu: Mcu, region: str) -> str | None:
    """Return the memory of ``mcu`` that a region of a linker script is; ``None`` if none has its name.

    Case is ignored. ``FLASH`` and ``RAM`` are the usual names of the first and second memory; external memories have
    several.
    """
    names = {name.lower(): name for name in mcu.memories}
    first, second = list(mcu.memories)[:2]
    usual = {"flash": first, "ram": second, **dict.fromkeys(_EXTERNAL, names.get("external"))}
    return names.get(region.lower()) or usual.get(region.lower())


def whole_mcu(target: TargetSpec) -> Mcu | None:
    """Return the microcontroller of ``target`` at its highest clock, with the project's own values, if it has one.

    ``None`` if the target names no microcontroller with a cycle model and has no ``timing``. ``mcu_of`` returns the
    same at the clock of the target.
    """
    own, base = target.timing, targets.model_called(target.mcu or "")
    if own is None:
        return base
    if base is None:
        core = targets.CPUS[target.cpu].core
        clock = own.clock or target.clock or 0
        base = targets.Mcu(target.name, f"{target.name} of the project", core, clock, {}, error=_OWN_ERROR)
    else:
        base = replace(base, name=f"{base.name} with own timing")
    return base.changed(own)
