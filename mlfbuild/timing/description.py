"""Describe the code of an image and a microcontroller to the QEMU plugin that adds up cycles (``counter.c``).

The code is split into basic blocks with the costs of their instructions.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from mlfbuild.core import InputFileError, UsageError
from mlfbuild.targets import CPUS, Board, Mcu, MemoryRegion, TimedMemory
from mlfbuild.timing.cores import core_timing
from mlfbuild.timing.costs import CoreTiming, Cost, DecodedInstruction, WorkKind
from mlfbuild.timing.decode import decoded, updates_base
from mlfbuild.timing.listing import Instruction
from mlfbuild.timing.objdump import LinkedCode, disassembled

# LE and its relatives are branches of Armv8.1-M: low-overhead loops.
_ENDS = frozenset({"b", "bl", "cbz", "cbnz", "bx", "blx", "bxns", "blxns", "tbb", "tbh", "le", "letp", "wls", "wlstp"})


class BasicBlock(NamedTuple):
    """Instructions that are executed together."""

    instructions: tuple[DecodedInstruction, ...]
    loops: bool
    """Whether it branches to its own start."""


def basic_blocks(code: LinkedCode) -> Iterator[BasicBlock]:
    """Yield the basic blocks of ``code`` by address.

    A block begins at a function, at the target of a direct branch, and after a branch. Targets of jump tables are not
    known: a block may continue past them.
    """
    runs = [run for function in code.listing.functions for run in _runs(code, function.instructions)]
    # Of the whole image, because a branch may enter another function, such as its .cold part.
    targets = {instruction.target for run in runs for instruction in run}
    for run in runs:
        yield from _blocks(run, targets)


def instruction_costs(code: LinkedCode, core: CoreTiming) -> dict[int, tuple[DecodedInstruction, Cost]]:
    """Return the instructions of ``code`` by address, with their costs on ``core``."""
    return {
        instruction.address: (instruction, cost)
        for block in basic_blocks(code)
        for instruction, cost in zip(block.instructions, core.costs(block.instructions, block.loops), strict=True)
    }


def _runs(code: LinkedCode, listed: Sequence[Instruction]) -> Iterator[list[DecodedInstruction]]:
    """Yield instructions that follow each other without data between them."""
    for is_data, run in itertools.groupby(listed, lambda instruction: instruction.is_data):
        if not is_data:
            yield [decoded(each, code.size(each.address)) for each in run]


def _blocks(run: Sequence[DecodedInstruction], targets: set[int | None]) -> Iterator[BasicBlock]:
    block: list[DecodedInstruction] = []
    for instruction in run:
        # A branch may enter here with other instructions before it, so the pipeline cannot be known across this
        # address.
        if block and instruction.address in targets:
            yield _block(block)
            block = []
        block.append(instruction)
        # ``pop {pc}``, ``ldr pc`` and arithmetic on ``pc`` are branches in Thumb code.
        if instruction.mnemonic in _ENDS or "pc" in instruction.writes:
            yield _block(block)
            block = []
    if block:
        yield _block(block)


def _block(instructions: Sequence[DecodedInstruction]) -> BasicBlock:
    return BasicBlock(tuple(instructions), instructions[-1].target == instructions[0].address)


Place = tuple[int, int, str]
"""First and last address of a section, and the name of the memory of the part that it is in."""
_MEMORIES = {"PSRAM": "external", "DDR": "external"}
"""Memories of parts by the regions of boards that stand for them, if their names differ in more than case."""
_KINDS = {kind: at for at, kind in enumerate(WorkKind)}


def timing_description(image: Path, board: Board, mcu: Mcu, places: Sequence[Place] = ()) -> tuple[bytes, int]:
    """Return the description of ``image``, linked for ``board``, on ``mcu``, and how many of its units are one cycle.

    ``places`` are sections in other memories of the part than those that their regions stand for.
    Raises ``UsageError`` if there is no model of the core, or if the part lacks a memory that the image has code or
    data in; ``InputFileError`` for an image that is damaged or not for Arm; and as ``disassembled``.
    """
    core = core_timing(CPUS[mcu.cpu].core)
    code = disassembled(image)
    if code is None or code.machine != "EM_ARM":
        raise InputFileError(
            "image-not-for-arm",
            place=image,
            reason="mlfbuild models cycles only of code for Arm",
            hint="choose a target with a Cortex-M core",
        )
    starts = [start for start, _ in code.sections if not any(first <= start <= last for first, last, _ in places)]
    _check_placement(image, starts, board, mcu)
    costs = instruction_costs(code, core)
    scale = _scale([cost for _, cost in costs.values()], core)
    preloads = dict(_preloads(code)) if core.preloads else {}
    lines = [
        *_hardware(core, board, mcu, scale, places),
        *(_code(instruction, cost, scale) for _, (instruction, cost) in sorted(costs.items())),
        *(f"preload {address:x} {distance}" for address, distance in sorted(preloads.items())),
    ]
    return "".join(f"{line}\n" for line in lines).encode(), scale


_ADDRESS = re.compile(r"\[(\w+)(?:, #(-?\d+))?\]")


def _preloads(code: LinkedCode) -> Iterator[tuple[int, int]]:
    """Yield the address of a load for each PLD, and the bytes from what it loads to what the PLD does.

    QEMU does not tell the plugin the address of a PLD, so it is taken from the next load in the block that has the same
    base and comes before a change of the base. A PLD without such a load is not modelled.
    """
    for block in basic_blocks(code):
        wanted: dict[str, int] = {}
        for instruction in block.instructions:
            place = _ADDRESS.search(instruction.operands)
            if place is not None and instruction.mnemonic == "pld":
                wanted[place[1]] = int(place[2] or 0)
            elif place is not None and place[1] in wanted and instruction.transfers and not updates_base(instruction):
                yield instruction.address, wanted.pop(place[1]) - int(place[2] or 0)
            wanted = {base: offset for base, offset in wanted.items() if base not in instruction.writes}


def _scale(costs: list[Cost], core: CoreTiming) -> int:
    """Return the smallest number of units of a cycle in which all costs are whole."""
    numbers = {number for cost in costs for number in (cost.cycles, cost.taken)}
    numbers |= {core.split_target, core.unaligned, core.other_memory}
    # In whole numbers, because sums of floats would depend on the order in which the plugin meets the blocks.
    return math.lcm(*(Fraction(number).denominator for number in numbers))


def _code(instruction: DecodedInstruction, cost: Cost, scale: int) -> str:
    units = f"{int(cost.cycles * scale)} {int(cost.taken * scale)}"
    return f"code {instruction.address:x} {instruction.size} {units} {_KINDS[cost.kind]} {int(cost.overlaps)}"


def _hardware(core: CoreTiming, board: Board, mcu: Mcu, scale: int, places: Sequence[Place]) -> Iterator[str]:
    further = (int(number * scale) for number in (core.split_target, core.unaligned, core.other_memory))
    yield f"core {scale} {' '.join(map(str, further))} {core.bus}"
    for cache in mcu.caches.values():
        geometry = f"{cache.size} {cache.line} {cache.sector or cache.line} {cache.ways} {cache.policy}"
        yield f"cache {geometry} {cache.hit * scale} {cache.miss * scale} {int(cache.write_back)}"
    # An empty name is not a cache, which the plugin knows as -1.
    numbers = {name: at for at, name in enumerate(mcu.caches)} | {"": -1}
    for region, memory in _with_places(regions_of_part(board, mcu), places, mcu):
        # A place at the start or the end of a region leaves nothing before or after it.
        if not region.size:
            continue
        # Negative: the part has no burst, and each access of a line waits as the first one.
        burst = memory.waits if memory.burst < 0 else memory.burst
        four = (memory.waits, burst, memory.write_waits, memory.hidden_waits)
        waits = " ".join(str(number * scale) for number in (*four, memory.fetch_waits))
        caches = f"{numbers[memory.fetch_cache]} {numbers[memory.read_cache]}"
        addresses = f"{region.origin:x} {region.origin + region.size - 1:x}"
        number = next(at for at, each in enumerate(mcu.memories.values()) if each is memory)
        yield f"memory {addresses} {memory.width} {waits} {int(memory.prefetch)} {caches} {number}"


def regions_of_part(board: Board, mcu: Mcu) -> Iterator[tuple[MemoryRegion, TimedMemory]]:
    """Yield the regions of the board's memory map that stand for memories of the part."""
    # In the table of parts, the memory for code is first, then the one for data.
    first, *others = mcu.memories.values()
    yield board.flash, first
    yield board.ram, others[0] if others else first
    for region in board.others:
        name = _MEMORIES.get(region.name, region.name.lower())
        if name in mcu.memories:
            yield region, mcu.memories[name]


def _with_places(
    regions: Iterable[tuple[MemoryRegion, TimedMemory]], places: Sequence[Place], mcu: Mcu
) -> Iterator[tuple[MemoryRegion, TimedMemory]]:
    """Yield the parts of ``regions`` around ``places``, then ``places`` with their memories."""
    for region, memory in regions:
        start, end = region.origin, region.origin + region.size
        for first, last, _ in sorted(places):
            if start <= first and last < end:
                yield MemoryRegion(region.name, start, first - start), memory
                start = last + 1
        yield MemoryRegion(region.name, start, end - start), memory
    for first, last, name in places:
        yield MemoryRegion(name, first, last + 1 - first), mcu.memories[name]


def _check_placement(image: Path, starts: list[int], board: Board, mcu: Mcu) -> None:
    modelled = {region.name for region, _ in regions_of_part(board, mcu)}
    for region in board.others:
        if region.name not in modelled and any(region.origin <= at < region.origin + region.size for at in starts):
            raise UsageError(
                "memory-not-in-part",
                place=image,
                reason=f"it has code or data in {region.name}, but {mcu.name} has no such memory",
                hint="place them in other memories, or choose another part",
            )
