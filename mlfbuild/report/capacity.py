"""The use of a part's memories, or of budgets, by models and images."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlfbuild.core.keys import rounded_size
from mlfbuild.jobs import TargetJob
from mlfbuild.project import Budget


@dataclass(frozen=True)
class UsageLimit:
    """The limit that a figure is compared with."""

    name: str
    """The part, or ``the budget``."""
    size: int


@dataclass(frozen=True)
class Usage:
    """A figure in bytes of a model or an image, with its limits."""

    subject: str
    """Such as ``kws for m4``."""
    measure: str
    """``arena``, ``constants``, ``flash`` or ``RAM``."""
    size: int
    limits: tuple[UsageLimit, ...] = ()
    """The first one is the most important."""

    @property
    def shares(self) -> str:
        """Return the share of each limit, for people; empty without limits."""
        return ", ".join(
            f"{100 * self.size / limit.size:.0f} % of {limit.name} ({rounded_size(limit.size)})"
            for limit in self.limits
            if limit.size
        )


def usages(subject: str, sizes: Mapping[str, int], target: TargetJob, budget: Budget) -> Iterator[Usage]:
    """Yield a ``Usage`` for each of ``sizes``, by measure, with the limits of ``target`` and ``budget``.

    Limits are the memory of the part, if the target has a memory map, and the budget. Emulated boards are not a limit:
    they have more memory than any part, so that the share would be close to nothing.
    """
    part = _memories(target)
    for measure, size in sizes.items():
        memory = "flash" if measure in {"flash", "constants"} else "ram"
        # A budget of flash holds code and constants, so that a share of constants alone would mislead.
        allowed = None if measure == "constants" else getattr(budget, memory)
        limits = [*part.get(memory, ()), *([UsageLimit("the budget", allowed)] if allowed else ())]
        yield Usage(subject, measure, size, tuple(limits))


def _memories(target: TargetJob) -> Mapping[str, tuple[UsageLimit, ...]]:
    """Return the memories of the part of ``target``, by ``flash`` and ``ram``."""
    mcu, runner = target.mcu, target.runner
    known = (runner.memory if runner else None) or (mcu.memory if mcu else None)
    if known is None:
        return {}
    name = mcu.name if mcu else target.name
    regions = {"flash": known.flash, "ram": known.ram}
    return {key: (UsageLimit(name, region.size),) for key, region in regions.items() if region is not None}
