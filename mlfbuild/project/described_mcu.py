"""The microcontroller that a target describes: a row of the table, values of the project, or both."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

from mlfbuild import targets
from mlfbuild.core.keys import (
    Keys,
    parse_frequency,
)
from mlfbuild.project.specification import TargetSpec

if TYPE_CHECKING:
    from mlfbuild.targets import Mcu, MemoryCache, TimedMemory

_EXTERNAL = ("qspi", "ospi", "psram", "ddr")
"""Regions that are the memory ``external`` of a microcontroller without memories of their names."""
_OWN_ERROR = 5
"""Added to the stated error of the core, in per cent: the model was not compared with the project's own memories."""
_Row = TypeVar("_Row", "TimedMemory", "MemoryCache")


def mcu_of(target: TargetSpec) -> Mcu | None:
    """Return the microcontroller of ``target`` at its clock; ``None`` if its cycles are not modelled."""
    mcu = whole_mcu(target)
    if mcu is None:
        return None
    return mcu.at(target.clock or mcu.clock)


def memory_of_region(mcu: Mcu, region: str) -> str | None:
    """Return the memory of ``mcu`` that a region of a linker script is; ``None`` if none has its name."""
    names = {name.lower(): name for name in mcu.memories}
    first, second = list(mcu.memories)[:2]
    usual = {"flash": first, "ram": second, **dict.fromkeys(_EXTERNAL, names.get("external"))}
    return names.get(region.lower()) or usual.get(region.lower())


def whole_mcu(target: TargetSpec) -> Mcu | None:
    """Return the microcontroller of ``target`` at its highest clock, with the project's own values, if it has one."""
    own, base = target.timing, targets.MCUS.get(target.mcu or "")
    if own is None:
        return base
    if base is None:
        core = targets.CPUS[target.cpu].core
        clock = own.clock or target.clock or 0
        base = targets.Mcu(target.name, f"{target.name} of the project", core, clock, {}, error=_OWN_ERROR)
    else:
        base = replace(base, name=f"{base.name} with own timing")
    memories = dict(base.memories)
    steps = dict(base.wait_states)
    for name, keys in own.memories.items():
        memories[name] = _merged(memories.get(name), keys, targets.TimedMemory)
        if keys.waits is not None:
            steps.pop(name, None)
        if keys.wait_states:
            steps[name] = [(parse_frequency(clock) or 0, waits) for clock, waits in keys.wait_states.items()]
    caches = dict(base.caches)
    for name, changed in own.caches.items():
        caches[name] = _merged(caches.get(name), changed, targets.MemoryCache)
    return replace(base, clock=own.clock or base.clock, memories=memories, caches=caches, wait_states=steps)


def _merged(base: _Row | None, keys: Keys, row: type[_Row]) -> _Row:
    """Return ``base``, or a new ``row``, with the values that ``keys`` has; those required of a new one may lack."""
    known = {each.name for each in fields(row)}
    given = {name: value for name, value in vars(keys).items() if name in known and value is not None}
    return replace(base, **given) if base is not None else row(**{**dict.fromkeys(needed_keys(row), 0), **given})


def needed_keys(row: type[TimedMemory | MemoryCache]) -> tuple[str, ...]:
    """Return the fields that a new memory or cache must have."""
    return ("size",) if row is targets.TimedMemory else ("size", "line", "ways")
