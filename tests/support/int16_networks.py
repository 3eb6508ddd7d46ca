"""Networks of int16 activations and int8 weights: layers with extreme sums, and whole networks of several layers.

Scales are such that outputs spread over the range of int16 and sometimes saturate. A seed always gives the same
network.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from support.drawing import Case
from support.dsp_networks import ACTIVATIONS, Layers

_INPUT_SCALE = float(np.float32(1 / 4096))


class Int16Layers(Layers):
    """``Layers`` with int16 activations; with ``extreme`` values, sums are as great as possible or nearly cancel."""

    def input(self, *shape: int) -> int:
        if self.extreme:
            same = self.pick([-32768], [32767], [-32768, 32767])
            self.value = self.random.choice(np.array(same, np.int16), shape)
        else:
            self.value = self.random.integers(-32768, 32768, shape).astype(np.int16)
        return self.network.input(shape, _INPUT_SCALE, dtype="int16")

    def affine(self, source: int, inputs: int, channels: int) -> dict[str, Any]:
        spread = 127 * 32768 * inputs if self.extreme else 74 * 19000 * inputs**0.5
        factors = self.random.uniform(0.5, 1.5, channels) * 12000 / spread
        output = float(np.float32(self.random.uniform(0.5, 2) / 4096))
        scales = [float(np.float32(factor * output / self.network.tensors[source].scales[0])) for factor in factors]
        bias = self.random.integers(-1, 2, channels) * self.random.integers(0, int(spread), channels)
        return {
            "weight_scales": scales,
            "bias": bias.astype(np.int64) if self.random.integers(4) else None,
            "scale": output,
            "dtype": "int16",
            "activation": self.pick(*ACTIVATIONS),
        }

    def depthwise(self, source: int, shape: tuple[int, int], multiplier: int = 1, **window: Any) -> int:
        channels = self.network.tensors[source].shape[3] * multiplier
        weights = self.weights(1, *shape, channels)
        affine = self.affine(source, shape[0] * shape[1], channels)
        return self.network.depthwise_conv2d(source, weights, **affine, **window)


def conv2d(seed: int, *, extreme: bool = False) -> Case:
    """Return a convolution with any window."""
    layers = Int16Layers(seed, extreme=extreme)
    shape = layers.pick((1, 1), (3, 3), (2, 3), (1, 4), (5, 1))
    image = layers.input(layers.size(1, 2), layers.size(9, 12), layers.size(9, 14), layers.pick(1, 2, 3, 4, 5, 8, 66))
    return layers.case(layers.conv2d(image, layers.size(2, 9), shape))


def pointwise(seed: int, *, extreme: bool = False) -> Case:
    """Return three 1x1 convolutions."""
    layers = Int16Layers(seed, extreme=extreme)
    image = layers.input(1, layers.size(1, 4), layers.size(1, 5), layers.pick(1, 3, 4, 7, 8, 16))
    for channels in (layers.size(2, 24), layers.pick(1, 4, 7, 20), layers.size(2, 9)):
        image = layers.pointwise(image, channels)
    return layers.case(image)


def fully_connected(seed: int, *, extreme: bool = False) -> Case:
    """Return a product with a vector or a few rows, with more inputs than 32-bit sums can hold."""
    layers = Int16Layers(seed, extreme=extreme)
    depth = layers.pick(1, 3, 4, 7, 8, 36, 100, 508, 511, 512, 513, 1500)
    source = layers.input(layers.pick(1, 1, 2, 3, 7), depth)
    return layers.case(layers.fully_connected(source, layers.size(1, 9)))


def deep(seed: int, *, extreme: bool = False) -> Case:
    """Return a 1x1 convolution and a product with a vector, whose sums need more than 32 bits."""
    layers = Int16Layers(seed, extreme=extreme)
    image = layers.input(1, 9, 1, layers.pick(1100, 1201, 1302))
    row = layers.network.reshape(layers.pointwise(image, 60), (1, 540))
    layers.extreme = True
    return layers.case(layers.fully_connected(row, layers.size(4, 9)))


def depthwise(seed: int, *, extreme: bool = False) -> Case:
    """Return a depthwise convolution with any filter, multiplier and window."""
    layers = Int16Layers(seed, extreme=extreme)
    shape = layers.pick((3, 3), (3, 3), (2, 3), (1, 1), (5, 5), (4, 1))
    height, width = layers.pick((layers.size(5, 9), layers.size(5, 12)), (5, 40), (40, 5), (5, 5))
    image = layers.input(layers.size(1, 2), height, width, layers.pick(8, 4, 16, 5, 8, 3, 16, 12, 1))
    window = {
        "stride": layers.pick((1, 1), (1, 1), (2, 2), (1, 2), (3, 1)),
        "padding": layers.pick("SAME", "VALID"),
        "dilation": layers.pick((1, 1), (1, 1), (2, 1)) if max(shape) < 4 else (1, 1),
    }
    return layers.case(layers.depthwise(image, shape, layers.pick(1, 1, 1, 1, 3), **window))


def network(seed: int, *, extreme: bool = False) -> Case:
    """Return a small classifier: PAD, convolutions of all kinds, ADD, RELU, pools, FULLY_CONNECTED, SOFTMAX."""
    layers = Int16Layers(seed, extreme=extreme)
    net = layers.network
    image = layers.input(1, layers.pick(12, 16, 24), layers.size(5, 8), layers.pick(1, 3))
    image = net.pad(image, [(0, 0), (1, 0), (1, 1), (0, 0)])
    weights = layers.weights(8, 3, 3, net.tensors[image].shape[3])
    image = net.conv2d(image, weights, **layers.affine(image, weights[0].size, 8), stride=layers.pick((1, 1), (2, 2)))
    for _ in range(2):
        before = image
        image = layers.depthwise(image, (3, 3), padding="SAME")
        image = layers.pointwise(image, 8)
        image = net.add(before, image, scale=float(np.float32(1 / 2048)), dtype="int16")
        image = net.unary("RELU", image, scale=float(np.float32(1 / 2048)), dtype="int16")
    image = net.pool2d("MAX", image, (2, 2), stride=(2, 2))
    image = net.pool2d("AVERAGE", image, tuple(net.tensors[image].shape[1:3]))
    row = layers.fully_connected(net.reshape(image, (1, 8)), 10)
    likely = net.operator(
        "SOFTMAX", [row], net.activation((1, 10), 1 / 32768, dtype="int16"), "SoftmaxOptions", Beta=1.0
    )
    return Case(net.build(outputs=[row, likely]), (layers.value,))


KINDS: dict[str, Callable[..., Case]] = {
    "CONV_2D": conv2d, "CONV_2D 1x1": pointwise, "FULLY_CONNECTED": fully_connected, "more than 32 bits": deep,
    "DEPTHWISE_CONV_2D": depthwise, "several layers": network,
}  # fmt: skip
