"""Costs of Cortex-M3 and M4, which share a pipeline: three stages, one instruction at a time, loads that overlap.

Sources, by their short names in comments:

- TRM: Cortex-M3 Technical Reference Manual (DDI 0337I) and Cortex-M4 Technical Reference Manual (DDI 0439B), table 3-1
  and "Load/store timings", which has the same rules in both.
- JNK: measurements with an STM32F103 (M3) and an STM32F407 (M4), https://github.com/jnk0le/random, "pipeline cycle
  test", doc/cortex_m3m4.md.
- L4: measurements with the cycle counter of an STM32L4, https://compendium.i-0.nl, "Branch timing".

P is the manuals' name for the cycles of a pipeline refill after a branch.

The arithmetic of each core is a table: of the M3 from table 3-1 of its manual, of the M4 from table 3-1 for the core
and table 7-1 for the FPU; its integer multiplications, DSP and saturating instructions take one cycle. Where a manual
states a range that depends on operands, the middle is taken.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction

from mlfbuild.timing.cores.operands import loads
from mlfbuild.timing.costs import CoreTiming, Cost, DecodedInstruction, WorkKind
from mlfbuild.timing.decode import address_registers, updates_base

Arithmetic = Callable[[DecodedInstruction, DecodedInstruction | None], int]
"""Returns the cycles of an instruction that is neither a load, a store nor a branch; the second one is before it."""

_REFILL_DIRECT = 1
"""P of B, BL and CBZ. TRM: 1 to 3, "depending on the alignment and width of the target instruction, and whether the
processor manages to speculate the address early". L4: a taken branch takes 2 cycles, and 3 if its target is an
instruction of 32 bits that is not at a word boundary (``_SPLIT_TARGET``)."""
_REFILL_REGISTER = 2
"""P of BX, BLX and MOV to PC, whose target is known a stage later than that of direct branches: an estimate."""
_REFILL_LOAD = 3
"""P of loads to PC, TBB and TBH. TRM: "three cycles for the pipeline reload"."""
_SPLIT_TARGET = Fraction(1)
"""See ``_REFILL_DIRECT``."""
_OTHER_MEMORY = Fraction(1)
"""JNK: loads overlap only if both access the same memory."""
_UNALIGNED = Fraction(1)
"""TRM: a word at a half-word boundary or a half word at a byte boundary takes one cycle more; a word at an odd address
takes two more, which compilers' and our code does not have."""

_DIRECT = frozenset({"b", "bl", "cbz", "cbnz"})
# Loads of the branch offset from a table in the code, so they cost a load and a refill.
_TABLE = frozenset({"tbb", "tbh"})
# By name, because a list may have one register: it takes the time of a list.
_MANY = ("ldm", "stm", "push", "pop", "vldm", "vstm", "vpush", "vpop", "ldrd", "strd")


def three_stage_core(
    core: str, arithmetic: Arithmetic, *, updates_overlap: bool, error: int, sources: Sequence[str]
) -> CoreTiming:
    """Return the timing of ``core``.

    ``updates_overlap`` says whether loads and stores that update their base overlap with the load before them.

    ``arithmetic`` gives the cycles of all other instructions; ``error`` is in per cent. Costs depend on the neighbours
    of an instruction only: these pipelines have no state that lasts longer than one instruction.
    """

    def costs(block: Sequence[DecodedInstruction], _loops: bool) -> list[Cost]:
        # Blocks are costed on their own. The pipeline is refilled after a taken branch, so nothing overlaps across it,
        # and the error of a block that is entered without a branch is at most one overlap.
        neighbours = zip(block, (None, *block), (*block[1:], None), strict=False)
        return [_cost(*each, arithmetic, updates_overlap) for each in neighbours]

    return CoreTiming(
        core=core,
        costs=costs,
        split_target=_SPLIT_TARGET,
        unaligned=_UNALIGNED,
        other_memory=_OTHER_MEMORY,
        error=error,
        sources=sources,
    )


def _cost(
    instruction: DecodedInstruction,
    before: DecodedInstruction | None,
    behind: DecodedInstruction | None,
    arithmetic: Arithmetic,
    updates_overlap: bool,
) -> Cost:
    name = instruction.mnemonic
    if name in _TABLE:  # TRM: two cycles for the load, one for the add, three for the reload
        return _of(3, WorkKind.BRANCH, _REFILL_LOAD)
    if instruction.transfers:
        return _transfer(instruction, before, behind, updates_overlap)
    if name in _DIRECT:
        return _of(1, WorkKind.BRANCH, _REFILL_DIRECT)
    if name in {"bx", "blx"} or "pc" in instruction.writes:
        return _of(1, WorkKind.BRANCH, _REFILL_REGISTER)
    if name == "it":  # TRM: folded into an instruction of 16 bits before it
        return _of(int(before is None or before.size == 4), WorkKind.ARITHMETIC)
    return _of(arithmetic(instruction, before), WorkKind.ARITHMETIC)


def _of(cycles: int, kind: WorkKind, taken: int = 0) -> Cost:
    return Cost(Fraction(cycles), Fraction(taken), kind)


