"""Networks for the float32 kernels for Helium: a layer of each, around whole vectors."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from support.drawing import Case
from support.tflite_builder import Network

Array = npt.NDArray[Any]

SHAPES = ((1, 1), (3, 3), (3, 3), (2, 3), (1, 4), (5, 1))


class Layers:
    """A float32 network whose layers are drawn from ``seed``."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.network = Network()
        self.value: Array = np.zeros(0, np.float32)

    def pick(self, *options: Any) -> Any:
        return options[self.random.integers(len(options))]

    def normal(self, *shape: int) -> Array:
        return self.random.normal(size=shape).astype(np.float32)

    def input(self, *shape: int) -> int:
        self.value = self.normal(*shape)
        return self.network.input(shape)

    def options(self, channels: int) -> dict[str, Any]:
        return {"bias": self.normal(channels), "activation": self.pick("NONE", "RELU", "RELU6")}

    def case(self, output: int) -> Case:
        return Case(self.network.build(outputs=[output]), (self.value,))


def conv2d(seed: int) -> Case:
    """Draw a convolution with any window and 8 to 25 channels."""
    layers = Layers(seed)
    shape, channels = layers.pick(*SHAPES), int(layers.random.integers(8, 26))
    height, width, depth = (int(size) for size in layers.random.integers((9, 9, 1), (12, 15, 9)))
    small = seed % 4 == 0  # than many filters
    image = layers.input(layers.pick(1, 2), height // 4 if small else height, width // 8 if small else width, depth)
    window = {
        "stride": layers.pick((1, 1), (2, 2), (1, 3)),
        "padding": "SAME" if small else layers.pick("SAME", "VALID"),
        "dilation": layers.pick((1, 1), (1, 1), (2, 1), (1, 2)),
    }
    weights = layers.normal(channels, *shape, depth)
    return layers.case(layers.network.conv2d(image, weights, **layers.options(channels), **window))


def depthwise(seed: int) -> Case:
    """Draw a depthwise convolution of 3x3 with 4 to 20 channels."""
    layers = Layers(seed)
    channels = layers.pick(4, 8, 12, 20)
    height, width = (int(size) for size in layers.random.integers((5, 5), (9, 9)))
    image = layers.input(layers.pick(1, 2), height, width, channels)
    window = {
        "stride": layers.pick((1, 1), (2, 2), (1, 3)),
        "padding": layers.pick("SAME", "VALID"),
        "dilation": layers.pick((1, 1), (2, 1), (1, 2)),
    }
    weights = layers.normal(1, 3, 3, channels)
    return layers.case(layers.network.depthwise_conv2d(image, weights, **layers.options(channels), **window))


def fully_connected(seed: int) -> Case:
    """Draw a product with one or a few rows and 8 to 40 outputs."""
    layers = Layers(seed)
    depth, channels = layers.pick(1, 3, 4, 7, 64, 129), int(layers.random.integers(8, 41))
    source = layers.input(layers.pick(1, 1, 1, 2, 4), depth)
    return layers.case(
        layers.network.fully_connected(source, layers.normal(channels, depth), **layers.options(channels))
    )


KINDS: dict[str, Callable[[int], Case]] = {
    "CONV_2D": conv2d, "DEPTHWISE_CONV_2D": depthwise, "FULLY_CONNECTED": fully_connected,
}  # fmt: skip
