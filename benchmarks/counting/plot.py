"""A plot of instructions, flash and RAM beside the peers, as SVG: ``docs/images/peers.svg``.

``make generate`` draws it from the committed results. Each group of bars is one network on the Cortex-M4, and the
longest bar of a group and column has the full width, so that networks of other sizes can be compared by eye. Text and
bars take their colours from the reader's scheme, light or dark.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import jinja2

from counting.measure import Case
from counting.peers import CMSIS_NN, ONNX2C_O3, PEERS
from counting.results import Results

_NETWORKS = {
    "kws": "keyword spotting, int8",
    "vww": "person detection, int8",
    "ic": "image classification, int8",
    "ad": "anomaly detection, int8",
    "vww_f32": "person detection, float32",
    "ad_f32": "anomaly detection, float32",
}
_OMITTED = {CMSIS_NN, ONNX2C_O3}
"""Variants of peers whose usual form stands in the plot."""
_COLUMNS = ("instructions", "flash", "RAM")
_LEFT, _COLUMN, _BAR = 138, 236, 160
_TOP, _ROW, _GAP = 44, 15, 26
_TEMPLATE = Path(__file__).with_name("plot.svg.jinja")


@dataclass(frozen=True)
class _Bar:
    """One bar, with pixels from the upper left corner."""

    ours: bool
    tool: str
    x: int
    y: int
    width: float
    label: str


def peers_plot(results: Results) -> str:
    """Return the plot of ``results`` and the peers on the Cortex-M4 as the text of an SVG file."""
    bars, titles, y = [], [], _TOP
    for network, title in _NETWORKS.items():
        titles.append((y + 4, title))
        y += _ROW
        figures = _figures(network, results)
        for column in range(len(_COLUMNS)):
            largest = max(values[column] for values in figures.values())
            bars += [
                _Bar(
                    tool == "mlfbuild",
                    tool,
                    _LEFT + column * _COLUMN,
                    y + row * _ROW,
                    round(_BAR * values[column] / largest, 1),
                    _label(values[column], column),
                )
                for row, (tool, values) in enumerate(figures.items())
            ]
        y += len(figures) * _ROW + _GAP - _ROW
    columns = [(_LEFT + index * _COLUMN, name) for index, name in enumerate(_COLUMNS)]
    template = jinja2.Template(
        _TEMPLATE.read_text(encoding="utf-8"), trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    return template.render(
        bars=bars, titles=titles, columns=columns, width=_LEFT + len(_COLUMNS) * _COLUMN, height=y, left=_LEFT
    )


def _figures(network: str, results: Results) -> dict[str, tuple[int, int, int]]:
    """Return instructions, bytes of flash and bytes of RAM of each tool; RAM has arena, inputs, outputs and stack."""
    ours = results[Case(network, "cortex-m4")]
    figures = {"mlfbuild": (ours.instructions, ours.code + ours.constants, ours.arena + ours.io + ours.stack)}
    for peer in PEERS[network]:
        if peer.name not in _OMITTED:
            size = peer.sizes
            figures[peer.name] = (peer.m4, size.code + size.weights, size.ram + size.stack)
    return figures


def _label(value: int, column: int) -> str:
    if column == 0:
        return f"{value / 1e6:.1f} M" if value >= 1e6 else f"{value / 1e3:.0f} k"
    return f"{value / 1024:.0f} KiB" if value >= 10240 else f"{value / 1024:.1f} KiB"