def _transfer(
    instruction: DecodedInstruction,
    before: DecodedInstruction | None,
    behind: DecodedInstruction | None,
    updates_overlap: bool,
) -> Cost:
    """Return the cycles of a load or store, by the rules of "Load/store timings" and of JNK."""
    stall = int(_address_is_new(instruction, before))
    overlaps = _overlaps(instruction, before, updates_overlap)
    # First, because loads of lists are also loads by name, but do not overlap.
    if _moves_many(instruction):
        cycles = 1 + instruction.transfers  # TRM: cannot be pipelined, but its elements are, together
    elif loads(instruction.mnemonic):
        cycles = 1 if overlaps or (behind is not None and behind.mnemonic == "nop") else 2  # JNK: hides a NOP
    else:
        # TRM: STR with an immediate offset takes one cycle; with a register, one more that overlaps after a load
        cycles = 1 if overlaps or len(address_registers(instruction)) == 1 else 2
        if behind is not None and behind.transfers and loads(behind.mnemonic):
            cycles = 2  # TRM: nothing can be pipelined after the store; JNK: that adds a cycle to the store
    taken = _REFILL_LOAD if "pc" in instruction.writes else 0
    return Cost(Fraction(cycles + stall), Fraction(taken), WorkKind.MEMORY, overlaps=overlaps)


def _overlaps(instruction: DecodedInstruction, before: DecodedInstruction | None, updates_overlap: bool) -> bool:
    """Return whether a load or store of one word overlaps with the load before it.

    JNK: on the M3, only the first one in a chain may update its base; on the M4, all may, of different bases. Loads of
    32 bits "may fail to pipeline correctly if they are not positioned at word aligned boundaries": they do not here.
    """
    if instruction.size == 4 and instruction.address % 4 and loads(instruction.mnemonic):
        return False
    if before is None or not before.transfers or _moves_many(before) or _moves_many(instruction):
        return False
    if not loads(before.mnemonic) or "pc" in before.writes or before.writes & address_registers(instruction):
        return False
    return updates_overlap or not updates_base(instruction)


def _moves_many(instruction: DecodedInstruction) -> bool:
    return instruction.transfers > 1 or instruction.mnemonic.startswith(_MANY)


def _address_is_new(instruction: DecodedInstruction, before: DecodedInstruction | None) -> bool:
    """Return whether the address depends on a data-processing instruction just before.

    TRM: that stalls for an additional cycle, because there is no forwarding path. JNK: as do two stores that update the
    same base.
    """
    if before is None or not before.writes & address_registers(instruction):
        return False
    return not before.transfers or not (loads(before.mnemonic) or loads(instruction.mnemonic) or _moves_many(before))


# Ranges of the manual are behind the numbers; all other instructions take one cycle.
_CYCLES_M3 = {
    "mla": 2, "mls": 2,
    "umull": 4, "smull": 4,  # 3 to 5
    "umlal": 5, "smlal": 5,  # 4 to 7, early with small operands
    "udiv": 7, "sdiv": 7,  # 2 to 12, depending on leading zeros and ones
    "mrs": 2, "msr": 2,
    "isb": 4, "dsb": 2, "dmb": 2,
}  # fmt: skip


CORTEX_M3 = three_stage_core(
    "cortex-m3",
    lambda instruction, _before: _CYCLES_M3.get(instruction.mnemonic, 1),
    updates_overlap=False,
    error=20,
    sources=("Cortex-M3 Technical Reference Manual (DDI 0337I), table 3-1, Load/store timings",),
)


_DIVIDE = 7
"""Table 3-1: 2 to 12, depending on the operands' leading zeros and ones; the middle."""
_CYCLES_M4 = {
    "udiv": _DIVIDE, "sdiv": _DIVIDE,
    "mrs": 2, "msr": 2,  # 1 or 2
    "isb": 4, "dsb": 2, "dmb": 2,  # 1 + B: barriers wait for outstanding accesses
    # Table 7-1
    "vmla": 3, "vmls": 3, "vfma": 3, "vfms": 3, "vnmla": 3, "vnmls": 3, "vfnma": 3, "vfnms": 3,
    "vdiv": 14, "vsqrt": 14,
}  # fmt: skip
_ACCUMULATES = re.compile(r"vf?n?ml?[as]|vf?n?m[as]")
_COMPUTES = re.compile(r"v(add|sub|n?mul|div|sqrt|cvt\w?|f?n?m[as]|n?ml[as])")
"""Table 7-1, note: these "take one cycle longer if their result is consumed by the following instruction"."""


def _arithmetic_m4(instruction: DecodedInstruction, before: DecodedInstruction | None) -> int:
    name = instruction.mnemonic.partition(".")[0]
    cycles = _CYCLES_M4.get(name, 1)
    if name == "vmov" and len(instruction.operands.split(",")) > 2:  # two registers of the core
        cycles = 2
    return cycles + int(before is not None and _waits_for_result(name, instruction, before))


def _waits_for_result(name: str, instruction: DecodedInstruction, before: DecodedInstruction) -> bool:
    """Return whether the instruction needs the float result of the one before it.

    Table 7-1, note: multiply-accumulates "consume their addend one cycle later", so the addend has no such wait.
    """
    if not _COMPUTES.fullmatch(before.mnemonic.partition(".")[0]):
        return False
    needed = instruction.reads
    if _ACCUMULATES.fullmatch(name):
        # The first operand is both the result and the addend, which is read a cycle later.
        needed = frozenset(part.strip() for part in instruction.operands.split(",")[1:])
    return bool(before.writes & needed)


CORTEX_M4 = three_stage_core(
    "cortex-m4",
    _arithmetic_m4,
    updates_overlap=True,
    error=15,
    sources=(
        "Cortex-M4 Technical Reference Manual (DDI 0439B), tables 3-1 and 7-1, Load/store timings",
        "branches: measurements with an STM32L4, https://compendium.i-0.nl, Branch timing",
    ),
)
