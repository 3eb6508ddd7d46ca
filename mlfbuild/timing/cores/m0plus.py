"""Costs of the Cortex-M0+: two stages, one instruction at a time, no overlap.

Source of all rows: Cortex-M0+ Technical Reference Manual (DDI 0484C), table 3-1, for zero wait states.
"""

from __future__ import annotations

from fractions import Fraction

from mlfbuild.timing.costs import CoreTiming, Cost, DecodedInstruction, WorkKind

_REFILL = Fraction(1)
"""A taken branch: B 2, B<cond> 1 or 2, BX and BLX 2, MOV and ADD to PC 2."""
_CYCLES = {
    "bl": 2,  # 3 with the refill
    "mrs": 3, "msr": 3, "dmb": 3, "dsb": 3, "isb": 3,
    "mul": 1,  # the fast multiplier; the small one, which takes 32, is in none of the parts
}  # fmt: skip
_BRANCHES = frozenset({"b", "bl", "bx", "blx"})


def _cost(instruction: DecodedInstruction) -> Cost:
    name, moved = instruction.mnemonic, instruction.transfers
    # Writing pc is a branch, whatever the instruction: POP and MOV do it.
    branches = name in _BRANCHES or "pc" in instruction.writes
    if moved:
        # LDR and STR 2, also to single-cycle I/O ports, which have no variables; LDM, STM, PUSH and POP 1 + N; POP with
        # PC 3 + N, PC counts as one of the N
        return Cost(Fraction(1 + moved), Fraction(2 if branches else 0), WorkKind.MEMORY)
    cycles = Fraction(_CYCLES.get(name, 1))
    return Cost(cycles, _REFILL if branches else Fraction(0), WorkKind.BRANCH if branches else WorkKind.ARITHMETIC)


CORTEX_M0PLUS = CoreTiming(
    core="cortex-m0plus",
    costs=lambda block, _loops: [_cost(instruction) for instruction in block],
    error=3,
    sources=("Cortex-M0+ Technical Reference Manual (DDI 0484C), table 3-1",),
)
