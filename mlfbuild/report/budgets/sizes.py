"""Budgets of flash and RAM."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from mlfbuild.core import Diagnostic
from mlfbuild.core.keys import size_text
from mlfbuild.jobs import FirmwareJob
from mlfbuild.project import Budget
from mlfbuild.report.budgets.growth import accepted_sizes, growth_of
from mlfbuild.report.budgets.limits import MEMORIES, since_last, subjects_of, taken_by
from mlfbuild.report.budgets.record import BudgetRecord, read_record, state_of

if TYPE_CHECKING:
    from mlfbuild.report.sizes.images import ImageSizes
    from mlfbuild.report.sizes.owners import Sizes

Budgets = Mapping[str, Budget]
"""Budgets by the name of a model; the empty name is the whole image."""


def exceeded_sizes(job: FirmwareJob, read: Callable[[], ImageSizes]) -> list[Diagnostic]:
    """Return each size of the job's image, or of a model in it, that exceeds its budget or the allowed growth.

    The image is not read if there are no limits, or if nothing changed since they were last checked and kept. Raises as
    ``accepted_sizes`` and ``read``.
    """
    budgets = {**dict(job.model_budgets), "": job.budget}
    limits = [limit for budget in budgets.values() for limit in (budget.flash, budget.ram)]
    if job.target.toolchain is None or not any(limit is not None for limit in [*limits, job.budget_file]):
        return []
    record, accepted, linked = read_record(job.build / ".mlfbuild-sizes.json"), accepted_sizes(job), job.elf.stat()
    growth = str(job.budget_file.growth) if job.budget_file else None
    allowed = {name: asdict(budget) for name, budget in budgets.items()}
    # The time of the image, not its hash: hashing takes as long as reading its symbols. A touch only repeats the check.
    state = state_of(linked.st_mtime_ns, linked.st_size, allowed, accepted, growth)
    if record.state == state:
        return []
    sizes = read().sizes
    found = [*excesses(sizes, budgets, record), *growth_of(job, sizes, accepted)]
    if not found:
        record.write(state, taken_by(sizes))
    return found


def excesses(sizes: Sizes, budgets: Budgets, record: BudgetRecord) -> Iterator[Diagnostic]:
    """Yield each of the ``budgets`` that is exceeded, with the difference from the build in ``record``."""
    for subject in subjects_of(sizes):
        budget = budgets.get(subject.name, Budget())
        for memory, limit in (("flash", budget.flash), ("ram", budget.ram)):
            size = subject.bytes_of(memory)
            # An unknown size is an excess: a budget that cannot be checked must not pass.
            if limit is not None and subject.name in sizes.mixed:
                yield Diagnostic(
                    "size-after-lto",
                    place=subject.title,
                    reason=f"link-time optimisation mixed its code with other code, so that its {MEMORIES[memory]} is "
                    "unknown",
                    hint="compile it without -flto, as `optimize: O2` does, or remove its budget",
                )
            elif limit is not None and size > limit:
                yield Diagnostic(
                    "size-over-budget",
                    place=subject.title,
                    reason=f"takes {size_text(size)} of {MEMORIES[memory]}, {size_text(size - limit)} over its budget "
                    f"of {size_text(limit)}{since_last(size, record.before(subject.name, memory))}",
                    hint=f"reduce its largest parts ({subject.largest(memory)}; `mlfbuild report -v` lists all), or "
                    "raise the budget",
                )
