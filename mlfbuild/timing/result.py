"""Cycles of a run, as the plugin adds them up."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass


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
