"""Changes of an image since the report that it is compared with, as rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mlfbuild.report.document.compare import Change, ImageChange, OwnerChange
from mlfbuild.report.html.numbers import short_name
from mlfbuild.report.sizes.owners import FLASH_KINDS, RAM_KINDS

# Rows of a table; the page says how many others there are. The JSON form has all.
_SHOWN = 40


@dataclass(frozen=True)
class DifferenceRow:
    """An item of one or both reports with the changes of its numbers; ``None`` for a number that it does not have."""

    name: str
    note: str
    changes: tuple[Change | None, ...]
    part: bool = False
    """Whether it is a part of the row above it."""

    @property
    def state(self) -> str:
        """``added``, ``removed`` or empty."""
        known = self.changes[0]
        if known is None or self.part:
            return ""
        return "added" if known.before is None else "removed" if known.now is None else ""


@dataclass(frozen=True)
class Differences:
    """The differences of an image; ``found`` is false if the other report does not have it."""

    found: bool
    same: bool
    """Whether the files are identical, with the same figures."""
    owners: tuple[DifferenceRow, ...]
    """Flash and RAM of the image, its models and other changed owners."""
    runs: tuple[DifferenceRow, ...]
    """Instructions, stack and cycles of models, if both reports have one of them."""
    operators: tuple[DifferenceRow, ...]
    """Flash, MACs, instructions and cycles of changed operators."""
    more_operators: int
    """Number of other changed operators."""
    pieces: tuple[DifferenceRow, ...]
    """Bytes of functions, constants and variables that changed."""
    more_pieces: int
    repacked: tuple[RepackedRow, ...]
    error: int | None = None
    """Of modelled cycles, in per cent, if both reports have some."""


@dataclass(frozen=True)
class RepackedRow:
    """Constants of an owner that are unchanged, but at another place or in another layout."""

    owner: str
    count: int
    size: int


def differences(change: ImageChange | None) -> Differences:
    """Return the differences of an image; ``None`` is an image that the other report does not have."""
    if change is None:
        return Differences(False, False, (), (), (), 0, (), 0, ())
    operators = [
        DifferenceRow(
            f"{each.operator} {short_name(each.name)}",
            owner.name,
            _known(each.bytes, each.macs, each.instructions, each.cycles),
        )
        for owner in change.owners
        for each in owner.operators
    ]
    pieces = [
        DifferenceRow(each.name, f"{each.kind} of {owner.name}", (each.bytes,))
        for owner in change.owners
        for each in owner.pieces
    ]
    operators.sort(key=_weight)
    pieces.sort(key=_weight)
    return Differences(
        True,
        change.unchanged,
        (DifferenceRow("the image", "", (change.flash, change.ram)), *_owners(change.owners)),
        tuple(
            DifferenceRow(owner.name, "", figures)
            for owner in change.owners
            if any(figures := _known(owner.instructions, owner.stack, owner.cycles))
        ),
        tuple(operators[:_SHOWN]),
        len(operators[_SHOWN:]),
        tuple(pieces[:_SHOWN]),
        len(pieces[_SHOWN:]),
        tuple(
            RepackedRow(owner.name, len(owner.repacked), sum(piece.bytes.now or 0 for piece in owner.repacked))
            for owner in change.owners
            if owner.repacked
        ),
        change.error,
    )


def _weight(line: DifferenceRow) -> list[int]:
    return [-abs(change.more) if change else 0 for change in line.changes]


def _known(*changes: Change) -> tuple[Change | None, ...]:
    """Return changes, with ``None`` for those that both reports lack."""
    return tuple(None if change.before is None and change.now is None else change for change in changes)


def _owners(owners: Iterable[OwnerChange]) -> Iterator[DifferenceRow]:
    for owner in owners:
        there = any((change.before, change.now) != (0, 0) for change in (owner.flash, owner.ram))
        if there and (owner.model or owner.changed):
            yield DifferenceRow(owner.name, "model" if owner.model else "", (owner.flash, owner.ram))
            yield from _kinds(owner) if owner.model else ()


def _kinds(owner: OwnerChange) -> Iterator[DifferenceRow]:
    """Yield the changed kinds of a model's bytes, if both reports have the model."""
    if owner.flash.before is None or owner.flash.now is None:
        return
    for kinds, place in ((FLASH_KINDS, 0), (RAM_KINDS, 1)):
        for kind in kinds:
            change = owner.kinds[kind]
            if change.more:
                yield DifferenceRow(kind, "", (None, change) if place else (change, None), part=True)
