"""Plots of the committed results, as SVG: ``PLOTS`` by the names of their files in ``docs/images``.

``make generate`` draws them. A plot has columns and groups, such as networks; a group has a bar per row and column. The
longest bar of a group and column has the full width, so that networks of other sizes can be compared by eye. Text and
bars take their colours from the reader's scheme, light or dark.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import forests
import jinja2
import records
import silicon
from counting.measure import Case
from counting.peers import CMSIS_NN, ONNX2C_O3, PEERS, best
from counting.points import NETWORKS
from counting.published import PUBLISHED
from counting.results import Results, load

_TITLES = {
    "kws": "keyword spotting, int8",
    "vww": "person detection, int8",
    "ic": "image classification, int8",
    "ad": "anomaly detection, int8",
    "vww_f32": "person detection, float32",
    "ic_f32": "image classification, float32",
    "ad_f32": "anomaly detection, float32",
}
_INT8 = tuple(network for network in _TITLES if not network.endswith("_f32"))
_OMITTED = {CMSIS_NN, ONNX2C_O3}
"""Variants of peers whose usual form stands in the plot."""
_CORES = {"m4-zero": "M4, no waiting", "m55-zero": "M55, no waiting"}
"""Cores whose memories never wait, and their titles."""
_TOP, _ROW, _GAP = 44, 15, 26
_LABEL = 64
"""Pixels of the label behind a bar and of the space before the next column."""
_TEMPLATE = Path(__file__).with_name("plots.svg.jinja")

Rows = Mapping[str, Sequence[int | None]]
"""The label of each row -> a figure for each column; ``None`` has no bar."""


@dataclass(frozen=True)
class Plot:
    """What is drawn; the rows ``ours`` are highlighted."""

    title: str
    columns: Sequence[str]
    groups: Mapping[str, Rows]
    """By title."""
    ours: str = "mlfbuild"
    sizes: bool = False
    """Whether all columns but the first are bytes."""
    width: int = 720
    """Pixels of all columns."""
    left: int = 138
    """Pixels of the labels of rows."""


@dataclass(frozen=True)
class _Bar:
    """One bar, with pixels from the upper left corner."""

    ours: bool
    x: int
    y: int
    width: float
    label: str


def drawn(plot: Plot) -> str:
    """Return ``plot`` as the text of an SVG file."""
    bars, titles, labels, y = [], [], [], _TOP
    step = plot.width // len(plot.columns)
    for title, rows in plot.groups.items():
        titles.append((y + 4, title))
        y += _ROW
        labels += [(y + row * _ROW, label, label == plot.ours) for row, label in enumerate(rows)]
        for column in range(len(plot.columns)):
            largest = max(values[column] or 0 for values in rows.values())
            for row, (label, values) in enumerate(rows.items()):
                if (value := values[column]) is not None:
                    width = round((step - _LABEL) * value / largest, 1)
                    text = _bytes(value) if plot.sizes and column else _count(value)
                    x = plot.left + column * step
                    bars.append(_Bar(label == plot.ours, x, y + row * _ROW, width, text))
        y += len(rows) * _ROW + _GAP - _ROW
    template = jinja2.Template(
        _TEMPLATE.read_text(encoding="utf-8"), trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return template.render(
        plot=plot,
        bars=bars,
        titles=titles,
        labels=labels,
        columns=[(plot.left + index * step, name) for index, name in enumerate(plot.columns)],
        width=plot.left + plot.width,
        height=y,
    )


def _count(value: int) -> str:
    if value >= 1e6:
        return f"{value / 1e6:.1f} M"
    return f"{value / 1e3:.0f} k" if value >= 10_000 else f"{value:,}"


def _bytes(value: int) -> str:
    return f"{value / 1024:.0f} KiB" if value >= 10240 else f"{value / 1024:.1f} KiB" if value >= 1024 else f"{value} B"


def peers_plot(results: Results) -> Plot:
    """Return instructions, flash and RAM beside the peers' on the Cortex-M4; RAM has arena, inputs, outputs, stack."""
    groups = {}
    for network in (network for network in _TITLES if network != "ic_f32"):  # onnx2c was not measured
        ours = results[Case(network, "cortex-m4")]
        rows = {"mlfbuild": (ours.instructions, ours.code + ours.constants, ours.arena + ours.io + ours.stack)}
        for peer in PEERS[network]:
            if peer.name not in _OMITTED:
                size = peer.sizes
                rows[peer.name] = (peer.m4, size.code + size.weights, size.ram + size.stack)
        groups[_TITLES[network]] = rows
    title = "Instructions, flash and RAM of mlfbuild, TensorFlow Lite Micro, TVM and onnx2c on a Cortex-M4"
    return Plot(title, ("instructions", "flash", "RAM"), groups, sizes=True)


