"""Checks of memories in a project file: those of targets, the shares of models, and budgets that name memories.

Targets are checked whose keys are valid one by one; models as plain values, so that other mistakes do not hide these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import Mistake, in_quotes, listed, suggestion, unknown
from mlfbuild.core.keys import parse_size, size_text, spelled
from mlfbuild.library.keys import MEMORY_CLASSES, symbol_stem
from mlfbuild.project.described_mcu import mcu_of, timing_of
from mlfbuild.project.document import Document, mapping_in
from mlfbuild.project.memories import TargetMemory, board_region, memories_of
from mlfbuild.project.memory_waits import is_timed
from mlfbuild.project.problems import KeyPath, dotted
from mlfbuild.project.sources import SOURCES, source_suffix
from mlfbuild.targets import BOARDS, MemoryKeys

if TYPE_CHECKING:
    from mlfbuild.project.memory_script import MemoryScript
    from mlfbuild.project.specification import TargetSpec

Found = Iterator[tuple[KeyPath, Mistake]]
_HOST = "host"
_OF_PARTS = {(key,) for key in ("cpu", "mcu", "board", "clock", "timing")}
_MISSING = {"missing-key", "missing-memory"}


def check_memories(document: Document, scripts: Mapping[str, MemoryScript]) -> None:
    """Add the mistakes about memories to the problems of ``document``; ``scripts`` are linker scripts by target."""
    named = any("memories" in entry for section in ("targets", "models") for _, entry in document.entries(section))
    budgets = [path for path, _ in _budgets(document)]
    if not named and not budgets:
        return
    targets = dict(_valid_targets(document, scripts))
    known: dict[str, tuple[TargetMemory, ...]] = {}
    for name, target in targets.items():
        found = [
            (path, mistake)
            for path, mistake in _of_target(target)
            # A table of parts has given the runner its memory, which the key of the target replaces.
            if path[0] != "runner" or ("targets", name, "runner", "memory") in document.values
        ]
        for path, mistake in found:
            document.add(("targets", name, *path), mistake, at_key=path == ("memories",))
        # Of a target with a mistake, nothing follows.
        if not found:
            known[name] = memories_of(target) if target.cpu != _HOST else ()
    for name, model in document.entries("models"):
        if "memories" in model:
            for path, mistake in _of_model(document, name, model, known):
                document.add(("models", name, "memories", *path), mistake, at_key=not path)
    for path, entry in _budgets(document):
        _check_budget(document, path, entry, known)


def _valid_targets(document: Document, scripts: Mapping[str, MemoryScript]) -> Iterator[tuple[str, TargetSpec]]:
    from pydantic import TypeAdapter, ValidationError

    from mlfbuild.project.specification import TargetSpec

    adapter = TypeAdapter(TargetSpec)
    # Of a target whose part is not known, or has no size for a memory, nothing follows.
    broken = {
        problem.path[:2]
        for problem in document.problems
        if problem.path[2:3] in _OF_PARTS or (problem.path[2:3] == ("memories",) and problem.mistake.code in _MISSING)
    }
    for name, entry in document.entries("targets"):
        if ("targets", name) in broken or ("targets", name, "memories") in document.refused:
            continue
        try:
            target = adapter.validate_python(entry, context=Path())
        except ValidationError:
            continue
        if target.cpu:
            yield name, replace(target, name=name, memory_script=scripts.get(name))


def _of_target(target: TargetSpec) -> Found:
    """Yield the mistakes in the key ``memories`` of ``target``."""
    if not target.memories:
        return
    if target.cpu == _HOST:
        reason = "this machine has no memories to plan for"
        yield ("memories",), Mistake("misplaced-key", reason=reason, hint="remove memories")
        return
    memories = [memory for memory in memories_of(target) if memory.name in target.memories]
    for memory in memories:
        yield from _of_memory(target, memory)
    if all(memory.read_only for memory in memories):
        hint = "add the RAM, such as `sram: {size: 256 KiB}`"
        yield ("memories",), Mistake("no-memory-for-data", reason="models can write to none of them", hint=hint)
    yield from _sections(target, memories)
    yield from _overlaps(memories)
    yield from _contradictions(target, memories)


def _of_memory(target: TargetSpec, memory: TargetMemory) -> Found:
    path, keys = ("memories", memory.name), target.memories[memory.name]
    board, mcu = BOARDS.get(target.board or ""), mcu_of(target)
    region = board_region(board, mcu, memory.name) if board else None
    named = memory.section in target.regions
    if board is not None and region is None and memory.placed and not named:
        known = [each.name for each in memories_of(target) if board_region(board, mcu, each.name)]
        mistake = unknown("memory", memory.name, known)
        hint = (
            f"{board.name} has no such region; use one of its names, or `section: .bss.{memory.name}` to be in its RAM"
        )
        yield path, Mistake(mistake.code, reason=mistake.reason, hint=hint)
        return
    if not memory.size and not memory.read_only and mcu is None:
        others = [each.name for each in memories_of(target) if each.name not in target.memories]
        known_names = f", or use a name that is known: {listed(others)}" if others else ""
        yield path, Mistake("missing-key", reason="size must be known", hint=f"add size{known_names}")
    if region is not None and keys.size is not None and keys.size > region.size:
        reason = f"{size_text(keys.size)} are more than {region.name} of {target.board} has, {size_text(region.size)}"
        yield (*path, "size"), Mistake("memory-too-large", reason=reason, hint="reduce it")
    if region is not None and keys.origin is not None and not _inside(memory, region.origin, region.size):
        reason = (
            f"{region.name} of {target.board} is at {region.origin:#010x} to {region.origin + region.size - 1:#010x}"
        )
        yield (*path, "origin"), Mistake("memory-elsewhere", reason=reason, hint="remove origin")
    if memory.read_only and keys.section is not None:
        reason = "models keep nothing in a memory that they cannot write to"
        yield (*path, "section"), Mistake("misplaced-key", reason=reason, hint="remove it, or set read-only: false")
    # Names of caches, and clocks, are those of a cycle model, which timing_checks compares.
    if timing_of(target) is None and mcu is None:
        for key in ("wait_states", "fetch_cache", "read_cache"):
            if getattr(keys, key):
                reason = "needs a cycle model with clock and caches"
                hint = "add mcu or timing, or write waits, the wait states at the target's clock"
                yield (*path, spelled(key)), Mistake("misplaced-key", reason=reason, hint=hint)
    elif mcu is not None and memory.name not in mcu.memories and not is_timed(keys):
        reason = f"the cycle model does not know how fast {memory.name} is"
        yield path, Mistake("region-without-timing", reason=reason, hint="add waits")


def _inside(memory: TargetMemory, origin: int, size: int) -> bool:
    return memory.origin is not None and origin <= memory.origin and memory.origin + memory.size <= origin + size


def _sections(target: TargetSpec, memories: Sequence[TargetMemory]) -> Found:
    """Yield sections of two memories, also those whose linker symbols would have one name."""
    first: dict[str, str] = {}
    for memory in memories:
        if memory.read_only:
            continue
        other = first.setdefault(symbol_stem(memory.section), memory.name)
        if other != memory.name:
            key = ("section",) if target.memories[memory.name].section else ()
            reason = f"{memory.section} is also the section of {other}, or has the same linker symbols"
            hint = "give each memory a section of its own"
            yield ("memories", memory.name, *key), Mistake("repeated-section", reason=reason, hint=hint)


def _overlaps(memories: Sequence[TargetMemory]) -> Found:
    placed = [memory for memory in memories if memory.origin is not None]
    for at, memory in enumerate(placed):
        for other in placed[:at]:
            start, first = memory.origin or 0, other.origin or 0
            if start < first + other.size and first < start + memory.size:
                reason = f"has addresses of {other.name}, {first:#010x} to {first + other.size - 1:#010x}"
                hint = "correct origin or size; of a memory with two addresses, write the one that the linker uses"
                yield ("memories", memory.name), Mistake("memories-overlap", reason=reason, hint=hint)


def _contradictions(target: TargetSpec, memories: Sequence[TargetMemory]) -> Found:
    """Yield what differs from ``timing``, ``regions`` and ``memory`` of the runner."""
    for name, keys in target.memories.items():
        timed = target.timing.memories.get(name) if target.timing else None
        for key in [field.name for field in fields(MemoryKeys)] if timed is not None else ():
            own, other = getattr(keys, key), getattr(timed, key)
            if own not in (None, {}) and other not in (None, {}) and own != other:
                place = dotted(("timing", "memories", name, spelled(key)))
                reason = f"is {own}, but {place} is {other}"
                mistake = Mistake("memories-contradict", reason=reason, hint="remove one of them")
                yield ("memories", name, spelled(key)), mistake
    names = {memory.name: memory for memory in memories}
    for memory in memories:
        region = target.regions.get(memory.section, "")
        other = names.get(region.lower())
        if region and other is not None and other is not memory:
            reason = f"{memory.section} is the section of memory {memory.name}, but {region} is memory {other.name}"
            hint = "correct the region, or the section of the memory"
            yield ("regions", memory.section), Mistake("memories-contradict", reason=reason, hint=hint)
    ram = target.runner.memory.ram if target.runner and target.runner.memory else None
    main = next((memory for memory in memories if memory.main), None)
    if ram is None or main is None or target.memories[main.name].origin is None:
        return
    if not (ram.origin <= (main.origin or 0) < ram.origin + ram.size or _holds(main, ram.origin)):
        reason = f"RAM at {ram.origin:#010x} is not in memory {main.name} at {main.origin:#010x}"
        mistake = Mistake("memories-contradict", reason=reason, hint="correct one of them, or remove memory")
        yield ("runner", "memory", "ram", "origin"), mistake


def _holds(memory: TargetMemory, address: int) -> bool:
    return memory.origin is not None and memory.origin <= address < memory.origin + memory.size


def _of_model(
    document: Document, name: str, model: Mapping[str, object], known: Mapping[str, tuple[TargetMemory, ...]]
) -> Found:
    """Yield the mistakes in the key ``memories`` of a model, each with the rest of its path."""
    source, compiler = model.get("source"), model.get("compiler")
    compiler = compiler or (SOURCES.get(source_suffix(source)) if isinstance(source, str) else None) or "native"
    why, hint = "", "remove one of the two keys"
    placement = mapping_in(model, "placement")
    shared, chosen = document.mapping().get("share-workspace"), model.get("memories")
    one = "a graph" if model.get("executor") == "graph" else ""
    one = one if compiler == "native" else f"compiler {in_quotes(str(compiler))}"
    if one and isinstance(chosen, (list, dict)) and len(chosen) > 1:
        why, hint = f"{one} has one workspace", "name one memory"
    elif pinned := next((kind for kind in MEMORY_CLASSES if kind in placement), ""):
        why = f"placement.{pinned} puts it into one memory"
    elif one and isinstance(shared, list) and name in shared:
        why = f"{one} shares a workspace in the main RAM"
    if why:
        yield (), Mistake("misplaced-key", reason=f"is not accepted, because {why}", hint=hint)
        return
    wanted = model.get("targets")
    names = wanted if isinstance(wanted, list) else list(document.mapping("targets"))
    # A model for a device and for this machine keeps its memories; here it has one workspace.
    own = {each: known[each] for each in names if isinstance(each, str) and each in known}
    crossed = {
        each: memories for each, memories in own.items() if document.mapping("targets", each).get("cpu") != _HOST
    }
    if own and not crossed and len(own) == len(names):
        reason = f"this machine ({listed(list(own))}) has no memories to plan for, and there is no other target"
        yield (), Mistake("misplaced-key", reason=reason, hint="add a target with another CPU, or remove memories")
    shares: list[tuple[str | int, object, object]] = []
    if isinstance(chosen, (list, tuple)):  # the latter if it is explored
        shares = [(at, text, None) for at, text in enumerate(chosen)]
    elif isinstance(chosen, dict):
        shares = [(key, key, size) for key, size in chosen.items()]
    seen: set[str] = set()
    for key, memory, share in shares:
        if not isinstance(memory, str):
            continue
        if memory in seen:
            yield (
                (key,),
                Mistake("repeated-name", reason=f"{in_quotes(memory)} is in the list twice", hint="remove one"),
            )
        seen.add(memory)
        yield from (((key,), mistake) for mistake in _share_problems(memory, share, crossed, document))


def _share_problems(
    name: str, share: object, targets: Mapping[str, tuple[TargetMemory, ...]], document: Document
) -> Iterator[Mistake]:
    """Yield why a model cannot have ``share`` of the memory ``name`` on one of its ``targets``, at most once."""
    for target, memories in targets.items():
        limited = document.mapping("targets", target, "memories")
        fitting = [memory for memory in memories if not limited or memory.name in limited]
        writable = [memory.name for memory in fitting if not memory.read_only]
        memory = next((each for each in fitting if each.name == name), None)
        if memory is None and not writable:
            reason = f"no memories of target {target} are known"
            yield Mistake("unknown-memory", reason=reason, hint="add memories to the target")
        elif memory is None:
            mistake = unknown("memory", name, writable)
            reason = f"target {target}: {mistake.reason}"
            yield Mistake(mistake.code, reason=reason, hint="correct it, or add it to memories of the target")
        elif memory.read_only:
            reason = f"{name} of target {target} has code and constants, and models cannot write to it"
            yield Mistake("memory-read-only", reason=reason, hint=f"use {listed(writable)}")
        elif (size := _size(share)) is not None and size > memory.size:
            reason = f"{size_text(size)} are more than {name} of target {target} has, {size_text(memory.size)}"
            yield Mistake("share-too-large", reason=reason, hint="reduce it")
        else:
            continue
        return


def _size(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return None
    return parse_size(value) if isinstance(value, str) else value


def _budgets(document: Document) -> Iterator[tuple[KeyPath, Mapping[str, object]]]:
    """Yield the budgets of models and firmware that have other keys than those of every budget."""
    from mlfbuild.project.budget import Budget

    for section in ("models", "firmware"):
        for name, entry in document.entries(section):
            budget = mapping_in(entry, "budget")
            if {*budget} - {*Budget.fields()}:
                yield (section, name, "budget"), budget


def _check_budget(
    document: Document,
    path: KeyPath,
    budget: Mapping[str, object],
    known: Mapping[str, tuple[TargetMemory, ...]],
) -> None:
    """Report the keys of a budget that are not a memory of any of its targets."""
    from mlfbuild.project.budget import Budget

    wanted = document.mapping(str(path[0]), str(path[1])).get("targets")
    names = wanted if isinstance(wanted, list) else list(document.mapping("targets"))
    # A target with a mistake could have the memory.
    if any(name in document.mapping("targets") and name not in known for name in names):
        return
    if all(document.mapping("targets", str(name)).get("cpu") == _HOST for name in names):
        return  # `budgets` refuses all of it
    memories = dict.fromkeys(each.name for name in names for each in known.get(name, ()))
    for key in budget:
        if key not in Budget.fields() and key not in memories:
            words = [*Budget.fields(), *(name for name in memories if name not in Budget.fields())]
            near = suggestion(key, words)
            hint = "" if near else f"use one of {listed(words)}, or describe the memory in memories of the target"
            document.add((*path, key), Mistake("unknown-key", reason=f"unknown key{near}", hint=hint), at_key=True)
