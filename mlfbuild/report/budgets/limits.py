"""Flash and RAM of the subjects of budgets: models and the whole image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mlfbuild.report.budgets.record import Taken

if TYPE_CHECKING:
    from mlfbuild.report.sizes.owners import Owner, Sizes

_SHOWN = 3
"""Largest parts that a message names."""
MEMORIES = {"flash": "flash", "ram": "RAM"}
"""The keys of memories, each with its name in sentences."""


@dataclass(frozen=True)
class BudgetSubject:
    """A model or the whole image."""

    name: str
    """The model's name; empty for the image."""
    owners: Sequence[Owner]
    """The owners whose bytes count."""

    @property
    def title(self) -> str:
        """The name that messages use."""
        return f"model {self.name}" if self.name else "the image"

    def bytes_of(self, memory: str) -> int:
        """Return the bytes of one of the ``MEMORIES``."""
        return sum(_bytes(owner, memory) for owner in self.owners)

    def largest(self, memory: str) -> str:
        """Return the largest pieces of a model, or the largest owners of an image, with their bytes."""
        if self.name:
            pieces = [piece for owner in self.owners for piece in owner.largest(_SHOWN, ram=memory == "ram")]
            return ", ".join(f"{piece.name} {piece.size:,} ({piece.kind})" for piece in pieces)
        return largest([(owner.name, _bytes(owner, memory)) for owner in self.owners])


def _bytes(owner: Owner, memory: str) -> int:
    return owner.ram if memory == "ram" else owner.flash


def subjects_of(sizes: Sizes) -> list[BudgetSubject]:
    """Return each model and the whole image."""
    models = [BudgetSubject(owner.name, [owner]) for owner in sizes.models]
    return [*models, BudgetSubject("", [*sizes.models, *sizes.others])]


def taken_by(sizes: Sizes) -> Taken:
    """Return the flash and RAM of each model and of the whole image."""
    return {subject.name: {memory: subject.bytes_of(memory) for memory in MEMORIES} for subject in subjects_of(sizes)}


def largest(numbers: Sequence[tuple[str, int]]) -> str:
    """Return the names of the largest ``numbers``, each with its number."""
    ordered = sorted(numbers, key=lambda item: -item[1])[:_SHOWN]
    return ", ".join(f"{name} {number:,}" for name, number in ordered)


def since_last(now: int, before: int | None, text: Callable[[int], str] = "{:,}".format, fewer: str = "fewer") -> str:
    """Return a clause with the difference from the last build within its budget; empty if that is unknown.

    ``text`` formats the difference; ``fewer`` is the word for a smaller figure.
    """
    if before is None:
        return ""
    if now == before:
        return ", as in the last build: only the budget changed"
    return f", {text(abs(now - before))} {'more' if now > before else fewer} than in the last build within its budget"
