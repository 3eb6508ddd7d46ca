"""The microcontroller that a target describes: a row of the table, values of the project, or both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import TYPE_CHECKING

from mlfbuild import targets
from mlfbuild.project.specification import TargetSpec

if TYPE_CHECKING:
    from mlfbuild.targets import Mcu, MemoryCache, MemoryKeys, TimedMemory, TimingKeys

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
    own, base = timing_of(target), targets.model_called(target.mcu or "")
    if own is None:
        return base
    if base is None:
        core = targets.CPUS[target.cpu].core
        clock = own.clock or target.clock or 0
        base = targets.Mcu(target.name, f"{target.name} of the project", core, clock, {}, error=_OWN_ERROR)
    else:
        base = replace(base, name=f"{base.name} with own timing")
    return base.changed(own)


def timing_of(target: TargetSpec) -> TimingKeys | None:
    """Return ``timing`` of ``target`` with what its ``memories`` say about the same memories or further ones.

    ``None`` without a cycle model: memories alone have no clock. Of two values, that of ``timing`` counts, but
    ``memory_checks`` refuses two that differ.
    """
    own, base = target.timing, targets.model_called(target.mcu or "")
    if not target.memories or (own is None and base is None):
        return own
    own = own or targets.TimingKeys()
    # The first memory of a part has code and constants, the second all data that nothing places elsewhere.
    rank = {main_by_name(target): 1}
    later = sorted(target.memories, key=lambda name: 0 if has_code(target, name) else rank.get(name, 2))
    order = dict.fromkeys([*own.memories, *later])
    return replace(own, memories={name: _merged(target, name) for name in order})


def has_code(target: TargetSpec, name: str) -> bool:
    """Return whether the key ``memories`` of ``target`` says that ``name`` has code and constants only."""
    read_only = target.memories[name].read_only
    return name == "flash" if read_only is None else read_only


def main_by_name(target: TargetSpec) -> str:
    """Return the memory in which linker scripts put variables if neither part nor board says it."""
    return (target.memory_script.main if target.memory_script else "") or "ram"


def _merged(target: TargetSpec, name: str) -> MemoryKeys:
    timed = target.timing.memories.get(name) if target.timing else None
    found = {}
    for field in fields(targets.MemoryKeys):
        values = [getattr(keys, field.name) for keys in (timed, target.memories.get(name)) if keys is not None]
        found[field.name] = next((value for value in values if value not in (None, {})), values[0])
    return targets.MemoryKeys(**found)


def parts_of_memories(target: TargetSpec) -> tuple[Mapping[str, TimedMemory], Mapping[str, MemoryCache]]:
    """Return the memories of ``target`` as its core sees them, at its clock, and its caches, by name.

    Also without a cycle model of the target: then they have the values that ``memories`` has.
    """
    mcu = mcu_of(target)
    if mcu is None:
        mcu = targets.Mcu("", "", target.cpu, 0, {}).changed(
            targets.TimingKeys(memories={name: _merged(target, name) for name in target.memories})
        )
    return mcu.memories, mcu.caches