def cores_plot(results: Results) -> Plot:
    """Return the instructions on each core beside those of its best peer."""
    cpus = {"cortex-m4": "Cortex-M4", "cortex-m7": "Cortex-M7", "cortex-m55": "Cortex-M55"}
    groups = {}
    for network, title in _TITLES.items():
        peers = [best(network, cpu) for cpu in cpus]
        groups[title] = {
            "mlfbuild": [results[Case(network, cpu)].instructions for cpu in cpus],
            "best peer": [peer and peer.instructions(cpu) for peer, cpu in zip(peers, cpus, strict=True)],
        }
    return Plot("Instructions of mlfbuild and of the best peer on three cores", tuple(cpus.values()), groups)


def records_plot(found: Sequence[records.Record]) -> Plot:
    """Return the modelled cycles by part beside TensorFlow Lite Micro's and the fastest published ones."""
    parts = [part for part in PUBLISHED if part in records.ROWS]
    parts += _CORES
    cycles = {(each.part, each.network, each.place): each.cycles for each in found}
    groups = {
        _TITLES[network]: {
            "mlfbuild, modelled": [cycles[part, network, "flash"] for part in parts],
            "TFLM, modelled": [cycles.get((part, network, records.PEER)) for part in parts],
            "fastest published": [_published(part, network) for part in parts],
        }
        for network in _INT8
    }
    title = "Modelled cycles of mlfbuild and TensorFlow Lite Micro, and published cycles, by microcontroller"
    columns = [_CORES.get(part, part) for part in parts]
    return Plot(title, columns, groups, ours="mlfbuild, modelled", width=804)


def _published(part: str, network: str) -> int | None:
    theirs = PUBLISHED.get(part, {}).get(network)
    return theirs and round(theirs.cycles * 1e6)


def silicon_plot(results: silicon.Results) -> Plot:
    """Return modelled cycles beside those that others measured on silicon, for other projects' code."""
    codes = list(dict.fromkeys((point.code, point.part) for point in NETWORKS))
    points = {(point.code, point.part, point.what): point for point in NETWORKS}
    groups = {
        _TITLES[network]: {
            "modelled": [results[points[(*code, network)].name].cycles for code in codes],
            "measured": [points[(*code, network)].measured for code in codes],
        }
        for network in _INT8
    }
    columns = [f"{code}, {part}" for code, part in codes]
    return Plot(
        "Modelled and measured cycles of other projects' code", columns, groups, ours="modelled", width=752, left=80
    )


def forests_plot(found: Sequence[forests.Result]) -> Plot:
    """Return instructions, flash and RAM of random forests beside onnx2c's and emlearn's."""
    groups: dict[str, dict[str, Sequence[int]]] = {}
    for each in found:
        rows = groups.setdefault(each.forest, {})
        rows[each.code] = (each.instructions, each.flash, each.ram + each.stack)
    title = "Instructions, flash and RAM of random forests by mlfbuild, onnx2c and emlearn"
    return Plot(title, ("instructions", "flash", "RAM"), groups, sizes=True, left=196)


PLOTS: Mapping[str, Callable[[], Plot]] = {
    "peers.svg": lambda: peers_plot(load().results),
    "cores.svg": lambda: cores_plot(load().results),
    "records.svg": lambda: records_plot(records.load()),
    "silicon.svg": lambda: silicon_plot(silicon.load()),
    "forests.svg": lambda: forests_plot([forests.Result(**row) for row in json.loads(forests.RESULTS.read_text())]),
}
"""Name of the file -> what it shows."""
