"""Measure the RAM of networks whose peak others published, and model their cycles.

    python benchmarks/ram.py            measure all, print the table, compare with what is committed
    python benchmarks/ram.py --update   and write benchmarks/results/ram.json and docs/memory.md

The networks have the layers of the published ones and random weights, on which neither RAM nor instructions depend if
no channel is removed. Inputs and outputs are in the workspace (`io: arena`). RAM is the workspace and the stack of one
run. Cycles are modelled (docs/latency.md). Exit status 1 if a result differs from the committed one, 2 if a network
cannot be measured.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from counting.cycles import PARTS, model_cycles
from counting.firmware import REPOSITORY
from counting.report import table
from counting.rows import measured_rows
from large_networks import TfliteFile

COMMITTED = REPOSITORY / "benchmarks/results/ram.json"
MEMORY = ("smallest", "balanced")
SHOWN = ("stm32l4r5", "stm32h7a3")
_CLASSES = 1000


class _Layers(TfliteFile):
    """Layers of small int8 networks."""

    def __init__(self) -> None:
        super().__init__(quantized=True)

    def depthwise(self, source: int, size: int, stride: int, *, relu: bool = True) -> int:
        channels = self._channels(source)
        weights = self._random.integers(-127, 128, (1, size, size, channels), np.int8)
        bias = self._random.integers(-500, 500, channels, np.int32)
        window = {"stride": (stride, stride), "padding": "SAME", "activation": "RELU" if relu else "NONE"}
        scales = {"weight_scales": [0.5 / (74 * size)] * channels}
        return self._network.depthwise_conv2d(source, weights, bias, **window, **scales, **self._affine)

    def inverted(self, source: int, channels: int, size: int, stride: int, expansion: int, *, adds: bool) -> int:
        """Add the inverted residual block of MobileNetV2, with filters of ``size`` and ``size``."""
        value = self.convolve(source, expansion * self._channels(source), 1) if expansion > 1 else source
        value = self.convolve(self.depthwise(value, size, stride), channels, 1, relu=False)
        return self._network.add(source, value, **self._affine) if adds else value

    def blaze(self, source: int, channels: int, stride: int) -> int:
        """Add the block of BlazeFace: its input, with further channels of zeros, is added to the result."""
        value = self.convolve(self.depthwise(source, 3, stride, relu=False), channels, 1, relu=False)
        if stride > 1:
            source = self._network.pool2d("MAX", source, (stride, stride), stride=(stride, stride))
        if more := channels - self._channels(source):
            source = self._network.pad(source, [(0, 0), (0, 0), (0, 0), (0, more)])
        return self._network.add(value, source, activation="RELU", **self._affine)

    def head(self, source: int, boxes: int) -> list[int]:
        """Return the scores and the 16 coordinates of ``boxes`` at each pixel."""
        count = boxes * self._network.tensors[source].shape[1] ** 2
        made = [(self.convolve(source, values * boxes, 1, relu=False), values) for values in (1, 16)]
        return [self._network.reshape(value, (1, count, values)) for value, values in made]

    def build(self, outputs: Sequence[int]) -> bytes:
        return self._network.build(outputs)


def _channels(channels: float) -> int:
    """Return a multiple of 8 near ``channels`` and at least 90 % of it, as MobileNetV2 does."""
    near = max(8, int(channels + 4) // 8 * 8)
    return near + 8 if near < 0.9 * channels else near


def mobilenet_v2(width: float = 0.35, side: int = 144) -> bytes:
    layers = _Layers()
    value = layers.convolve(layers.image(side, 3), _channels(32 * width), 3, stride=2)
    stages = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
    for expansion, channels, blocks, stride in stages:
        for block in range(blocks):
            first = stride if block == 0 else 1
            value = layers.inverted(value, _channels(channels * width), 3, first, expansion, adds=block > 0)
    return layers.classify(layers.convolve(value, 1280, 1), _CLASSES)


def proxyless(width: float = 0.3, side: int = 176) -> bytes:
    layers = _Layers()
    value = layers.convolve(layers.image(side, 3), _channels(32 * width), 3, stride=2)
    stages = (
        (16, 1, ((3, 1),)), (32, 2, ((5, 3), (3, 3))), (40, 2, ((7, 3), (3, 3), (5, 3), (5, 3))),
        (80, 2, ((7, 6), (5, 3), (5, 3), (5, 3))), (96, 1, ((5, 6), (5, 3), (5, 3), (5, 3))),
        (192, 2, ((7, 6), (7, 6), (7, 3), (7, 3))), (320, 1, ((7, 6),)),
    )  # fmt: skip
    for channels, stride, blocks in stages:
        for block, (size, expansion) in enumerate(blocks):
            first = stride if block == 0 else 1
            value = layers.inverted(value, _channels(channels * width), size, first, expansion, adds=block > 0)
    return layers.classify(layers.convolve(value, 1280, 1), _CLASSES)


def person_detection() -> bytes:
    layers = _Layers()
    value = layers.convolve(layers.image(96, 1), 8, 3, stride=2)
    wide = ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1))
    for channels, stride in wide:
        value = layers.convolve(layers.depthwise(value, 3, stride), channels, 1)
    return layers.classify(value, 2)


def blazeface() -> bytes:
    layers = _Layers()
    value = layers.convolve(layers.image(128, 3), 24, 5, stride=2)
    wide = ((24, 1), (28, 1), (32, 2), (36, 1), (42, 1), (48, 2), (56, 1), (64, 1), (72, 1), (80, 1), (88, 1))
    for channels, stride in wide:
        value = layers.blaze(value, channels, stride)
    far = value
    for stride in (2, 1, 1, 1, 1):
        far = layers.blaze(far, 96, stride)
    return layers.build([*layers.head(value, 2), *layers.head(far, 6)])


@dataclass(frozen=True)
class Peak:
    """A network, and the smallest RAM that was published for it."""

    make: Callable[[], bytes]
    title: str
    kilobytes: float
    """As published."""
    by: str


PEAKS = {
    "mobilenet_v2": Peak(mobilenet_v2, "MobileNetV2 0.35, 144x144", 284, "TinyEngine"),
    "proxyless": Peak(proxyless, "ProxylessNAS 0.3, 176x176", 221, "X-CUBE-AI 7.3"),
    "person_detection": Peak(person_detection, "person detection, 96x96", 139.3, "TFLM example"),
    "blazeface": Peak(blazeface, "BlazeFace, 128x128", 470.4, "TFLM"),
}


@dataclass(frozen=True)
class Measured:
    """A network of ``PEAKS`` with a value of the option ``memory`` on a part."""

    network: str
    memory: str
    part: str
    ram: int
    """Bytes of workspace, with inputs and outputs, and stack."""
    cycles: int


def measure(network: str, memory: str, part: str) -> Measured:
    """Compile the network and run it once with an input of zeros."""
    options = {"memory": memory, "io": "arena", "dead-channels": "keep"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{network}.tflite"
        path.write_bytes(PEAKS[network].make())
        found = model_cycles(network, PARTS[part], path, folder=Path(folder), options=options)
    return Measured(network, memory, part, found.workspace + found.stack, found.cycles.total)


def blocks(results: Sequence[Measured]) -> Mapping[str, str]:
    """Return the block of docs/memory.md by name."""
    found = {(r.network, r.memory, r.part): r for r in results}
    head = ["kB, M cycles", "published", *(f"`{memory}`" for memory in MEMORY)]
    rows = []
    for network, peak in PEAKS.items():
        cells = []
        for memory in MEMORY:
            each = [found[network, memory, part] for part in SHOWN]
            cycles = "/".join(f"{result.cycles / 1e6:.1f}" for result in each)
            cells.append(f"{max(result.ram for result in each) / 1000:.1f}, {cycles}")
        rows.append([peak.title, f"{peak.kilobytes:g}, {peak.by}", *cells])
    return {"peaks": table(head, rows, right=(1, 2, 3))}


def load() -> list[Measured]:
    """Return the committed results."""
    return [Measured(**result) for result in json.loads(COMMITTED.read_text())]


def main() -> None:
    works = [(network, memory, part) for network in PEAKS for memory in MEMORY for part in SHOWN]
    measured_rows(__doc__, measure, works, blocks, load, COMMITTED)


if __name__ == "__main__":
    main()
