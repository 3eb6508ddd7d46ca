"""Upper limits of images and models, as a project file has them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from mlfbuild.core.keys import OTHERS, Count, Duration, Keys, Size
from mlfbuild.project.memory_keys import MemoryLimits

_RUN_BUDGETS = ("instructions", "cycles", "latency")
"""The budgets that need a run of the model."""


def run_budgets(*, board: bool, mcu: bool) -> tuple[str, ...]:
    """Return the keys of the budgets that runs for a target with a ``board``, or with an ``mcu``, can check.

    A board in QEMU counts instructions only. The cycle model of a microcontroller counts them as well, and has cycles
    and a clock.
    """
    # The first one is that of instructions.
    return _RUN_BUDGETS if mcu else _RUN_BUDGETS[:1] if board else ()


@dataclass(frozen=True)
class Budget(Keys):
    """Upper limits; a build that exceeds one fails. Other keys are memories: `dtcm: 64 KiB`."""

    TITLE = "budget"

    flash: Size | None = None
    """Bytes of flash: 96 KiB"""
    ram: Size | None = None
    """Bytes of RAM that the linker allocates: 32 KiB"""
    stack: Size | None = None
    """Bytes of stack at its deepest: of the model, or of main and all functions that it calls: 2 KiB"""
    instructions: Count | None = None
    """Instructions of one run of each model, on QEMU: 3 M"""
    cycles: Count | None = None
    """Modelled cycles of one run of each model on the target's `mcu`: 5 M"""
    latency: Duration | None = None
    """Modelled time of one run of each model at the target's clock: 40 ms"""
    memories: MemoryLimits = field(default_factory=dict, metadata=OTHERS)
    """Bytes in memories of the target, by the name of the memory."""

    def to_json(self) -> dict[str, Any]:
        """Return all limits by key, ``None`` for those that are not set; ``memories`` only if it has any."""
        found = dict(vars(self))
        return found if self.memories else {key: limit for key, limit in found.items() if key != "memories"}

    def on(self, memories: Iterable[str]) -> Budget:
        """Return the budget of an image whose target has ``memories``, without those of other targets' memories."""
        known = {*memories}
        return replace(self, memories={name: limit for name, limit in self.memories.items() if name in known})

    @property
    def of_runs(self) -> dict[str, int]:
        """The limits that need a run of the model; that of the latency in nanoseconds.

        The keys are those of ``run_budgets``: ``instructions``, ``cycles`` and ``latency``, as far as the project file
        has them, in this order.
        """
        return {key: limit for key in _RUN_BUDGETS if (limit := getattr(self, key)) is not None}


@dataclass(frozen=True)
class BudgetFile:
    """A baseline: the accepted sizes of images, and the accepted growth."""

    path: Path
    growth: Decimal
    """Accepted growth, in per cent."""
