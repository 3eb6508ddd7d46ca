"""Networks of operators that can be executed row by row: windows of all kinds, sums with earlier images, branches.

Images are high and narrow, so that a few rows are much smaller than the image. The same seed gives the same network.
"""

from typing import Any

import numpy as np

from support.drawing import Case
from support.dsp_networks import ACTIVATIONS, Array, Layers

_FILTERS = ((3, 3), (3, 3), (1, 1), (1, 1), (2, 3), (5, 1), (4, 2), (1, 3))


class _ChainLayers(Layers):
    """``Layers`` that also support float32."""

    def __init__(self, seed: int, *, quantized: bool) -> None:
        super().__init__(seed)
        self.quantized = quantized
        self.known: list[int] = []
        """All images except the last one."""

    def input(self, *shape: int) -> int:
        if self.quantized:
            return super().input(*shape)
        self.value = self.random.normal(0, 1, shape).astype(np.float32)
        return self.network.input(shape)

    def weights(self, *shape: int) -> Array:
        if self.quantized:
            return super().weights(*shape)
        return (self.random.normal(0, 1, shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    def affine(self, source: int, inputs: int, channels: int) -> dict[str, Any]:
        if self.quantized:
            return super().affine(source, inputs, channels)
        bias = self.random.normal(0, 1, channels).astype(np.float32)
        return {"bias": bias if self.random.integers(2) else None, "activation": self.pick(*ACTIVATIONS)}

    def shape_of(self, image: int) -> tuple[int, ...]:
        return tuple(self.network.tensors[image].shape)

    def window(self, shape: tuple[int, int]) -> dict[str, Any]:
        return {
            "stride": self.pick((1, 1), (1, 1), (1, 1), (2, 2), (2, 1), (3, 1), (1, 2)),
            "padding": self.pick("SAME", "SAME", "VALID"),
            "dilation": self.pick((1, 1), (1, 1), (1, 1), (2, 1)) if shape[0] > 1 else (1, 1),
        }

    def fits(self, image: int, shape: tuple[int, int], window: dict[str, Any]) -> bool:
        """Return whether the output of the window is not empty."""
        reach = [(size - 1) * step + 1 for size, step in zip(shape, window.get("dilation", (1, 1)), strict=True)]
        size = self.shape_of(image)[1:3]
        return all(
            have >= need and have // step > 0 for have, need, step in zip(size, reach, window["stride"], strict=True)
        )

    def grow(self, image: int) -> int:
        """Apply one operator to ``image``."""
        kind = self.pick("conv", "conv", "conv", "depthwise", "depthwise", "sum", "sum", "pool", "unary")
        channels, shape = self.shape_of(image)[3], self.pick(*_FILTERS)
        window = self.window(shape)
        if kind in {"conv", "depthwise", "pool"} and not self.fits(image, shape, window):
            return image
        if kind == "conv":
            outputs = self.pick(channels, channels, 4, 8, 2 * channels, self.size(2, 9))
            weights = self.weights(min(outputs, 24), *shape, channels)
            return self.network.conv2d(image, weights, **self.affine(image, weights[0].size, len(weights)), **window)
        if kind == "depthwise":
            weights = self.weights(1, *shape, channels)
            affine = self.affine(image, shape[0] * shape[1], channels)
            return self.network.depthwise_conv2d(image, weights, **affine, **window)
        if kind == "pool":
            del window["dilation"]
            return self.network.pool2d(self.pick("MAX", "AVERAGE"), image, shape, **window)
        return self.sum(image) if kind == "sum" else self.unary(image)

    def sum(self, image: int) -> int:
        """Add an earlier image of this shape, if there is one."""
        equal = [other for other in self.known if self.shape_of(other) == self.shape_of(image)]
        if not equal:
            return image
        operands = [image, self.pick(*equal[-3:])]
        self.random.shuffle(operands)
        return self.network.add(*operands, activation=self.pick(*ACTIVATIONS), **self.scale(image, 1.4))

    def unary(self, image: int) -> int:
        kind = self.pick("RELU", "LEAKY_RELU")
        if kind == "LEAKY_RELU":
            options = {"Alpha": 0.25}
            return self.network.unary(kind, image, "LeakyReluOptions", options, **self.scale(image, 1.0))
        return self.network.unary(kind, image, **self.scale(image, 1.0))

    def scale(self, image: int, factor: float) -> dict[str, Any]:
        if not self.quantized:
            return {}
        scale = float(np.float32(self.network.tensors[image].scales[0] * factor))
        return {"scale": scale, "zero_point": self.zero_point()}


def chain_case(seed: int, *, quantized: bool = True) -> Case:
    """Return a network of up to nine operators, and an input."""
    layers = _ChainLayers(seed, quantized=quantized)
    image = layers.input(1, layers.size(8, 24), layers.size(1, 7), layers.pick(1, 3, 4, 8))
    image = layers.pointwise(image, layers.pick(4, 8, 5))
    for _ in range(layers.size(2, 8)):
        layers.known.append(image)
        image = layers.grow(image)
    return layers.case(layers.network.pool2d("MAX", image, layers.shape_of(image)[1:3]))


def branched_case(seed: int) -> Case:
    """Return a network of blocks whose input, pooled and with further channels of zeros, is added to their result."""
    layers = _ChainLayers(seed, quantized=True)
    image = layers.pointwise(layers.input(1, 16, layers.size(4, 7), 3), 4)
    for stride in (1, 2, 1):
        source, channels = image, layers.shape_of(image)[3]
        window = {"stride": (stride, stride), "padding": "SAME"}
        weights = layers.weights(1, 3, 3, channels)
        image = layers.network.depthwise_conv2d(image, weights, **layers.affine(image, 9, channels), **window)
        image = layers.pointwise(image, more := layers.size(channels, channels + 3))
        if stride > 1:
            source = layers.network.pool2d("MAX", source, (2, 2), **window)
        if more > channels:
            source = layers.network.pad(source, [(0, 0), (0, 0), (0, 0), (0, more - channels)])
        image = layers.network.add(image, source, activation="RELU", **layers.scale(image, 1.4))
    return layers.case(layers.network.pool2d("MAX", image, layers.shape_of(image)[1:3]))
