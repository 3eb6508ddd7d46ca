"""Budgets: what a model or an image may take of flash and RAM, held against what it takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.manifest import Budget
from mlfbuild.manifest.units import size_text
from mlfbuild.report.sizes import Owner, Piece, Sizes

_SHOWN = 3
"""Largest pieces that a message names."""
Taken = Mapping[str, Mapping[str, int]]
"""Bytes of ``flash`` and ``ram`` by the name of a model; by the empty name those of the image."""


@dataclass(frozen=True)
class _Subject:
    """What has a budget."""

    name: str
    """Of a model; empty for the image."""
    budget: Budget
    parts: Sequence[Owner]
    """Whose bytes count."""


def taken_by(sizes: Sizes) -> Taken:
    """Return what each model and the whole image take."""
    everybody = (*sizes.models, *sizes.others)
    whole = {"flash": sum(owner.flash for owner in everybody), "ram": sum(owner.ram for owner in everybody)}
    return {"": whole, **{owner.name: {"flash": owner.flash, "ram": owner.ram} for owner in sizes.models}}


def excesses(sizes: Sizes, models: Mapping[str, Budget], whole: Budget, before: Taken) -> Iterator[str]:
    """Yield a line for each budget of ``models`` and of the ``whole`` image that is exceeded.

    ``before`` is what an earlier build took: a line tells the difference, and what takes most.
    """
    subjects = [_Subject(owner.name, models.get(owner.name, Budget()), [owner]) for owner in sizes.models]
    subjects.append(_Subject("", whole, [*sizes.models, *sizes.others]))
    taken = taken_by(sizes)
    for subject in subjects:
        for memory, limit in (("flash", subject.budget.flash), ("ram", subject.budget.ram)):
            size = taken[subject.name][memory]
            if limit is not None and size > limit:
                yield _line(subject, memory, size, limit, before.get(subject.name, {}).get(memory))


def _line(subject: _Subject, memory: str, size: int, limit: int, before: int | None) -> str:
    who = f"model {subject.name}" if subject.name else "the image"
    words = "RAM" if memory == "ram" else memory
    change = "" if before is None else f", {_change(size - before)} the last build that was within it"
    largest = ", ".join(_largest(subject, ram=memory == "ram"))
    return (
        f"{who} takes {size_text(size)} of {words}, {size_text(size - limit)} over its budget of {size_text(limit)}"
        f"{change}; most of it: {largest}"
    )


def _change(difference: int) -> str:
    if difference == 0:
        return "as many as in"
    return f"{abs(difference):,} {'more' if difference > 0 else 'fewer'} than in"


def _largest(subject: _Subject, *, ram: bool) -> Iterator[str]:
    if len(subject.parts) > 1:
        owners = sorted(subject.parts, key=lambda owner: -(owner.ram if ram else owner.flash))[:_SHOWN]
        yield from (f"{owner.name} {owner.ram if ram else owner.flash:,}" for owner in owners)
        return
    yield from (_piece(piece) for piece in subject.parts[0].largest(_SHOWN, ram=ram))


def _piece(piece: Piece) -> str:
    return f"{piece.name} {piece.size:,} ({piece.kind})"
