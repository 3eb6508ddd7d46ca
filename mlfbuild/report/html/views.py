"""The data of a report for the templates, from its JSON form, with the changes since an earlier report as rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mlfbuild.report.document.compare import Change, ImageChange, OwnerChange, compare_reports
from mlfbuild.report.document.read import title_of
from mlfbuild.report.html import numbers
from mlfbuild.report.html.model_view import ModelView, figure_of, memory_bars, model_view, state_of
from mlfbuild.report.html.numbers import short_name
from mlfbuild.report.html.operators import Cell
from mlfbuild.report.html.owners import Bar, ListedPiece, largest, tree
from mlfbuild.report.operators.operator_runs import total
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
    """Number of other changed pieces."""
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


_Json = Mapping[str, Any]
_FIGURES = ("flash", "ram", "stack", "instructions")
_MODELLED = ("cycles", "latency")
"""The figures that budgets limit; the latter are shown if an image has them."""


@dataclass(frozen=True)
class BudgetUse:
    """The part of the most used budget that is taken."""

    share: str
    of: str
    """The name of the budget, such as ``RAM of digits``."""
    over: bool


@dataclass(frozen=True)
class OverviewRow:
    """An image."""

    key: str
    title: str
    cells: tuple[Cell, ...]
    budget: BudgetUse | None
    changes: tuple[tuple[str, Change], ...]
    """Flash and RAM since the other report or the baseline; empty without one."""
    verified: str


def overview(report: _Json, against: _Json | None) -> tuple[OverviewRow, ...]:
    """Return a row for each image, with the keys of ``views``.

    Without another report, changes are those since the baseline, if the project has one.
    """
    listed, former = [linked_only(image) for image in report["images"]], _by_title(against)
    names = [*_FIGURES, *(["cycles"] if any(image_figure(image, "cycles") is not None for image in listed) else [])]
    figures = [{name: image_figure(image, name) for name in names} for image in listed]
    most = {name: max((found[name] or 0 for found in figures), default=0) for name in names}
    return tuple(
        OverviewRow(
            f"image-{index}",
            title_of(image),
            tuple(Cell(numbers.count(found[name]), numbers.step(found[name], most[name]), name) for name in names),
            _most_used(image),
            tuple(_changes(image, former.get(title_of(image)))),
            state_of(image["models"]),
        )
        for index, (image, found) in enumerate(zip(listed, figures, strict=True))
    )


def _by_title(report: _Json | None) -> dict[str, _Json]:
    return {title_of(image): linked_only(image) for image in report["images"]} if report else {}


def image_figure(image: _Json, name: str) -> int | None:
    """Return flash, RAM, stack, instructions, modelled cycles or latency of an image; ``None`` if unknown.

    The stack is that of its main, otherwise the deepest of its models; the last three are those of one run of each
    model.
    """
    if name in {"flash", "ram"}:
        return int(image[name])
    if name == "stack":
        main = (image.get("stack") or {}).get("worst_case")
        stacks = [figure_of(model, name) for model in image["models"]]
        return max((value for value in stacks if value is not None), default=None) if main is None else int(main)
    return total([figure_of(model, name) for model in image["models"]]) if image["models"] else None


def _most_used(image: _Json) -> BudgetUse | None:
    found = max(budget_uses(image), default=None)
    if found is None:
        return None
    part, of, taken, limit = found
    return BudgetUse("over" if taken > limit == 0 else numbers.share(taken, limit or 1), of, part > 1)


def budget_uses(image: _Json) -> Iterator[tuple[float, str, int, int]]:
    """Yield (part, whose, taken, limit) of each budget whose figure is known."""
    for owner in (image, *image["models"]):
        for name in (*_FIGURES, *_MODELLED):
            limit = owner.get("budget", {}).get(name)
            taken = image_figure(image, name) if owner is image else figure_of(owner, name)
            if limit is not None and taken is not None:
                # A budget of 0 that is exceeded counts as 200 %, so that it comes before others.
                part = taken / limit if limit else float(taken > 0) * 2
                title = "RAM" if name == "ram" else name
                yield part, title if owner is image else f"{title} of {owner['name']}", taken, limit
        for use in (each for each in image.get("memories", ()) if "used" in each):
            limit = owner.get("budget", {}).get("memories", {}).get(use["name"])
            taken = use["used"] if owner is image else use["models"].get(owner["name"], 0)
            if limit is not None:
                part = taken / limit if limit else float(taken > 0) * 2
                yield part, use["name"] if owner is image else f"{use['name']} of {owner['name']}", taken, limit


def _changes(image: _Json, old: _Json | None) -> Iterator[tuple[str, Change]]:
    before = old if old is not None else (image.get("baseline") or {}).get("")
    if before is not None:
        yield "flash", Change(before["flash"], image["flash"])
        yield "RAM", Change(before["ram"], image["ram"])


@dataclass(frozen=True)
class OwnerRow:
    """A model, a library or another part of an image."""

    name: str
    model: bool
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class ImageView:
    """A linked image."""

    key: str
    title: str
    json: _Json
    """The image in the JSON form of the report."""
    bars: tuple[Bar, ...]
    models: tuple[ModelView, ...]
    owners: tuple[OwnerRow, ...]
    pieces: tuple[ListedPiece, ...]
    more_pieces: int
    differences: Differences | None
    """``None`` without another report."""
    trees: _Json
    """The treemaps of flash and RAM, for the script."""


def views(report: _Json, against: _Json | None) -> tuple[ImageView, ...]:
    """Return the data of each image; ``against`` is the report to compare with."""
    images = [linked_only(image) for image in report["images"]]
    former = _by_title(against)
    compared = compare_reports(report, against) if against else None
    changes = {(change.firmware, change.target): change for change in compared.images} if compared else {}
    return tuple(
        _image(
            f"image-{index}",
            image,
            former.get(title_of(image)),
            differences(changes.get((image["firmware"], image.get("target")))) if compared else None,
        )
        for index, image in enumerate(images)
    )


def linked_only(image: _Json) -> _Json:
    """Return an image without the models of its project that are not linked into it."""
    # A model without bytes would be an empty chapter; the notes of the link name it.
    return {**image, "models": [model for model in image["models"] if model["flash"] or model["ram"]]}


def _image(key: str, image: _Json, old: _Json | None, changed: Differences | None) -> ImageView:
    owners = (*image["models"], *image["others"])
    pieces, more = largest(owners)
    former = {model["name"]: model for model in old["models"]} if old else {}
    return ImageView(
        key,
        title_of(image),
        image,
        tuple(memory_bars(image, owners, old)),
        tuple(
            model_view(f"{key}-model-{at}", model, former.get(model["name"]))
            for at, model in enumerate(image["models"])
        ),
        tuple(_owner_rows(image)),
        pieces,
        more,
        changed,
        {memory: tree(image, old, memory) for memory in ("flash", "ram")},
    )


def _owner_rows(image: _Json) -> Iterator[OwnerRow]:
    owners = (*image["models"], *image["others"])
    most = {memory: max((owner[memory] for owner in owners), default=0) for memory in ("flash", "ram")}
    models = len(image["models"])
    for index, owner in enumerate(owners):
        sizes = {"flash": owner["flash"], **owner["kinds"]["flash"], "ram": owner["ram"]}
        cells = (
            Cell(numbers.count(sizes[kind]), numbers.step(sizes[kind], most["ram" if kind == "ram" else "flash"]), kind)
            for kind in ("flash", *FLASH_KINDS, "ram")
        )
        yield OwnerRow(owner["name"], index < models, tuple(cells))
