"""Budgets of stack: of each model, and of ``main`` with everything that it calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from mlfbuild.core import Diagnostic, package_fingerprint
from mlfbuild.core.keys import size_text
from mlfbuild.jobs import FirmwareJob
from mlfbuild.report.budgets.limits import since_last
from mlfbuild.report.budgets.record import BudgetRecord, read_record, state_of

if TYPE_CHECKING:
    from mlfbuild.report.sizes.images import ImageSizes
    from mlfbuild.report.stack.deepest_stack import StackDepth
    from mlfbuild.report.stack.image import Stacks

_MEASURE = "stack"


def exceeded_stacks(job: FirmwareJob, read: Callable[[], ImageSizes]) -> list[Diagnostic]:
    """Return each budget of stack that the job's image exceeds, or that cannot be checked.

    The image is not read if there are no budgets, or if nothing changed since they were last checked and kept. Raises
    ``ToolNotFoundError`` without objdump, ``ProcessFailedError`` if objdump fails, and as ``read``.
    """
    limits = job.stack_limits
    if job.target.toolchain is None or not limits:
        return []
    # The time and size of the image instead of its hash: every build asks, and most have nothing to check.
    record, linked = read_record(job.build / ".mlfbuild-stack.json"), job.elf.stat()
    # A new version of mlfbuild may compute another depth, so it is a part of the state.
    state = state_of(linked.st_mtime_ns, linked.st_size, limits, package_fingerprint())
    if record.state == state:
        return []
    from mlfbuild.report.stack.image import analysed_stacks  # disassembles the image

    stacks = analysed_stacks(read())
    found = list(excesses(stacks, limits, record))
    # Only a kept budget is recorded, so that an exceeded one is reported by every build.
    if not found:
        taken = {name: {_MEASURE: depth.size} for name, depth in stacks.by_name.items() if depth.size is not None}
        record.write(state, taken)
    return found


def excesses(stacks: Stacks, limits: Mapping[str, int], record: BudgetRecord) -> Iterator[Diagnostic]:
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
