"""The values of the cycle model: decoded instructions, their costs on a core, and the cycles of a run."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction


class WorkKind(Enum):
    """The part of the core that an instruction keeps busy, for the split of an operator's cycles."""

    ARITHMETIC = "arithmetic"
    MEMORY = "loads and stores"
    BRANCH = "branches"


@dataclass(frozen=True)
class DecodedInstruction:
    """An instruction of an image, as objdump prints it, with its registers."""

    address: int
    """Without the bit that marks Thumb code."""
    size: int
    """Bytes: 2 or 4."""
    mnemonic: str
    """Lower case, without width (``.w``, ``.n``) and condition, with data types: ``ldr``, ``smlad``, ``vldrb.s8``."""
    condition: str
    """Condition of a branch or of an instruction in an IT block: ``ne``; empty for always."""
    operands: str
    """As objdump prints them, without its comment."""
    reads: frozenset[str]
    """Registers that it reads: ``r0`` to ``r12``, ``sp``, ``lr``, ``pc``, ``s0``, ``d0``, ``q0``, ``flags``.
    Registers of a list are all there, and a base register that is written back is in both sets."""
    writes: frozenset[str]
    transfers: int
    """Words that a load or store moves: 4 for ``ldm r0, {r1-r4}``; 0 for other instructions."""
    target: int | None
    """Address that a direct branch goes to."""


@dataclass(frozen=True)
class Cost:
    """The time of an instruction in its block, without waits for memories."""

    cycles: Fraction
    """Core cycles; 0 for an instruction that is issued together with the one before it."""
    taken: Fraction
    """Further cycles if it branches; negative for the branch of a loop that the core predicts to continue."""
    kind: WorkKind
    overlaps: bool = False
    """Whether it is a load or store that overlaps with the load before it, if both access the same memory."""


# Blocks and not single instructions, because the cost of an instruction depends on its neighbours.
BlockCosts = Callable[[Sequence[DecodedInstruction], bool], Sequence[Cost]]
"""The costs of each instruction of a basic block. The flag says that the block is a loop: it branches to its own start,
so that its last instructions may overlap with its first ones."""


@dataclass(frozen=True, kw_only=True)
class CoreTiming:
    """The pipeline of a core."""

    core: str
    """Name in the table of CPUs, without features: ``cortex-m4``."""
    costs: BlockCosts
    split_target: Fraction = Fraction(0)
    """Further cycles of a taken branch to an instruction of 32 bits that is not at a word boundary."""
    unaligned: Fraction = Fraction(0)
    """Further cycles of a load of two or four bytes at an address that is not a multiple of its size."""
    other_memory: Fraction = Fraction(0)
    """Further cycles of a load or store that overlaps with the one before it, if that accesses another memory."""
    bus: int = 4
    """Bytes that the core loads or stores at a time: only the first access of an instruction to them has waits."""
    preloads: bool = False
    """Whether PLD fills a line of the data cache while the core goes on; otherwise it does nothing."""
    error: int
    """Stated error of modelled cycles in per cent: the bound of the evidence, `bounds` in benchmarks/silicon.py."""
    sources: Sequence[str]
    """Documents and measurements that the costs are taken from."""


@dataclass(frozen=True)
class CycleCount:
    """Modelled cycles of an operator or a run, by what the core does in them."""

    arithmetic: int
    memory: int
    """Loads and stores."""
    branches: int
    waiting: int
    """Waiting for memories, beyond accesses without wait states."""

    @property
    def total(self) -> int:
        """All cycles."""
        return sum(vars(self).values())

    def __add__(self, other: CycleCount) -> CycleCount:
        return CycleCount(*map(operator.add, vars(self).values(), vars(other).values()))


def cycle_count(units: Sequence[int], scale: int) -> CycleCount:
    """Return the cycles of the ``units`` of each kind, rounded to the nearest; a cycle has ``scale`` units.

    ``units`` has four counts, in the order of the fields: arithmetic, memory, branches, waiting. The kinds are rounded
    one by one, so a total may differ from the rounded total by up to two cycles.
    """
    # Integers, so that the result is the same on every machine.
    return CycleCount(*((2 * each + scale) // (2 * scale) for each in units))
