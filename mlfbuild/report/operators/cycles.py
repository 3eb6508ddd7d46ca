"""Modelled cycles of a run, split by what the core does in them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlfbuild.core.keys import frequency_text

if TYPE_CHECKING:
    from mlfbuild.timing import CycleCount

CYCLE_KINDS: Mapping[str, str] = {
    "arithmetic": "arithmetic",
    "memory": "loads and stores",
    "branches": "branches",
    "waiting": "waiting for memory",
}
"""The fields of ``CycleCount``, each with its name in tables and charts."""


@dataclass(frozen=True)
class TimedPart:
    """A microcontroller that cycles are modelled for."""

    mcu: str
    """The name of the microcontroller."""
    clock: int
    """Of its core, in Hz."""
    error: int
    """Stated error of the model for the core and its memories, in per cent."""

    @property
    def title(self) -> str:
        """The microcontroller with its clock: ``stm32l4r5 at 120 MHz``."""
        return f"{self.mcu} at {frequency_text(self.clock)}"

    @property
    def exactness(self) -> str:
        """The words that accompany every figure: ``modelled, +-15 %``."""
        return f"modelled, +-{self.error} %"

    def latency(self, cycles: int) -> int:
        """Return the nanoseconds that ``cycles`` take, rounded up, so that budgets compare exactly."""
        # Rounded up: a budget of 40 ms is not kept by 40 ms and a nanosecond.
        return -(-cycles * 10**9 // self.clock)

    def milliseconds(self, cycles: int) -> str:
        """Return the time of ``cycles`` for a column of a table: ``39.871``."""
        return f"{self.latency(cycles) / 10**6:,.3f}"


def sum_of_cycles(parts: Iterable[CycleCount | None]) -> CycleCount | None:
    """Return the sum; ``None`` if one of the parts is unknown.

    The sum of no parts is unknown as well.
    """
    found = list(parts)
    known = [part for part in found if part is not None]
    return functools.reduce(operator.add, known) if known and len(known) == len(found) else None
