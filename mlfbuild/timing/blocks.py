"""Split the code of an image into basic blocks, and return the costs of their instructions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mlfbuild.timing.costs import CoreTiming, Cost, DecodedInstruction
from mlfbuild.timing.decode import decoded
from mlfbuild.timing.listing import Instruction
from mlfbuild.timing.objdump import LinkedCode

# LE and its relatives are branches of Armv8.1-M: low-overhead loops.
_ENDS = frozenset({"b", "bl", "cbz", "cbnz", "bx", "blx", "bxns", "blxns", "tbb", "tbh", "le", "letp", "wls", "wlstp"})
_WIDE = 0xE800
"""The first half of an instruction of 32 bits is not less."""


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
            # By the bytes, as the listing does not show the width of every instruction.
            yield [decoded(instruction, _size(code.half(instruction.address))) for instruction in run]


def _size(half: int | None) -> int:
    """Return the bytes of an instruction that begins with ``half`` (Armv7-M Architecture Reference Manual, A5.1)."""
    return 4 if half is not None and half >= _WIDE else 2


def _blocks(run: Sequence[DecodedInstruction], targets: set[int | None]) -> Iterator[BasicBlock]:
    block: list[DecodedInstruction] = []
    for instruction in run:
        # A branch may enter here with other instructions before it, so the pipeline cannot be known across this
        # address.
        if block and instruction.address in targets:
            yield _block(block)
            block = []
        block.append(instruction)
        if _branches(instruction):
            yield _block(block)
            block = []
    if block:
        yield _block(block)


def _block(instructions: Sequence[DecodedInstruction]) -> BasicBlock:
    return BasicBlock(tuple(instructions), instructions[-1].target == instructions[0].address)


def _branches(instruction: DecodedInstruction) -> bool:
    """Return whether the instruction may branch."""
    # ``pop {pc}``, ``ldr pc`` and arithmetic on ``pc`` are branches in Thumb code.
    return instruction.mnemonic in _ENDS or "pc" in instruction.writes
