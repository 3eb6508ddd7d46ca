"""All budgets of a firmware image: flash and RAM, the stack of each model and of ``main``, and runs of its models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from mlfbuild.core import Diagnostic, OnProgress, OverBudgetError, no_progress, package_fingerprint
from mlfbuild.core.keys import size_text
from mlfbuild.jobs import FirmwareJob
from mlfbuild.project import Budget
from mlfbuild.report.budgets.growth import accepted_sizes, growths
from mlfbuild.report.budgets.limits import (
    MEMORIES,
    BudgetRecord,
    image_record,
    largest,
    since_last,
    subjects_of,
    taken_by,
)
from mlfbuild.report.budgets.runs import exceeded_runs

if TYPE_CHECKING:
    from mlfbuild.report.sizes.images import ImageSizes
    from mlfbuild.report.sizes.owners import Sizes
    from mlfbuild.report.stack.deepest_stack import StackDepth
    from mlfbuild.report.stack.image import Stacks


Budgets = Mapping[str, Budget]
"""Budgets by the name of a model; the empty name is the whole image."""


def exceeded_sizes(job: FirmwareJob, read: Callable[[], ImageSizes]) -> list[Diagnostic]:
    """Return each size of the job's image, or of a model in it, that exceeds its budget or the allowed growth.

    The image is not read if there are no limits, or if nothing changed since they were last checked and kept. Raises as
    ``accepted_sizes`` and ``read``.
    """
    budgets = {**dict(job.model_budgets), "": job.budget}
    limits = [limit for budget in budgets.values() for limit in (budget.flash, budget.ram, *budget.memories.values())]
    if job.target.toolchain is None or not any(limit is not None for limit in [*limits, job.budget_file]):
        return []
    file, accepted = job.budget_file, accepted_sizes(job)
    allowed = {name: budget.to_json() for name, budget in budgets.items()}
    memories = [asdict(memory) for memory in job.target.memories]
    record = image_record(job, "sizes", allowed, accepted, str(file.growth) if file else None, memories)
    if record.current:
        return []
    image = read()
    sizes = image.sizes
    found = [*size_excesses(sizes, budgets, record), *memory_excesses(image, budgets, record)]
    if file is not None:
        found += growths(sizes, accepted, file.growth, file.path)
    if not found:
        record.write(taken_by(sizes, image.memory_uses))
    return found


def size_excesses(sizes: Sizes, budgets: Budgets, record: BudgetRecord) -> Iterator[Diagnostic]:
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


def memory_excesses(found: ImageSizes, budgets: Budgets, record: BudgetRecord) -> Iterator[Diagnostic]:
    """Yield each budget of a memory that is exceeded, with the difference from the build in ``record``, or is unknown.

    A model in ``budgets`` that the image does not have is within its budget.
    """
    uses = {use.name: use for use in found.memory_uses}
    for subject in subjects_of(found.sizes):
        for memory, limit in budgets.get(subject.name, Budget()).memories.items():
            use = uses[memory]
            size = use.bytes_of(subject.name)
            # As for flash and RAM: what is not known must not pass as kept.
            if use.problem or subject.name in found.sizes.mixed:
                mixed = "link-time optimisation mixed its code with other code"
                yield Diagnostic(
                    "memory-use-not-known",
                    place=subject.title,
                    reason=f"its use of {memory} cannot be compared with the budget of {size_text(limit)}: "
                    f"{use.problem or mixed}",
                    hint=f"correct origin or section of {memory} in memories of the target, or remove the budget",
                )
            elif size > limit:
                parts = largest([*use.sections.items()] if not subject.name else [*use.models.items()])
                yield Diagnostic(
                    "memory-over-budget",
                    place=subject.title,
                    reason=f"takes {size_text(size)} of {memory}, {size_text(size - limit)} over its budget of "
                    f"{size_text(limit)}{since_last(size, record.before(subject.name, memory))}",
                    hint=f"place less there ({parts}), limit models with memories, or raise the budget",
                )


_MEASURE = "stack"


def exceeded_stacks(job: FirmwareJob, read: Callable[[], ImageSizes]) -> list[Diagnostic]:
    """Return each budget of stack that the job's image exceeds, or that cannot be checked.

    The image is not read if there are no budgets, or if nothing changed since they were last checked and kept. Raises
    ``ToolNotFoundError`` without objdump, ``ProcessFailedError`` if objdump fails, and as ``read``.
    """
    limits = job.stack_limits
    if job.target.toolchain is None or not limits:
        return []
    # A new version of mlfbuild may compute another depth, so it is a part of the state.
    record = image_record(job, "stack", limits, package_fingerprint())
    if record.current:
        return []
    from mlfbuild.report.stack.image import analysed_stacks  # disassembles the image

    stacks = analysed_stacks(read())
    found = list(stack_excesses(stacks, limits, record))
    # Only a kept budget is recorded, so that an exceeded one is reported by every build.
    if not found:
        depths = stacks.by_name.items()
        record.write({name: {_MEASURE: depth.size} for name, depth in depths if depth.size is not None})
    return found


def stack_excesses(stacks: Stacks, limits: Mapping[str, int], record: BudgetRecord) -> Iterator[Diagnostic]:
    """Yield each of ``limits`` that is exceeded, with the difference from the build in ``record``, or is unknown."""
    for name, depth in stacks.by_name.items():
        limit = limits.get(name)
        title = f"model {name}" if name else "main"
        # An unknown depth, such as that of recursion, must not pass as kept.
        if limit is not None and depth.size is None:
            yield Diagnostic(
                "stack-not-known",
                place=title,
                reason=f"its stack cannot be compared with the budget of {size_text(limit)}: "
                f"{depth.reason}{_reached(depth)}",
                hint="change the code there, or remove the budget",
            )
        elif limit is not None and depth.size is not None and depth.size > limit:
            parts = ", ".join(f"{part.function} {part.size:,}" for part in depth.path if part.size)
            yield Diagnostic(
                "stack-over-budget",
                place=title,
                reason=f"takes {size_text(depth.size)} of stack, {size_text(depth.size - limit)} over its budget of "
                f"{size_text(limit)}{since_last(depth.size, record.before(name, _MEASURE))}",
                hint=f"reduce the frames of the deepest call chain ({parts}), or raise the budget",
            )


def _reached(depth: StackDepth) -> str:
    """Return the call chain to the function whose stack is unknown; empty if that is the first one."""
    names = [part.function for part in depth.path]
    return f" ({' > '.join(names)})" if len(names) > 1 else ""


def check_budgets(job: FirmwareJob, read: Callable[[], ImageSizes], on_progress: OnProgress = no_progress) -> None:
    """Raise ``OverBudgetError`` if the job's image, which ``read`` reads, or a model in it exceeds a budget.

    The allowed growth since a baseline counts as a budget.

    Nothing is read or run again if nothing changed since the budgets were last checked and kept. ``on_progress``
    receives progress. Raises as ``exceeded_sizes``, ``exceeded_stacks`` and ``exceeded_runs`` if a budget cannot be
    checked.
    """
    found = [*exceeded_sizes(job, read), *exceeded_stacks(job, read), *exceeded_runs(job, on_progress)]
    if found:
        place = f"{job.elf.name} for {job.target.name}"
        raise OverBudgetError([replace(each, place=f"{place}: {each.place}") for each in found])
