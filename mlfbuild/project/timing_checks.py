"""Checks of the microcontrollers in a project file, each on one target whose keys are valid one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlfbuild import targets
from mlfbuild.core import Mistake, in_quotes, listed, unknown
from mlfbuild.core.keys import Keys, frequency_text, parse_frequency, spelled
from mlfbuild.project.described_mcu import has_code, main_by_name, memory_of_region, timing_of, whole_mcu
from mlfbuild.project.document import Document
from mlfbuild.project.problems import KeyPath

if TYPE_CHECKING:
    from mlfbuild.project.specification import TargetSpec

_KEYS = {"mcu", "clock", "timing"}
_MOST_SECTORS = 64
"""Sectors of a line that the plugin of QEMU can simulate (``verify/emulator/memories.h``)."""


def check_timing(document: Document) -> None:
    """Add the mistakes about microcontrollers to the problems of ``document``; skip targets with other mistakes."""
    chosen = {name: entry for name, entry in document.entries("targets") if _KEYS & {*entry}}
    if not chosen:
        return
    from pydantic import TypeAdapter, ValidationError

    from mlfbuild.project.specification import TargetSpec

    adapter = TypeAdapter(TargetSpec)
    for name, entry in chosen.items():
        try:
            # No path of the target is used, so any folder will do.
            target = adapter.validate_python(entry, context=Path())
        except ValidationError:
            continue  # already reported
        for path, mistake in _problems(replace(target, name=name)) if target.cpu else ():
            document.add(("targets", name, *path), mistake)


def _problems(target: TargetSpec) -> Iterator[tuple[KeyPath, Mistake]]:
    base, own = targets.model_called(target.mcu or ""), timing_of(target)
    file = targets.part_file(target.mcu or "")
    core = targets.CPUS[target.cpu].core
    known = base or file or (targets.part_called(target.mcu) if target.mcu else None)
    if known is not None and targets.CPUS[known.cpu].core != core:
        reason = f"{target.mcu} has a {known.cpu}, but the target's cpu is {target.cpu}"
        yield ("mcu",), Mistake("mcu-of-another-cpu", reason=reason, hint=f"use cpu: {known.cpu}, or remove cpu")
        return
    if base is None and own is None:
        if target.clock is not None:
            what = f"there is no cycle model of {target.mcu}" if target.mcu else "no mcu says what is modelled"
            hint = "add timing, or remove clock" if target.mcu else "add mcu or timing, or remove clock"
            yield ("clock",), Mistake("misplaced-key", reason=f"has no effect, because {what}", hint=hint)
        return
    if core not in targets.TIMED_CORES:
        reason = f"there is no cycle model of {core}"
        key, what = ("timing", "timing") if own else ("mcu", "its memories")
        hint = f"remove {what}, or use a target with one of {listed(targets.TIMED_CORES)}"
        yield (key,), Mistake("core-without-timing", reason=reason, hint=hint)
        return
    found = [*_of_file(file, target), *_incomplete(base, target)]
    yield from found
    # With something missing, the checks of values against each other would report its consequences.
    if not found and (mcu := whole_mcu(target)) is not None:
        yield from _misfits(mcu, target)


def _of_file(file: targets.PartFile | None, target: TargetSpec) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield the mistakes between the values in the file of a target's microcontroller, at their lines in it."""
    if file is None or file.model is None:
        return
    base = targets.MCUS[file.keys.based_on] if file.keys.based_on else None
    alone = replace(target, timing=file.keys, clock=None, regions={}, memories={})
    found = list(_incomplete(base, alone)) or list(_misfits(file.model, alone))
    for path, mistake in found:
        reason = f"{file.place(path[1:])}: {mistake.reason}"
        yield ("mcu",), Mistake(mistake.code, reason=reason, hint=mistake.hint)


def _incomplete(base: targets.Mcu | None, target: TargetSpec) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield what is missing in the description of a target's own microcontroller, memory or cache."""
    own = timing_of(target)
    if own is None:
        return
    if base is None and target.clock is None and own.clock is None:
        hint = "add clock, such as `clock: 64 MHz`"
        yield ("timing",), Mistake("missing-key", reason="the clock of the microcontroller is unknown", hint=hint)
    if base is None and len(own.memories) < 2:
        reason = "a microcontroller has at least two memories: the first for code and constants, the second for data"
        hint = "describe both, such as `memories: {flash: {size: 1 MiB, waits: 3}, sram: {size: 256 KiB}}`"
        yield ("timing",), Mistake("missing-memory", reason=reason, hint=hint)
    elif base is None and target.memories and len(target.timing.memories if target.timing else ()) < 2:
        usual = main_by_name(target)
        if usual not in target.memories or not any(has_code(target, name) for name in target.memories):
            reason = "the cycle model does not know which memory has code, and which has variables"
            hint = f"add the one for code with read-only: true, and call the other {usual}"
            yield ("memories",), Mistake("missing-memory", reason=reason, hint=hint)
    rows: tuple[
        tuple[str, Mapping[str, Keys], Mapping[str, Any], type[targets.TimedMemory | targets.MemoryCache]], ...
    ] = (
        ("memories", own.memories, base.memories if base else {}, targets.TimedMemory),
        ("caches", own.caches, base.caches if base else {}, targets.MemoryCache),
    )
    for key, entries, known, row in rows:
        for name, keys in entries.items():
            missing = (
                [] if name in known else [each for each in targets.needed_keys(row) if getattr(keys, each) is None]
            )
            if missing:
                of = f", or use a name that {target.mcu} has: {listed(list(known))}" if known else ""
                reason = f"{listed([spelled(each) for each in missing])} must be known"
                hint = f"add {listed([spelled(each) for each in missing])}{of}"
                path = _path_of(target, name) if key == "memories" else ("timing", key, name)
                yield path, Mistake("missing-key", reason=reason, hint=hint)


