"""Networks for the int8 kernels of instruction sets: multiples of block sizes, other sizes, and extreme values.

Scales are such that outputs spread over the range of int8 and sometimes saturate, and all rescalings are below 1/2.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from support.drawing import Case
from support.tflite_builder import Network

Array = npt.NDArray[Any]

INPUT_SCALE = 0.05
ACTIVATIONS = ("NONE", "NONE", "RELU", "RELU6")


class Layers:
    """A network whose layers are drawn from ``seed``; ``extreme`` values are only the ends of their ranges."""

    def __init__(self, seed: int, *, extreme: bool = False) -> None:
        self.random = np.random.default_rng(seed)
        self.extreme = extreme
        self.network = Network()
        self.value: Array = np.zeros(0, np.int8)

    def pick(self, *options: Any) -> Any:
        return options[self.random.integers(len(options))]

    def size(self, least: int, greatest: int) -> int:
        return int(self.random.integers(least, greatest + 1))

    def zero_point(self) -> int:
        return int(self.pick(-128, 127, 0, self.size(-128, 127)))

    def input(self, *shape: int) -> int:
        values = [-128, 127] if self.extreme else np.arange(-128, 128)
        self.value = self.random.choice(values, shape).astype(np.int8)
        return self.network.input(shape, INPUT_SCALE, self.zero_point())

    def weights(self, *shape: int) -> Array:
        if self.extreme:
            return self.random.choice(np.array([-127, 127], np.int8)) * np.ones(shape, np.int8)
        return self.random.integers(-127, 128, shape, dtype=np.int8)

    def affine(self, source: int, inputs: int, channels: int) -> dict[str, Any]:
        """Return scales of the weights and of the output of a layer that adds ``inputs`` products, and a bias."""
        spread = 74.0 * (128 * inputs if self.extreme else 74 * inputs**0.5)
        factors = self.random.uniform(0.5, 1.5, channels) * 40 / spread
        output = float(np.float32(self.random.uniform(0.01, 0.1)))
        scales = [float(np.float32(factor * output / self.network.tensors[source].scales[0])) for factor in factors]
        bias = self.random.integers(-1, 2, channels) * self.random.integers(0, int(spread), channels)
        given = bool(self.random.integers(4))
        zero_point, activation = self.zero_point(), self.pick(*ACTIVATIONS)
        if activation != "NONE" and channels % 2 == 0:
            zero_point = -128  # as converters choose it: negative numbers saturate
        return {
            "weight_scales": scales,
            "bias": bias.astype(np.int32) if given else None,
            "scale": output,
            "zero_point": zero_point,
            "activation": activation,
        }

    def window(self, shape: tuple[int, int]) -> dict[str, Any]:
        return {
            "stride": (self.size(1, 3), self.size(1, 3)),
            "padding": self.pick("SAME", "VALID"),
            "dilation": self.pick((1, 1), (1, 1), (2, 1), (1, 2)) if shape != (1, 1) else (1, 1),
        }

    def conv2d(self, source: int, channels: int, shape: tuple[int, int]) -> int:
        depth = self.network.tensors[source].shape[3]
        weights = self.weights(channels, *shape, depth)
        affine = self.affine(source, weights[0].size, channels)
        return self.network.conv2d(source, weights, **affine, **self.window(shape))

    def conv2d_same(self, source: int, channels: int, side: int) -> int:
        weights = self.weights(channels, side, side, self.network.tensors[source].shape[3])
        return self.network.conv2d(source, weights, **self.affine(source, weights[0].size, channels), padding="SAME")

    def pointwise(self, source: int, channels: int) -> int:
        depth = self.network.tensors[source].shape[3]
        return self.network.conv2d(source, self.weights(channels, 1, 1, depth), **self.affine(source, depth, channels))

    def fully_connected(self, source: int, channels: int) -> int:
        depth = self.network.tensors[source].shape[-1]
        return self.network.fully_connected(
            source, self.weights(channels, depth), **self.affine(source, depth, channels)
        )

    def case(self, output: int) -> Case:
        return Case(self.network.build(outputs=[output]), (self.value,))


def conv2d(seed: int, *, extreme: bool = False) -> Case:
    """Return a convolution with any window."""
    layers = Layers(seed, extreme=extreme)
    shape = layers.pick((1, 1), (3, 3), (2, 3), (1, 4), (5, 1))
    image = layers.input(layers.size(1, 2), layers.size(9, 12), layers.size(9, 14), layers.pick(1, 2, 3, 4, 5, 8, 12))
    return layers.case(layers.conv2d(image, layers.size(2, 9), shape))


def conv2d_below_peak(seed: int, *, extreme: bool = False) -> Case:
    """Return a convolution in a network whose peak memory use is before it."""
    layers = Layers(seed, extreme=extreme)
    shape = layers.pick((1, 1), (3, 3), (2, 3), (1, 4), (5, 1))
    image = layers.input(1, layers.size(9, 12), layers.size(9, 14), 4)
    image = layers.pointwise(layers.pointwise(image, 48), layers.pick(4, 8, 12))
    return layers.case(layers.conv2d(image, layers.size(2, 9), shape))


def conv2d_copied(seed: int, *, extreme: bool = False) -> Case:
    """Return convolutions of many pixels below the peak, so that some or all pairs of filters are copied to RAM."""
    layers = Layers(seed, extreme=extreme)
    image = layers.input(1, layers.size(9, 12), layers.size(9, 14), layers.pick(3, 4, 8))
    image = layers.pointwise(layers.conv2d_same(image, layers.pick(32, 48), 1), layers.pick(8, 12, 16))
    image = layers.conv2d_same(image, layers.pick(8, 12, 20), layers.pick(1, 3))
    return layers.case(layers.conv2d_same(image, layers.pick(4, 5, 10), layers.pick(1, 3)))


def conv2d_long(seed: int, *, extreme: bool = False) -> Case:
    """Return a 3x3 convolution of many pixels before the peak; with 8 channels sums of extreme values also fit."""
    layers = Layers(seed, extreme=extreme)
    height, width = layers.pick((43, 6), (37, 7), (32, 8), (layers.size(16, 18), layers.size(16, 21)))
    channels = 8 if extreme else layers.pick(8, 8, 12)
    image = layers.conv2d_same(layers.input(1, height, width, channels), layers.size(1, 9), 3)
    return layers.case(layers.pointwise(layers.pointwise(image, 48), 4))


def conv2d_gathered(seed: int, *, extreme: bool = False) -> Case:
    """Return a convolution of pixels that are not whole words, before the peak, so that there is room for windows."""
    layers = Layers(seed, extreme=extreme)
    # A dilated filter of five rows covers nine.
    image = layers.input(1, layers.size(9, 12), layers.size(7, 14), layers.pick(1, 2, 3, 5, 6))
    shape = layers.pick((3, 3), (2, 3), (1, 4), (5, 1))
    image = layers.conv2d(image, layers.size(2, 9), shape)
    return layers.case(layers.pointwise(layers.pointwise(image, 48), 4))


def pointwise(seed: int, *, extreme: bool = False) -> Case:
    """Return four 1x1 convolutions, of which the middle ones may compute in place, growing and shrinking."""
    layers = Layers(seed, extreme=extreme)
    image = layers.input(1, layers.size(1, 4), layers.size(1, 5), layers.pick(3, 4, 8, 16))
    for channels in (layers.size(2, 24), layers.pick(4, 8, 20, 24), layers.pick(4, 8, 20, 24), layers.size(2, 9)):
        image = layers.pointwise(image, channels)
    return layers.case(image)


def fully_connected(seed: int, *, extreme: bool = False) -> Case:
    """Return a product with a vector or a few rows, with more inputs than 24-bit sums can hold."""
    layers = Layers(seed, extreme=extreme)
    depth = layers.pick(1, 3, 4, 7, 8, 20, 36, 64, 100, 508, 512, 516, 640, 1500)
    source = layers.input(layers.pick(1, 1, 2, 3, 7), depth)
    return layers.case(layers.fully_connected(source, layers.size(2, 9)))


def fully_connected_in_fours(seed: int, *, extreme: bool = False) -> Case:
    """Return a product with many weights, in fours of channels, and one or two rows."""
    layers = Layers(seed, extreme=extreme)
    source = layers.input(layers.size(1, 2), layers.pick(128, 132, 148, 256, 512))
    return layers.case(layers.fully_connected(source, layers.pick(8, 12, 20)))


def depthwise(seed: int, *, extreme: bool = False) -> Case:
    """Return a depthwise convolution with any small filter; rows of the image may be long, or a single pixel."""
    layers = Layers(seed, extreme=extreme)
    shape = layers.pick((3, 3), (3, 3), (2, 3), (3, 2), (2, 2))
    height, width = layers.pick((layers.size(3, 9), layers.size(3, 12)), (5, 70), (68, 4), (3, 3))
    image = layers.input(layers.size(1, 2), height, width, layers.pick(4, 5, 7, 8, 12))
    channels = layers.network.tensors[image].shape[3]
    stride = layers.pick((1, 1), (1, 1), (2, 2), (1, 2), (2, 1), (3, 1), (1, 3), (5, 2))
    window = {"stride": stride, "padding": layers.pick("SAME", "VALID")}
    affine = layers.affine(image, shape[0] * shape[1], channels)
    return layers.case(layers.network.depthwise_conv2d(image, layers.weights(1, *shape, channels), **affine, **window))


def depthwise_in_place(seed: int, *, extreme: bool = False) -> Case:
    """Return depthwise convolutions that compute in place, on an image longer or shorter than the kernel's rows."""
    layers = Layers(seed, extreme=extreme)
    image = layers.input(1, *layers.pick((7, 5), (5, 9), (30, 3), (3, 40), (64, 3)), 4)
    image = layers.pointwise(image, layers.pick(8, 12, 6))
    channels = layers.network.tensors[image].shape[3]
    for _ in range(2):
        affine = layers.affine(image, 9, channels)
        weights = layers.weights(1, 3, 3, channels)
        image = layers.network.depthwise_conv2d(image, weights, **affine, padding="SAME")
    return layers.case(layers.pointwise(image, 4))


