"""Issue the instructions of a basic block in order, one or two per cycle, as the pipelines of M7, M33, M55 and M85 do.

A core describes each instruction as a ``Step``, and the time from a result to its use as ``Delays``: rows name how a
result is made, columns how it is used, and a number is the smallest distance in cycles between the issue of both.

           any stored
    alu    1   1         the next instruction can use it
    load   2   1         the next instruction can store it; others wait for one cycle

A loop is issued repeatedly until its period is known, so that the end of one iteration overlaps with the start of the
next. Other blocks begin with all registers ready.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from mlfbuild.timing.costs import BlockCosts, Cost, DecodedInstruction, WorkKind

Delays = Mapping[tuple[str, str], int]
"""Cycles by how a result is made and how it is used."""

_WARM_UP = 8
"""Iterations until a loop repeats itself: the longest latency of the cores, a division, is over after them."""
_PERIOD = 4
"""Iterations that are averaged: loops with an odd number of instructions repeat after two."""


def delays(table: str) -> Delays:
    """Return the delays of a table in text form, as in the example of this module.

    The first line has the words for uses, each further line a word for how a result is made and a number for each use.
    Raises ``ValueError`` for a line with another count of numbers.
    """
    uses, *rows = (line.split() for line in table.strip().splitlines())
    return {
        (made, use): int(cycles)
        for made, *numbers in rows
        for use, cycles in zip(uses, numbers, strict=True)
    }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Step:
    """An instruction as the pipeline sees it: operands, results, and the units that it needs."""

    kind: WorkKind
    reads: Sequence[tuple[str, str]] = ()
    """Registers and how they are used."""
    writes: Sequence[tuple[str, str]] = ()
    """Registers and how they are made."""
    cycles: int = 1
    """Cycles until the next instruction can be issued."""
    waits: frozenset[str] = frozenset()
    """Units that must be free."""
    blocks: Mapping[str, int] = field(default_factory=dict)
    """Units that are not free for some cycles from the issue of the step."""
    waits_as_second: frozenset[str] = frozenset()
    """Units that must be free if the step is the second one of a pair."""
    tags: frozenset[str] = frozenset()
    """Properties that the rules of the core for pairs know."""
    stages: Sequence[tuple[str, str]] = ()
    """Earlier stages that can execute the step, first to last: a use that all operands must be ready for, and how the
    results are made then. Not for the second step of a pair, unless it has the tag ``either slot``."""
    lists: int = 0
    """Words per cycle of a load of a list, whose results are made one after the other; 0 for other steps."""
    place: tuple[str, int] | None = None
    """Base register and constant offset of a load."""
    branches: bool = False


def tagged(instruction: DecodedInstruction, names: Iterable[str] = ()) -> frozenset[str]:
    """Return the tags ``names`` of an instruction, and ``narrow`` if it has 16 bits."""
    return frozenset({*names, "narrow"} if instruction.size == 2 else names)


@dataclass(frozen=True, kw_only=True)
class InOrderCore:
    """The rules of a core."""

    delays: Delays
    together: Callable[[Step, Step], Fraction | None]
    """Returns the mean cost of issuing the second step with the first one; ``None`` if that is impossible."""
    taken: Callable[[Step, Step | None], Fraction]
    """Returns the further cycles of a taken branch; the second step is the one that it is issued together with."""
    across_branches: Callable[[Sequence[Step]], bool] = lambda _steps: False
    """Whether the branch at the end of a loop can be issued together with the first instruction of the loop."""


def refilled(refill: Fraction, partner: Step | None) -> Fraction:
    """Return the further cycles of a taken branch: ``refill``, and one if its flags are set in the same cycle."""
    return refill + (1 if partner is not None and "flags" in partner.tags else 0)


def block_costs(core: InOrderCore, step: Callable[[DecodedInstruction], Step]) -> BlockCosts:
    """Return the function for the costs of a basic block on ``core``, whose instructions ``step`` describes."""
    return lambda block, loops: costs(core, [step(instruction) for instruction in block], loops)


def costs(core: InOrderCore, steps: Sequence[Step], loops: bool) -> list[Cost]:
    """Return the costs of the steps of a basic block.

    Each is in core cycles and has no waits for memories. With ``loops``, the block branches to its own start: the costs
    are then means over some iterations, so they may be fractions.
    """
    # A block that is not a loop is entered with an idle pipeline.
    issue = _Issue(core)
    if not loops:
        return [Cost(cycles, taken, step.kind) for step, (cycles, taken) in zip(steps, issue.run(steps), strict=True)]
    joined = core.across_branches(steps)
    rounds = []
    for _ in range(_WARM_UP + _PERIOD):
        rounds.append(list(issue.run(steps)))
        issue.repeat(rounds[-1][-1][1], joined)
    columns = list(zip(*rounds[-_PERIOD:], strict=True))
    return [
        Cost(sum((cycles for cycles, _ in column), Fraction(0)) / _PERIOD, column[-1][1], step.kind)
        for step, column in zip(steps, columns, strict=True)
    ]


class _Issue:
    """The state of a core: what is issued, and when results and units are ready."""

    def __init__(self, core: InOrderCore) -> None:
        self._core = core
        self._now = 0  # the first cycle in which nothing is issued
        self._first: Step | None = None  # issued alone in the cycle before, so that a second one can join it
        # By register: the cycle from which delays count, and how the result was made.
        self._made: dict[str, tuple[int, str]] = {}
        # By unit: the first cycle in which it is free again.
        self._free: dict[str, int] = {}

    def run(self, steps: Sequence[Step]) -> Iterator[tuple[Fraction, Fraction]]:
        """Issue the steps; yield the cycles of each, and its further ones if it branches."""
        for step in steps:
            before = self._now
            mean = self._joined(step)
            partner = self._first if mean is not None else None
            if mean is not None:
                start, self._first = self._now - 1, None
            else:
                start = max(self._now, self._ready(step, step.waits))
                self._now, self._first = start + step.cycles, step
            self._use(step, start, start + step.cycles - 1, partner)
            yield (
                self._now - before + (mean or Fraction(0)),
                self._core.taken(step, partner) if step.branches else Fraction(0),
            )

    def repeat(self, taken: Fraction, joined: bool) -> None:
        """Continue at the start of the loop after its branch, whose refill takes ``taken`` cycles."""
        # A whole number, because instructions are issued in cycles; the fraction is in the cost of the branch itself.
        self._now += max(math.ceil(taken), 0)
        if not joined or taken > 0:
            self._first = None

    def _joined(self, step: Step) -> Fraction | None:
        """Return the mean cost if ``step`` can be issued together with the one before; ``None`` if it cannot."""
        # An instruction of several cycles is never the second one of a pair on these cores.
        if self._first is None or step.cycles > 1:
            return None
        # The pair is issued in the cycle before, so operands and units must be ready there.
        if self._ready(step, step.waits | step.waits_as_second) > self._now - 1:
            return None
        return self._core.together(self._first, step)

    def _ready(self, step: Step, units: frozenset[str]) -> int:
        """Return the first cycle in which operands and units are ready."""
        ready = [self._available(register, use) for register, use in step.reads]
        return max((*ready, *(self._free[unit] for unit in units if unit in self._free)), default=0)

    def _available(self, register: str, use: str) -> int:
        if register not in self._made:
            return 0
        at, made = self._made[register]
        return at + self._core.delays[made, use]

    def _all_ready(self, step: Step, use: str, start: int) -> bool:
        return all(self._available(register, use) <= start for register, _ in step.reads)

    def _use(self, step: Step, start: int, end: int, partner: Step | None) -> None:
        stages = step.stages if partner is None or "either slot" in step.tags else ()
        early = next((how for use, how in stages if self._all_ready(step, use, start)), "")
        early_results = {register: early for register, _ in step.writes} if early else {}
        for at, (register, made) in enumerate(step.writes):
            # Words of a list arrive in order, a few per cycle, so its first registers are ready before the last.
            ready = min(start + at // step.lists, end) if step.lists else end
            self._made[register] = ready, early_results.get(register, made)
        for unit, cycles in step.blocks.items():
            self._free[unit] = start + cycles
