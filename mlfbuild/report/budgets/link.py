"""Budgets of an image that another build system linked: flash, RAM and stack, and the budgets that it cannot check."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import Diagnostic, listed, unknown
from mlfbuild.jobs import TargetBudgets
from mlfbuild.project import Budget
from mlfbuild.report.budgets.check import memory_excesses, size_excesses, stack_excesses
from mlfbuild.report.budgets.limits import BudgetRecord

if TYPE_CHECKING:
    from mlfbuild.report.sizes.images import ImageSizes

_OF_LINKS = ("flash", "ram", "stack", "memories")
"""The budgets that a link can exceed; all others need a run."""
# mlfbuild keeps no record of links by other build systems, so messages state no difference from an earlier one.
_NEVER_BUILT = BudgetRecord(Path())


@dataclass(frozen=True)
class LinkBudgets:
    """The budgets that apply to one image."""

    target: str
    budgets: Mapping[str, Budget]
    """By model; the empty name has the budget of the whole image."""
    firmware: str = ""
    """The firmware that the image is; empty if it is none of the project file."""
    baseline: str = ""
    """The file of accepted sizes; empty if there is none for the image."""


def link_budgets(budgets: TargetBudgets, image: str, models: Collection[str] = (), firmware: str = "") -> LinkBudgets:
    """Return the budgets that apply to ``image``, the name of its file without suffix.

    ``models`` selects those of some models, by their names or those of their modules; without it, all count. The whole
    image has the budget of the ``firmware``, or of the firmware that has the image's name. Raises ``UsageError`` for
    unknown names.
    """
    # A model may be named by one of its modules, whose names are those of the libraries.
    chosen = {budgets.modules.get(name, name) for name in models}
    for model in sorted(chosen):
        _check_name("model", model, budgets.models)
    if firmware:
        _check_name("firmware", firmware, budgets.firmware)
    # The name of the file is only a guess at the firmware, so it must match exactly.
    name = firmware or (image if image in budgets.firmware else "")
    own = {model: budget for model, budget in budgets.models.items() if not chosen or model in chosen}
    # The empty name stands for the whole image, as in `Taken`.
    own[""] = budgets.firmware.get(name, Budget())
    # Without budgets, nothing of the image is read.
    limited = {subject: budget for subject, budget in own.items() if budget != Budget()}
    return LinkBudgets(budgets.target, limited, name, budgets.baseline if name else "")


def _check_name(what: str, name: str, known: Collection[str]) -> None:
    if name not in known:
        raise unknown(what, name, known).error(f"--{what}")


def exceeded(found: ImageSizes, limits: LinkBudgets) -> list[Diagnostic]:
    """Return each budget of flash, RAM or stack in ``limits`` that the image exceeds, or that cannot be checked.

    Raises as ``analysed_stacks`` if there are budgets of stack.
    """
    problems = list(size_excesses(found.sizes, limits.budgets, _NEVER_BUILT))
    problems += memory_excesses(found, limits.budgets, _NEVER_BUILT)
    stacks = {name: budget.stack for name, budget in limits.budgets.items() if budget.stack is not None}
    if stacks:
        from mlfbuild.report.stack.image import analysed_stacks  # disassembles the image

        problems += stack_excesses(analysed_stacks(found), stacks, _NEVER_BUILT)
    # Budgets of several targets may be checked in one build, so the place names image and target.
    place = f"{found.image.path.name} for {limits.target}"
    return [replace(problem, place=f"{place}: {problem.place}") for problem in problems]


def not_checked(found: ImageSizes, limits: LinkBudgets) -> Iterator[str]:
    """Yield a line for each budget that a link cannot check, with the command that does, or with the reason.

    Builds of mlfbuild and ``mlfbuild profile`` check these budgets. Lines are for people, without a prefix.
    """
    target = f"--target {limits.target}"
    for name, budget in limits.budgets.items():
        rest = [key for key, limit in vars(budget).items() if limit is not None and key not in _OF_LINKS]
        if rest:
            command = f"mlfbuild profile {target} --model {name}" if name else f"mlfbuild profile {target}"
            yield f"{listed(rest)} of {f'model {name}' if name else 'all models'}: run `{command}`"
    there = {owner.name for owner in found.sizes.models if owner.pieces}
    for name in limits.budgets:
        # A budget of a model that is not linked is kept by accident, for example because the library has another name.
        if name and name not in there and name not in found.sizes.mixed:
            yield f"model {name}: the image has no code of it (the map lists none of its files)"
    if limits.baseline:
        yield f"growth since {limits.baseline}: run `mlfbuild build {target}`"


def without_budget(budgets: TargetBudgets, limits: LinkBudgets) -> Iterator[str]:
    """Yield why no budget applies to an image that the user named, or why none of a whole image does."""
    if not (limits.budgets or limits.baseline):
        yield f"target {limits.target} has no budget that applies to this image"
    others = [name for name, budget in budgets.firmware.items() if budget != Budget()]
    if others and not limits.firmware:
        yield f"budget of firmware {listed(others)}: the image has another name; add --firmware if it is one of them"