def depthwise_large(seed: int, *, extreme: bool = False) -> Case:
    """Return two depthwise convolutions with larger filters, of which the second may compute in place."""
    layers = Layers(seed, extreme=extreme)
    shape = layers.pick((5, 5), (5, 5), (7, 7), (4, 4), (1, 5), (6, 1), (3, 7), (9, 3))
    image = layers.input(layers.size(1, 2), *layers.pick((11, 12), (9, 40), (30, 9), (10, 10)), 4)
    image = layers.pointwise(image, layers.pick(4, 8, 9))
    channels = layers.network.tensors[image].shape[3]
    for stride in (layers.pick((1, 1), (2, 2), (1, 2), (2, 1), (3, 1)), (1, 1)):
        affine = layers.affine(image, shape[0] * shape[1], channels)
        window = {"stride": stride, "padding": "SAME" if stride == (1, 1) else layers.pick("SAME", "VALID")}
        image = layers.network.depthwise_conv2d(image, layers.weights(1, *shape, channels), **affine, **window)
    return layers.case(layers.pointwise(image, 4))


def depthwise_by_rows(seed: int, *, extreme: bool = False) -> Case:
    """Return a depthwise convolution at a network's peak whose output is smaller than its input."""
    layers = Layers(seed, extreme=extreme)
    image = layers.input(layers.size(1, 2), layers.size(6, 11), layers.size(6, 14), 4)
    image = layers.pointwise(image, layers.pick(8, 12, 7))
    channels = layers.network.tensors[image].shape[3]
    window = layers.pick(((2, 2), "SAME"), ((2, 2), "VALID"), ((2, 1), "SAME"), ((1, 1), "VALID"), ((3, 2), "VALID"))
    affine = layers.affine(image, 9, channels)
    weights = layers.weights(1, 3, 3, channels)
    options = {"stride": window[0], "padding": window[1]}
    return layers.case(layers.pointwise(layers.network.depthwise_conv2d(image, weights, **affine, **options), 4))


