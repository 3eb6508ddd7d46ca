"""Writes networks of 50 MB: residual networks with random weights, as TFLite int8 and float32 and as ONNX float32.

    python benchmarks/large_networks.py FOLDER [--megabytes N]

They are made of what ResNet is: a 3x3 convolution, four stages of blocks of 1x1, 3x3 and 1x1 convolutions around each
of which the input is added, an average and a fully connected layer. The third stage has as many blocks as it takes.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.tflite_builder import Network

SIDE = 96
CLASSES = 100
_OTHER_BLOCKS = 3
"""Of each stage but the third."""

T = TypeVar("T")


class Writer(Protocol[T]):
    """A file that is being made of layers; a value is an image that a layer made."""

    def image(self, side: int, channels: int) -> T: ...

    def convolve(self, source: T, channels: int, size: int, *, stride: int = 1, relu: bool = True) -> T: ...

    def add(self, first: T, second: T) -> T: ...

    def classify(self, source: T, classes: int) -> bytes:
        """Return the file, whose last layers are an average and a fully connected one."""


class TfliteFile:
    """A TFLite file, int8 or float32."""

    def __init__(self, *, quantized: bool) -> None:
        self._random = np.random.default_rng(0)
        self._network = Network()
        self._affine: dict[str, Any] = {"scale": 0.05, "zero_point": 3} if quantized else {}
        self._quantized = quantized

    def image(self, side: int, channels: int) -> int:
        return self._network.input((1, side, side, channels), **self._affine)

    def convolve(self, source: int, channels: int, size: int, *, stride: int = 1, relu: bool = True) -> int:
        weights, bias, scales = self._weights(channels, size, size, self._channels(source))
        window = {"stride": (stride, stride), "padding": "SAME", "activation": "RELU" if relu else "NONE"}
        return self._network.conv2d(source, weights, bias, **window, **scales, **self._affine)

    def add(self, first: int, second: int) -> int:
        return self._network.add(first, second, activation="RELU", **self._affine)

    def classify(self, source: int, classes: int) -> bytes:
        side = self._network.tensors[source].shape[1]
        average = self._network.pool2d("AVERAGE", source, (side, side))
        flat = self._network.reshape(average, (1, self._channels(source)))
        weights, bias, scales = self._weights(classes, self._channels(source))
        return self._network.build([self._network.fully_connected(flat, weights, bias, **scales, **self._affine)])

    def _channels(self, tensor: int) -> int:
        return self._network.tensors[tensor].shape[-1]

    def _weights(self, *shape: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        if not self._quantized:
            return _random_weights(self._random, shape), np.zeros(shape[0], np.float32), {}
        weights = self._random.integers(-127, 128, shape, np.int8)
        scale = 0.5 / (74 * np.sqrt(weights[0].size))
        scales = [scale] * shape[0] if len(shape) == 4 else [scale]
        return weights, self._random.integers(-500, 500, shape[0], np.int32), {"weight_scales": scales}


class OnnxFile:
    """An ONNX file, float32."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(0)
        self._nodes: list[Any] = []
        self._constants: dict[str, np.ndarray] = {}
        self._channels: dict[str, int] = {}
        self._side = 0

    def image(self, side: int, channels: int) -> str:
        self._side, self._channels["image"] = side, channels
        return "image"

    def convolve(self, source: str, channels: int, size: int, *, stride: int = 1, relu: bool = True) -> str:
        inputs = [source, *self._weights(channels, self._channels[source], size, size)]
        pads = [size // 2 if stride == 1 else 0, size // 2 if stride == 1 else 0, size // 2, size // 2]
        made = self._node("Conv", inputs, channels, strides=[stride, stride], pads=pads)
        return self._node("Relu", [made], channels) if relu else made

    def add(self, first: str, second: str) -> str:
        channels = self._channels[first]
        return self._node("Relu", [self._node("Add", [first, second], channels)], channels)

    def classify(self, source: str, classes: int) -> bytes:
        from support.onnx_models import model

        channels = self._channels[source]
        flat = self._node("Flatten", [self._node("GlobalAveragePool", [source], channels)], channels)
        output = self._node("Gemm", [flat, *self._weights(classes, channels)], classes, transB=1)
        image = ("image", (1, self._channels["image"], self._side, self._side))
        return model(self._nodes, [image], [(output, (1, classes))], self._constants)

    def _node(self, kind: str, inputs: list[str], channels: int, **attributes: Any) -> str:
        from onnx import helper

        name = f"{kind.lower()}{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        self._channels[name] = channels
        return name

    def _weights(self, *shape: int) -> list[str]:
        names = [f"{kind}{len(self._nodes)}" for kind in ("weights", "bias")]
        self._constants[names[0]] = _random_weights(self._random, shape)
        self._constants[names[1]] = np.zeros(shape[0], np.float32)
        return names


def _random_weights(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return (random.standard_normal(shape, np.float32) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def residual_network(writer: Writer[T], width: int, weights: int) -> bytes:
    """Return a residual network of some ``weights``, whose first stage has ``width`` channels within its blocks."""
    value = writer.convolve(writer.image(SIDE, 3), width, 3, stride=2)
    rest = weights - _OTHER_BLOCKS * sum(_block(width << stage) for stage in (0, 1, 3))
    for stage in range(4):
        blocks = max(1, round(rest / _block(width << 2))) if stage == 2 else _OTHER_BLOCKS
        for block in range(blocks):
            value = _residual(writer, value, width << stage, stride=2 if stage and not block else 1, widens=not block)
    return writer.classify(value, CLASSES)


def _block(width: int) -> int:
    """Return the weights of a block: 4 w -> w, 3 x 3 of w -> w, w -> 4 w."""
    return 17 * width * width


def _residual(writer: Writer[T], source: T, width: int, *, stride: int, widens: bool) -> T:
    value = writer.convolve(source, width, 1)
    value = writer.convolve(value, width, 3, stride=stride)
    value = writer.convolve(value, 4 * width, 1, relu=False)
    return writer.add(writer.convolve(source, 4 * width, 1, stride=stride, relu=False) if widens else source, value)


def write_networks(folder: Path, megabytes: float) -> list[Path]:
    """Write the networks, and return where they are."""
    files = {
        "large_int8.tflite": residual_network(TfliteFile(quantized=True), 64, round(megabytes * 1e6)),
        "large_f32.tflite": residual_network(TfliteFile(quantized=False), 32, round(megabytes * 1e6 / 4)),
        "large_f32.onnx": residual_network(OnnxFile(), 32, round(megabytes * 1e6 / 4)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return [folder / name for name in files]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=float, default=50)
    options = parser.parse_args()
    for path in write_networks(options.folder, options.megabytes):
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
