"""Basic blocks written as assembly, without an assembler."""

import re
from fractions import Fraction

from mlfbuild.timing import CoreTiming, DecodedInstruction
from mlfbuild.timing.decode import decoded
from mlfbuild.timing.listing import Instruction

START = 0x1000
_NARROW = re.compile(r"\.n\b|^(it|bx|nop)\b")


def block(text: str) -> list[DecodedInstruction]:
    """Decode one instruction per line: 16 bits with ``.n``, else 32 bits; ``loop`` is the address of the first one."""
    instructions = []
    address = START
    for line in text.strip().splitlines():
        name, _, operands = line.strip().partition(" ")
        size = 2 if _NARROW.search(name) else 4
        operands = operands.replace("loop", f"{START:x}").replace("behind", f"{START + 0x100:x}")
        instructions.append(decoded(Instruction(address, name, operands, ""), size))
        address += size
    return instructions


def cycles(core: CoreTiming, text: str) -> list[Fraction]:
    """Return the cycles of each instruction of a block that does not loop."""
    return [cost.cycles for cost in core.costs(block(text), False)]


def iteration(core: CoreTiming, text: str) -> Fraction:
    """Return the cycles of one iteration of a loop that goes on."""
    return sum((cost.cycles + cost.taken for cost in core.costs(block(text), True)), Fraction(0))


def distance(core: CoreTiming, producer: str, consumer: str) -> Fraction:
    """Return the cycles from the issue of one instruction to that of the next one."""
    costs = core.costs(block(f"{producer}\n{consumer}"), False)
    return costs[0].cycles + costs[1].cycles - 1
