"""The data of a report for the templates, from its JSON form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mlfbuild.report.document.compare import compare_reports
from mlfbuild.report.document.read import title_of
from mlfbuild.report.html import numbers, operators
from mlfbuild.report.html.differences import Differences, differences
from mlfbuild.report.html.model_view import ModelView, memory_bars, model_view
from mlfbuild.report.html.overview import OverviewRow, overview
from mlfbuild.report.html.owners import Bar, ListedPiece, largest, tree
from mlfbuild.report.sizes.owners import FLASH_KINDS

_Json = Mapping[str, Any]


@dataclass(frozen=True)
class OwnerRow:
    """A model, a library or another part of an image."""

    name: str
    model: bool
    cells: tuple[operators.Cell, ...]


@dataclass(frozen=True)
class ImageView:
    """A linked image."""

    key: str
    title: str
    firmware: str
    target: str
    cpu: str
    sha256: str
    sizes: _Json
    bars: tuple[Bar, ...]
    models: tuple[ModelView, ...]
    owners: tuple[OwnerRow, ...]
    pieces: tuple[ListedPiece, ...]
    more_pieces: int
    faults: tuple[_Json, ...]
    notes: tuple[str, ...]
    """What the checks of the link leave open, and models without code in the image."""
    differences: Differences | None
    trees: _Json


def views(report: _Json, against: _Json | None) -> tuple[ImageView, ...]:
    """Return the data of each image; ``against`` is the report to compare with."""
    images = [_linked(image) for image in report["images"]]
    former = {title_of(image): _linked(image) for image in against["images"]} if against else {}
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


def overview_of(report: _Json, against: _Json | None) -> tuple[OverviewRow, ...]:
    """Return the table of all images, with the keys of ``views``."""
    former = {title_of(image): _linked(image) for image in against["images"]} if against else {}
    return overview(
        (f"image-{index}", title_of(image), _linked(image), former.get(title_of(image)))
        for index, image in enumerate(report["images"])
    )


def _linked(image: _Json) -> _Json:
    """Return an image without the models of its project that are not linked into it."""
    return {**image, "models": [model for model in image["models"] if model["flash"] or model["ram"]]}


def _image(key: str, image: _Json, old: _Json | None, changed: Differences | None) -> ImageView:
    owners = (*image["models"], *image["others"])
    pieces, more = largest(owners)
    former = {model["name"]: model for model in old["models"]} if old else {}
    return ImageView(
        key,
        title_of(image),
        image["firmware"],
        image.get("target", ""),
        image.get("cpu", ""),
        image["sha256"],
        image["size"],
        tuple(memory_bars(image, owners, old)),
        tuple(
            model_view(f"{key}-model-{at}", model, former.get(model["name"]))
            for at, model in enumerate(image["models"])
        ),
        tuple(_owner_rows(image)),
        pieces,
        more,
        tuple(image.get("faults", ())),
        tuple(image.get("not_checked", ())),
        changed,
        {memory: tree(image, old, memory) for memory in ("flash", "ram")},
    )


def _owner_rows(image: _Json) -> Iterator[OwnerRow]:
    owners = (*image["models"], *image["others"])
    most = {memory: max((owner[memory] for owner in owners), default=0) for memory in ("flash", "ram")}
    models = len(image["models"])
    for index, owner in enumerate(owners):
        kinds = owner["kinds"]["flash"]
        cells = [operators.Cell(numbers.count(owner["flash"]), numbers.step(owner["flash"], most["flash"]), "flash")]
        cells += [
            operators.Cell(numbers.count(kinds[kind]), numbers.step(kinds[kind], most["flash"]), kind)
            for kind in FLASH_KINDS
        ]
        cells.append(operators.Cell(numbers.count(owner["ram"]), numbers.step(owner["ram"], most["ram"]), "ram"))
        yield OwnerRow(owner["name"], index < models, tuple(cells))
