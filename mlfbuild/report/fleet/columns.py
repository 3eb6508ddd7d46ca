"""The columns of the overview, declared once: the table, every output form, the cache and the page follow from here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core.keys import latency_text
from mlfbuild.report.budgets import baseline_in
from mlfbuild.report.document.read import report_in
from mlfbuild.report.html.evaluated import lowest_accuracy
from mlfbuild.report.html.model_view import state_of
from mlfbuild.report.html.numbers import count
from mlfbuild.report.html.views import budget_uses, image_figure, linked_only

if TYPE_CHECKING:
    from mlfbuild.report.document.read import Report

Value = str | int | float | None
"""``None`` is unknown; it is never shown as 0."""
Figures = tuple[Value, ...]
"""A value for each of ``COLUMNS``."""
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class FleetColumn:
    """A column: where its value is in the JSON of an image, and how it is shown."""

    name: str
    """In CSV, JSON, Parquet and the cache."""
    title: str
    """In text, Markdown and on the page."""
    kind: type[str | int | float]
    about: str
    """Its meaning and unit, for the documentation; empty if the column before it describes both."""
    read: Callable[[Report], Value]
    """Returns the value from an image of ``report.schema.json``."""
    text: Callable[[Value], str] = lambda value: "" if value is None else str(value)
    plotted: bool = False
    """Whether the page draws it over time, and changes of it are listed with their commit."""
    beside: str = ""
    """The column in whose cell it is shown, behind its own title; empty for a cell of its own."""


def _count(value: Value) -> str:
    return count(value) if isinstance(value, int) else ""


def _latency(value: Value) -> str:
    return latency_text(value) if isinstance(value, int) else ""


def _value(value: Value) -> str:
    return "" if value is None else f"{float(value):.4f}"


def _share(value: Value) -> str:
    return "" if value is None else f"{100 * float(value):.0f} %"


def _joined(names: Iterable[str]) -> str | None:
    """Return the names without repetitions, or ``None`` without any."""
    return ", ".join(dict.fromkeys(filter(None, names))) or None


def _figure(name: str) -> Callable[[Report], Value]:
    return lambda image: image_figure(image, name)


def _profiles(image: Report) -> Iterable[Report]:
    return (each["profile"] for model in image["models"] for each in model.get("networks", ()) if "profile" in each)


def _measured(image: Report) -> int | None:
    """Return the cycles that a device measured for one run of each network; those of an emulator are not cycles."""
    networks = sum(len(model.get("networks", ())) for model in image["models"])
    found = [each["measured"] for each in _profiles(image) if "measured" in each]
    known = [each["cycles"]["median"] for each in found if not each["emulated"]]
    return sum(known) if known and len(known) == networks else None


COLUMNS = (
    FleetColumn(
        "image", "image", str, "Firmware, target of the project, its core, and the models in the image",
        lambda image: str(image["firmware"]),
    ),
    FleetColumn("target", "target", str, "", lambda image: image.get("target")),
    FleetColumn("cpu", "CPU", str, "", lambda image: image.get("cpu")),
    FleetColumn("models", "models", str, "", lambda image: _joined(each["name"] for each in image["models"])),
    FleetColumn(
        "flash", "flash", int, "Bytes; those of RAM include the reserved stack", _figure("flash"), _count, plotted=True,
    ),
    FleetColumn("ram", "RAM", int, "", _figure("ram"), _count, plotted=True),
    FleetColumn(
        "stack", "stack", int, "Bytes in the worst case: of `main`, or else of the deepest model",
        _figure("stack"), _count, plotted=True,
    ),
    FleetColumn(
        "instructions", "instructions", int, "One run of each model; cycles, and latency in nanoseconds, are modelled",
        _figure("instructions"), _count, plotted=True,
    ),
    FleetColumn(
        "cycles", "cycles", int, "", _figure("cycles"), _count, plotted=True,
    ),
    FleetColumn(
        "latency", "latency", int, "", _figure("latency"), _latency,
    ),
    FleetColumn(
        "measured_cycles", "cycles, measured", int, "Median of the cycles that the device measured", _measured, _count,
        plotted=True,
    ),
    FleetColumn(
        "budget", "budget", float, "Used part of the budget that is used most, 1 if it is used up, and its name",
        lambda image: max((each[0] for each in budget_uses(image)), default=None), _share,
    ),
    FleetColumn(
        "budget_of", "of", str, "",
        lambda image: max(((each[0], each[1]) for each in budget_uses(image)), default=(0, None))[1],
        beside="budget",
    ),
    FleetColumn(
        "verified", "verified", str, "Result of `mlfbuild verify`, the worst of all models, and where it ran",
        lambda image: state_of(image["models"]) or None,
    ),
    FleetColumn(
        "board", "on", str, "",
        lambda image: _joined(each.get("board", "") for model in image["models"] for each in model.get("verify", ())),
        beside="verified",
    ),
    FleetColumn(
        "accuracy", "accuracy", float, "Lowest value of `mlfbuild evaluate` from 0 to 1 of all models, and its metric",
        lambda image: lowest_accuracy(image["models"])[0], _value,
    ),
    FleetColumn(
        "accuracy_of", "by", str, "",
        lambda image: lowest_accuracy(image["models"])[1],
        beside="accuracy",
    ),
    FleetColumn("sha256", "SHA-256", str, "Of the ELF file", lambda image: image["sha256"]),
)  # fmt: skip
INDEX = {column.name: index for index, column in enumerate(COLUMNS)}


def figures_in(image: Report) -> Figures:
    """Return the values of ``COLUMNS`` for an image in the JSON form of a report, which fits the schema.

    Models of the project that are not linked into the image count for nothing. A sum that does not fit 64 bits is
    unknown.
    """
    linked = linked_only(image)
    found = (column.read(linked) for column in COLUMNS)
    return tuple(None if isinstance(value, int) and value > _LARGEST else value for value in found)


def sizes_only(image: str, target: str, sizes: dict[str, int]) -> Figures:
    """Return the values for an image of which only ``flash`` and ``ram`` are known, those in ``sizes``."""
    known: dict[str, Value] = {"image": image, "target": target or None, **sizes}
    return tuple(known.get(column.name) for column in COLUMNS)


_REPORT, _BASELINE = b'"mlfbuild_report"', b'"mlfbuild_sizes"'
"""The keys that mark the formats, as in the files."""


def read_figures(data: bytes, path: Path) -> tuple[Figures, ...]:
    """Return the figures of each image in ``data``, the content of the file ``path``, which need not exist.

    The file is a report in JSON or a baseline of sizes; the result is empty for any other file. Raises
    ``InputFileError`` if a report or a baseline is damaged or of another format version.
    """
    # The bytes are searched before anything is parsed: most JSON files of a repository are something else.
    if _REPORT in data and _begins(data, _REPORT):
        return tuple(figures_in(image) for image in report_in(data, path)["images"])
    if _BASELINE in data and _begins(data, _BASELINE):
        return tuple(_of_baseline(title, dict(taken[""])) for title, taken in baseline_in(data, path).items())
    return ()


def _begins(data: bytes, key: bytes) -> bool:
    """Return whether ``key`` is a key of the outermost object: nothing but other keys at its depth is before it.

    mlfbuild writes it first. Another program that sorts keys moves it, so the depth is counted; strings before it may
    have brackets, which only makes the file one that is not read.
    """
    before = data[: data.index(key)]
    return before.count(b"{") - before.count(b"}") == 1 and before.count(b"[") == before.count(b"]")


def _of_baseline(title: str, sizes: dict[str, int]) -> Figures:
    image, _, target = title.partition(" for ")
    return sizes_only(image, target, sizes)
