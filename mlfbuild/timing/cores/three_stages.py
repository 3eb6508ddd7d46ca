"""The pipeline that Cortex-M3 and M4 share: three stages, one instruction at a time, loads that overlap.

Sources, by their short names in comments:

- TRM: Cortex-M3 Technical Reference Manual (DDI 0337I) and Cortex-M4 Technical Reference Manual (DDI 0439B), table 3-1
  and "Load/store timings", which has the same rules in both.
- L4: measurements with the cycle counter of an STM32L4, https://compendium.i-0.nl, "Branch timing".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from mlfbuild.timing.decode import address_registers, updates_base
from mlfbuild.timing.types import Cost, DecodedInstruction, WorkKind

Arithmetic = Callable[[DecodedInstruction, DecodedInstruction | None], int]
"""Returns the cycles of an instruction that is neither a load, a store nor a branch; the second one is before it."""

REFILL_DIRECT = 1
"""P of B, BL and CBZ. TRM: 1 to 3, "depending on the alignment and width of the target instruction, and whether the
processor manages to speculate the address early". L4: a taken branch takes 2 cycles, and 3 if its target is an
instruction of 32 bits that is not at a word boundary (``SPLIT_TARGET``)."""
REFILL_REGISTER = 2
"""P of BX, BLX and MOV to PC, whose target is known a stage later than that of direct branches: an estimate."""
REFILL_LOAD = 3
"""P of loads to PC, TBB and TBH. TRM: "three cycles for the pipeline reload"."""
SPLIT_TARGET = Fraction(1)
"""See ``REFILL_DIRECT``."""
UNALIGNED = Fraction(1)
"""TRM: a word at a half-word boundary or a half word at a byte boundary takes one cycle more; a word at an odd address
takes two more, which compilers' and our code does not have."""

_DIRECT = frozenset({"b", "bl", "cbz", "cbnz"})
_TABLE = frozenset({"tbb", "tbh"})
_MANY = ("ldm", "stm", "push", "pop", "vldm", "vstm", "vpush", "vpop", "ldrd", "strd")
_ALWAYS_THERE = frozenset({"flags", "pc"})


def costs(block: Sequence[DecodedInstruction], arithmetic: Arithmetic) -> list[Cost]:
    """Return the costs of the instructions of a basic block."""
    neighbours = zip(block, (None, *block), (*block[1:], None), strict=False)
    return [_cost(instruction, before, behind, arithmetic) for instruction, before, behind in neighbours]


def _cost(
    instruction: DecodedInstruction,
    before: DecodedInstruction | None,
    behind: DecodedInstruction | None,
    arithmetic: Arithmetic,
) -> Cost:
    name = instruction.mnemonic
    if name in _TABLE:  # TRM: two cycles for the load, one for the add, three for the reload
        return _of(3, WorkKind.BRANCH, REFILL_LOAD)
    if instruction.transfers:
        loads_pc = "pc" in instruction.writes
        return _of(_transfer(instruction, before, behind), WorkKind.MEMORY, REFILL_LOAD if loads_pc else 0)
    if name in _DIRECT:
        return _of(1, WorkKind.BRANCH, REFILL_DIRECT)
    if name in {"bx", "blx"} or "pc" in instruction.writes:
        return _of(1, WorkKind.BRANCH, REFILL_REGISTER)
    if name == "it":  # TRM: folded into an instruction of 16 bits before it
        return _of(int(before is None or before.size == 4), WorkKind.ARITHMETIC)
    return _of(arithmetic(instruction, before), WorkKind.ARITHMETIC)


def _of(cycles: int, kind: WorkKind, taken: int = 0) -> Cost:
    return Cost(Fraction(cycles), Fraction(taken), kind)


def _transfer(
    instruction: DecodedInstruction, before: DecodedInstruction | None, behind: DecodedInstruction | None
) -> int:
    """Return the cycles of a load or store, by the rules of "Load/store timings"."""
    stall = int(_address_is_new(instruction, before))
    if instruction.mnemonic.startswith(_MANY) or instruction.transfers > 1:
        return 1 + instruction.transfers + stall  # TRM: cannot be pipelined, but its elements are, together
    overlaps = before is not None and _is_single_load(before) and not before.writes & address_registers(instruction)
    if _loads(instruction):
        if updates_base(instruction):
            free = behind is not None and not behind.reads - _ALWAYS_THERE
            return (1 if free else 2) + stall
        return (1 if overlaps else 2) + stall
    # TRM: STR with an immediate offset takes one cycle; with a register, one more that overlaps after a load
    return (1 if overlaps or len(address_registers(instruction)) == 1 else 2) + stall


def _is_single_load(instruction: DecodedInstruction) -> bool:
    """Return whether the next load or store can overlap with this one."""
    single = instruction.transfers == 1 and not instruction.mnemonic.startswith(_MANY)
    return single and _loads(instruction) and not updates_base(instruction) and "pc" not in instruction.writes


def _loads(instruction: DecodedInstruction) -> bool:
    return instruction.mnemonic.startswith(("ldr", "vldr"))


def _address_is_new(instruction: DecodedInstruction, before: DecodedInstruction | None) -> bool:
    """Return whether the address depends on a data-processing instruction just before.

    TRM: that stalls for an additional cycle, because there is no forwarding path.
    """
    return before is not None and not before.transfers and bool(before.writes & address_registers(instruction))