def _misfits(mcu: targets.Mcu, target: TargetSpec) -> Iterator[tuple[KeyPath, Mistake]]:
    """Yield values that do not fit each other."""
    own = timing_of(target) or targets.TimingKeys()
    if target.clock is not None and target.clock > mcu.clock:
        reason = f"{frequency_text(target.clock)} is above the highest clock of {mcu.name}, {frequency_text(mcu.clock)}"
        yield ("clock",), Mistake("clock-too-high", reason=reason, hint=f"use at most {frequency_text(mcu.clock)}")
    clock = min(target.clock or mcu.clock, mcu.clock)
    for name, keys in own.memories.items():
        yield from _of_memory(mcu, target, name, keys)
    for name, steps in mcu.wait_states.items():
        if clock > max(highest for highest, _ in steps):
            own_steps = name in own.memories and own.memories[name].wait_states
            path = (*_path_of(target, name, "wait_states"), "wait-states") if own_steps else ("timing", "clock")
            reason = f"the wait states of {name} at {frequency_text(clock)} are unknown"
            hint = f"write them: `timing: {{memories: {{{name}: {{waits: 3}}}}}}`, or lower the clock"
            yield path, Mistake("no-wait-states", reason=reason, hint=hint)
    for name in own.caches:
        cache = mcu.caches[name]
        if cache.size % (cache.line * cache.ways):
            reason = f"{cache.size} bytes are no multiple of {cache.ways} lines of {cache.line} bytes"
            yield ("timing", "caches", name), Mistake("cache-of-no-size", reason=reason, hint="correct size or ways")
        if cache.sector and (cache.line % cache.sector or cache.line // cache.sector > _MOST_SECTORS):
            reason = f"{cache.line} bytes of a line are not 1 to {_MOST_SECTORS} sectors of {cache.sector} bytes"
            yield ("timing", "caches", name), Mistake("cache-of-no-size", reason=reason, hint="correct line or sector")
    for section, region in target.regions.items():
        if memory_of_region(mcu, region) is None:
            reason = f"the cycle model does not know how fast {region} is; {mcu.name} has {listed(list(mcu.memories))}"
            hint = f"describe it, such as `timing: {{memories: {{{region.lower()}: {{size: 64 KiB, waits: 1}}}}}}`"
            yield ("regions", section), Mistake("region-without-timing", reason=reason, hint=hint)


def _path_of(target: TargetSpec, name: str, key: str = "") -> KeyPath:
    """Return the way to a memory of ``target``: in ``memories`` if only that has it or its ``key``."""
    timed = target.timing.memories.get(name) if target.timing else None
    own = target.memories.get(name)
    if own is not None and (timed is None or (key and getattr(timed, key) in (None, {}) and getattr(own, key))):
        return "memories", name
    return "timing", "memories", name


def _of_memory(
    mcu: targets.Mcu, target: TargetSpec, name: str, keys: targets.MemoryKeys
) -> Iterator[tuple[KeyPath, Mistake]]:
    path = _path_of(target, name)
    for key in ("fetch_cache", "read_cache"):
        cache = getattr(keys, key)
        if cache and cache not in mcu.caches:
            reason = f"there is no cache {in_quotes(cache)}"
            none = Mistake("unknown-cache", reason=reason, hint="describe it in caches")
            place = (*_path_of(target, name, key), spelled(key))
            yield place, unknown("cache", cache, mcu.caches) if mcu.caches else none
    clocks = [parse_frequency(text) or 0 for text in keys.wait_states]
    if keys.waits is not None and clocks:
        reason = "is not accepted together with wait-states, which have the wait states at each clock"
        yield (*path, "waits"), Mistake("misplaced-key", reason=reason, hint="remove one of them")
    elif clocks != sorted(set(clocks)):
        mistake = Mistake("clocks-not-ascending", reason="the clocks do not ascend", hint="begin with the lowest clock")
        yield (*path, "wait-states"), mistake