def depthwise_scale(seed: int, *, extreme: bool = False) -> Case:
    """Return two depthwise convolutions of one weight per channel, of which the second may compute in place."""
    layers = Layers(seed, extreme=extreme)
    image = layers.input(layers.size(1, 2), layers.size(1, 5), layers.size(1, 6), layers.pick(1, 2, 3, 4, 7, 16))
    channels = layers.network.tensors[image].shape[3]
    for _ in range(2):
        weights = layers.weights(1, 1, 1, channels)
        image = layers.network.depthwise_conv2d(image, weights, **layers.affine(image, 9, channels))
    return layers.case(image)


def pool(seed: int, *, extreme: bool = False, channels: int = 1) -> Case:
    """Return an average or maximum of up to 250 pixels with at least ``channels`` channels."""
    layers = Layers(seed, extreme=extreme)
    image = layers.input(layers.size(1, 2), layers.size(10, 25), layers.size(10, 12), layers.size(channels, 40))
    size = layers.pick((1, 1), (2, 2), (3, 3), (2, 5), (10, 10), (10, 7))
    stride = layers.pick((1, 1), (2, 2), (3, 2))
    options = {"stride": stride, "padding": layers.pick("SAME", "VALID"), "activation": layers.pick("NONE", "RELU6")}
    return layers.case(layers.network.pool2d(layers.pick("AVERAGE", "MAX"), image, size, **options))


KINDS: dict[str, Callable[..., Case]] = {
    "CONV_2D": conv2d, "CONV_2D below the peak": conv2d_below_peak, "CONV_2D copied": conv2d_copied,
    "CONV_2D long": conv2d_long, "CONV_2D gathered": conv2d_gathered, "CONV_2D 1x1": pointwise,
    "FULLY_CONNECTED": fully_connected, "FULLY_CONNECTED in fours": fully_connected_in_fours,
    "DEPTHWISE_CONV_2D": depthwise, "DEPTHWISE_CONV_2D in place": depthwise_in_place,
    "DEPTHWISE_CONV_2D large": depthwise_large, "DEPTHWISE_CONV_2D by rows": depthwise_by_rows,
    "DEPTHWISE_CONV_2D 1x1": depthwise_scale,
    "POOL_2D": partial(pool, channels=4),
}  # fmt: skip
