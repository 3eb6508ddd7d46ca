"""Budgets of stack: what a model, or ``main`` with all that it calls, may take at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlfbuild.project import size_text
from mlfbuild.report.budgets.limits import change_text
from mlfbuild.report.stack.image import MAIN, Stacks
from mlfbuild.report.stack.worst import StackDepth

Limits = Mapping[str, int]
"""Bytes by the name of a model; by the empty name those of ``main``."""


def subjects_of(stacks: Stacks) -> dict[str, StackDepth]:
    """Return what is known of each model, by name, and of ``main``, by the empty name."""
    return {**stacks.models, "": stacks.main}


def exceeded(stacks: Stacks, limits: Limits, before: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each of ``limits`` that is exceeded, or of which that cannot be told, with the reason.

    ``before`` is what an earlier build took: a line tells the difference, and the functions on the way down.
    """
    for name, depth in subjects_of(stacks).items():
        limit = limits.get(name)
        title = f"model {name}" if name else MAIN
        if limit is not None and depth.size is None:
            yield (
                f"what {title} takes of stack is not known, and so not whether its budget of {size_text(limit)} is "
                f"enough: {depth.reason}{_reached(depth)}; change that, or remove the budget"
            )
        elif limit is not None and depth.size is not None and depth.size > limit:
            change = (
                f", {change_text(depth.size - before[name])} the last build that was within it"
                if name in before
                else ""
            )
            yield (
                f"{title} takes {size_text(depth.size)} of stack, {size_text(depth.size - limit)} over its budget of "
                f"{size_text(limit)}{change}; at its deepest: {way_down(depth)}; "
                "save there, or raise the budget"
            )


def _reached(depth: StackDepth) -> str:
    """Return the functions on the way to the one that is not known; nothing where it is the first."""
    names = [part.function for part in depth.path]
    return f" ({' > '.join(names)})" if len(names) > 1 else ""


def way_down(depth: StackDepth) -> str:
    """Return the functions that have something on the stack where it is deepest, from the first one down."""
    return ", ".join(f"{part.function} {part.size:,}" for part in depth.path if part.size)
