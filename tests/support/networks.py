"""Hypothesis strategies of networks of one operator: the model and an input to run it on.

Sizes stay small; strides, dilations, paddings, scales, zero points and activations vary over what TensorFlow Lite Micro
accepts. Data comes from a drawn seed, since its every element is not worth shrinking.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from support.tflite_builder import Network

Array = npt.NDArray[Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")


@dataclass(frozen=True)
class Case:
    """A model file and one input for each of its inputs."""

    model: bytes = field(repr=False)
    inputs: tuple[Array, ...]


class Drawing:
    """What every strategy below draws from: sizes, quantisation, data, in int8 or float32."""

    def __init__(self, draw: Draw, *, quantized: bool) -> None:
        self.draw = draw
        self.quantized = quantized
        self.random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self.network = Network()
        self.values: list[Array] = []

    def size(self, least: int, greatest: int) -> int:
        return int(self.draw(st.integers(least, greatest)))

    def pair(self, least: int, greatest: int) -> tuple[int, int]:
        return self.size(least, greatest), self.size(least, greatest)

    def choice(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def scale(self, least: float = 0.004, greatest: float = 0.5) -> float | None:
        """A float32 scale, or ``None`` where the network is float32."""
        return float(np.float32(self.draw(st.floats(least, greatest)))) if self.quantized else None

    def affine(self, least: float = 0.004, greatest: float = 0.5) -> dict[str, Any]:
        """Keyword arguments ``scale`` and ``zero_point``, none for float32."""
        if not self.quantized:
            return {}
        return {"scale": self.scale(least, greatest), "zero_point": self.size(-128, 127)}

    def data(self, shape: tuple[int, ...]) -> Array:
        """Activations: the whole range of int8, or float32 around 0."""
        if self.quantized:
            return self.random.integers(-128, 128, shape, dtype=np.int8)
        return self.random.normal(0, 2, shape).astype(np.float32)

    def input(self, shape: tuple[int, ...], **affine: Any) -> int:
        self.values.append(self.data(shape))
        return self.network.input(shape, **(affine or self.affine()))

    def parameters(self, shape: tuple[int, ...], channels: int) -> dict[str, Any]:
        """Keyword arguments ``weights``, ``bias`` (perhaps ``None``) and ``weight_scales`` of a layer."""
        biased = self.choice(True, False)
        if not self.quantized:
            weights = self.random.normal(0, 1, shape).astype(np.float32)
            return {
                "weights": weights,
                "bias": self.random.normal(0, 1, channels).astype(np.float32) if biased else None,
            }
        count = self.choice(1, channels)
        return {
            "weights": self.random.integers(-127, 128, shape, dtype=np.int8),
            "bias": self.random.integers(-(2**14), 2**14, channels, dtype=np.int32) if biased else None,
            "weight_scales": self.random.uniform(0.002, 0.05, count).astype(np.float32).tolist(),
        }

    def window(self) -> dict[str, Any]:
        return {
            "stride": self.pair(1, 3),
            "padding": self.choice("SAME", "VALID"),
            "activation": self.choice(*ACTIVATIONS),
        }

    def case(self) -> Case:
        return Case(self.network.build(), tuple(self.values))


def _conv2d(d: Drawing) -> None:
    depth, channels = d.size(1, 5), d.size(1, 6)
    shape, dilation = d.pair(1, 4), d.pair(1, 2)
    image = d.input(_image_shape(d, shape, dilation, depth))
    layer = d.parameters((channels, *shape, depth), channels)
    d.network.conv2d(image, **layer, **d.window(), dilation=dilation, **d.affine(0.02, 4))


def _depthwise_conv2d(d: Drawing) -> None:
    depth, multiplier = d.size(1, 5), d.size(1, 3)
    shape, dilation = d.pair(1, 4), d.pair(1, 2)
    image = d.input(_image_shape(d, shape, dilation, depth))
    layer = d.parameters((1, *shape, depth * multiplier), depth * multiplier)
    d.network.depthwise_conv2d(image, **layer, **d.window(), dilation=dilation, **d.affine(0.02, 2))


def _image_shape(d: Drawing, shape: tuple[int, int], dilation: tuple[int, int], depth: int) -> tuple[int, ...]:
    """An image in which the filter finds at least one VALID position."""
    rows, columns = ((size - 1) * step + 1 for size, step in zip(shape, dilation, strict=True))
    return d.size(1, 2), d.size(rows, rows + 5), d.size(columns, columns + 5), depth


def _fully_connected(d: Drawing) -> None:
    depth, channels, keep_num_dims = d.size(1, 20), d.size(1, 8), d.choice(True, False)
    source = d.input((d.size(1, 2), d.size(1, 3), depth))
    layer = d.parameters((channels, depth), channels)
    options = {"activation": d.choice(*ACTIVATIONS), "keep_num_dims": keep_num_dims}
    d.network.fully_connected(source, **layer, **options, **d.affine(0.02, 2))


def _add(d: Drawing) -> None:
    shape = tuple(d.size(1, 4) for _ in range(d.size(1, 4)))
    other = tuple(d.choice(size, 1) for size in shape)
    first, second = d.choice((shape, shape), (shape, other), (other, shape))
    left = d.input(first)
    constant = d.choice(True, False)
    right = d.network.constant(d.data(second), **d.affine()) if constant else d.input(second)
    d.network.add(left, right, activation=d.choice(*ACTIVATIONS), **d.affine(0.01, 1))


def _pool(kind: str) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        shape = d.pair(1, 4)
        image = d.input(_image_shape(d, shape, (1, 1), d.size(1, 4)))
        d.network.pool2d(kind, image, shape, **d.window())

    return draw


def _mean(d: Drawing) -> None:
    shape = tuple(d.size(1, 6) for _ in range(d.size(1, 4)))
    axes = d.draw(st.lists(st.integers(-len(shape), len(shape) - 1), min_size=1, max_size=len(shape)))
    d.network.mean(d.input(shape), axes, keep_dims=d.choice(True, False), **d.affine(0.004, 1))


def _softmax(d: Drawing) -> None:
    shape = tuple(d.size(1, 12) for _ in range(d.size(1, 3)))
    d.network.softmax(d.input(shape), beta=d.choice(1.0, 0.25, 2.5))


def _reshape(d: Drawing) -> None:
    shape = (d.size(1, 4), d.size(1, 4), d.size(1, 4))
    d.network.reshape(d.input(shape), (shape[0] * shape[1], shape[2]), with_shape_tensor=d.choice(True, False))


def _pad(d: Drawing) -> None:
    shape = tuple(d.size(1, 4) for _ in range(d.size(1, 5)))
    d.network.pad(d.input(shape), [d.pair(0, 2) for _ in shape])


def _quantize(d: Drawing) -> None:
    shape = (d.size(1, 3), d.size(1, 40))
    d.network.quantize(d.input(shape), float(np.float32(d.draw(st.floats(0.004, 0.5)))), d.size(-128, 127))


def _dequantize(d: Drawing) -> None:
    d.network.dequantize(d.input((d.size(1, 3), d.size(1, 40))))


OPERATORS: Mapping[str, Callable[[Drawing], None]] = {
    "ADD": _add,
    "AVERAGE_POOL_2D": _pool("AVERAGE"),
    "CONV_2D": _conv2d,
    "DEPTHWISE_CONV_2D": _depthwise_conv2d,
    "DEQUANTIZE": _dequantize,
    "FULLY_CONNECTED": _fully_connected,
    "MAX_POOL_2D": _pool("MAX"),
    "MEAN": _mean,
    "PAD": _pad,
    "QUANTIZE": _quantize,
    "RESHAPE": _reshape,
    "SOFTMAX": _softmax,
}


def cases(operator: str, dtype: str) -> st.SearchStrategy[Case]:
    """Networks of the one ``operator`` whose inputs are ``dtype``, "int8" or "float32"."""

    @st.composite
    def strategy(draw: Draw) -> Case:
        drawing = Drawing(draw, quantized=dtype == "int8")
        OPERATORS[operator](drawing)
        return drawing.case()

    return strategy()
