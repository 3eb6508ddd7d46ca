"""Budgets: what a model or an image may take of flash and RAM, held against what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.project import Budget, size_text
from mlfbuild.report.sizes import Owner, Sizes

_SHOWN = 3
"""Largest pieces that a message names."""
Taken = Mapping[str, Mapping[str, int]]
"""Bytes of ``flash`` and ``ram`` by the name of a model; by the empty name those of the image."""


MEMORIES = {"flash": "flash", "ram": "RAM"}
"""What is counted, and its name in sentences."""


@dataclass(frozen=True)
class Subject:
    """What may have a budget: a model, or the image."""

    name: str
    """Of a model; empty for the image."""
    parts: Sequence[Owner]
    """Whose bytes count."""

    @property
    def title(self) -> str:
        """What it is called in sentences."""
        return f"model {self.name}" if self.name else "the image"

    def bytes_of(self, memory: str) -> int:
        """Return what it takes of one of the ``MEMORIES``."""
        return sum(_bytes(owner, memory) for owner in self.parts)

    def largest(self, memory: str) -> str:
        """Return its largest contributors: the owners of the image's bytes, or the pieces of a model."""
        if self.name:
            pieces = [piece for owner in self.parts for piece in owner.largest(_SHOWN, ram=memory == "ram")]
            return ", ".join(f"{piece.name} {piece.size:,} ({piece.kind})" for piece in pieces)
        owners = sorted(self.parts, key=lambda owner: -_bytes(owner, memory))[:_SHOWN]
        return ", ".join(f"{owner.name} {_bytes(owner, memory):,}" for owner in owners)


def _bytes(owner: Owner, memory: str) -> int:
    return owner.ram if memory == "ram" else owner.flash


def subjects_of(sizes: Sizes) -> list[Subject]:
    """Return each model and the whole image."""
    return [*(Subject(owner.name, [owner]) for owner in sizes.models), Subject("", [*sizes.models, *sizes.others])]


def taken_by(sizes: Sizes) -> Taken:
    """Return what each model and the whole image take."""
    return {subject.name: {memory: subject.bytes_of(memory) for memory in MEMORIES} for subject in subjects_of(sizes)}


def excesses(sizes: Sizes, models: Mapping[str, Budget], whole: Budget, before: Taken) -> Iterator[str]:
    """Yield a line for each budget of ``models`` and of the ``whole`` image that is exceeded.

    ``before`` is what an earlier build took: a line tells the difference, and what takes most.
    """
    for subject in subjects_of(sizes):
        budget = models.get(subject.name, Budget()) if subject.name else whole
        for memory, limit in (("flash", budget.flash), ("ram", budget.ram)):
            if limit is not None and subject.bytes_of(memory) > limit:
                yield _line(subject, memory, limit, before.get(subject.name, {}).get(memory))


def _line(subject: Subject, memory: str, limit: int, before: int | None) -> str:
    size = subject.bytes_of(memory)
    change = "" if before is None else f", {change_text(size - before)} the last build that was within it"
    return (
        f"{subject.title} takes {size_text(size)} of {MEMORIES[memory]}, {size_text(size - limit)} over its budget of "
        f"{size_text(limit)}{change}; most of it: {subject.largest(memory)}; save there "
        "(`mlfbuild report -v` shows all), or raise the budget"
    )


def change_text(difference: int) -> str:
    """Return ``1,024 more than in``, to be followed by an earlier build."""
    if difference == 0:
        return "as many as in"
    return f"{abs(difference):,} {'more' if difference > 0 else 'fewer'} than in"
