"""Networks for the int8 kernels for Helium: sizes near multiples of vectors, channels near multiples of groups."""

from collections.abc import Callable
from typing import Any

import numpy as np

from support.drawing import Case
from support.dsp_networks import Array, Layers, pool


class MveLayers(Layers):
    """``Layers`` in which every third network has so few and small weights that some rescalings are 1 or more."""

    def __init__(self, seed: int, *, extreme: bool = False) -> None:
        super().__init__(seed, extreme=extreme)
        self.small = False
        self.growing = seed % 3 == 0 and not extreme

    def weights(self, *shape: int) -> Array:
        if not self.growing:
            return super().weights(*shape)
        return (self.random.integers(-1, 2, shape) * (self.random.random(shape) < 0.1)).astype(np.int8)

    def affine(self, source: int, inputs: int, channels: int) -> dict[str, Any]:
        affine = super().affine(source, inputs, channels)
        if self.growing:
            scale = affine["scale"] / self.network.tensors[source].scales[0]
            affine["weight_scales"] = [float(np.float32(scale * self.random.uniform(0.3, 5))) for _ in range(channels)]
            affine["bias"] = self.random.integers(-40, 41, channels).astype(np.int32)
        return affine

    def image(self, depth: int, *sizes: tuple[int, int]) -> int:
        """Add an input of one of ``sizes``, by default around ten; one in three is smaller than many filters."""
        height, width = self.pick(*sizes) if sizes else (self.size(9, 11), self.size(9, 12))
        self.small = self.random.integers(3) == 0
        if self.small:
            height, width = self.size(1, 4), self.size(1, 5)
        return self.input(self.size(1, 2), height, width, depth)

    def window(self, shape: tuple[int, int]) -> dict[str, Any]:
        """Draw a window with fewer dilations, which have no special kernel."""
        window = super().window(shape)
        if self.small:
            window["padding"] = "SAME"
        return window if max(shape) < 6 and self.random.integers(2) else {**window, "dilation": (1, 1)}

    def behind_large(self, source: int) -> int:
        """Add a larger image before one of the same shape, in every second network: so there is memory for a strip."""
        if self.random.integers(2):
            return source
        return self.pointwise(self.pointwise(source, 160), self.network.tensors[source].shape[3])

    def depthwise(self, source: int, shape: tuple[int, int], multiplier: int = 1) -> int:
        channels = self.network.tensors[source].shape[3] * multiplier
        affine = self.affine(source, shape[0] * shape[1], channels)
        weights = self.weights(1, *shape, channels)
        return self.network.depthwise_conv2d(source, weights, **affine, **self.window(shape))


def conv2d(seed: int, *, extreme: bool = False) -> Case:
    """Return a convolution with any window and filter rows of 1 to 100 bytes."""
    layers = MveLayers(seed, extreme=extreme)
    shape = layers.pick((3, 3), (3, 3), (3, 3), (1, 1), (2, 3), (1, 4), (5, 1), (4, 5))
    depth = layers.pick(1, 3, 4, 5, 8, 15, 16, 17, 20, 32)
    image = layers.image(depth)
    return layers.case(layers.conv2d(layers.behind_large(image), layers.size(1, 13), shape))


class LongRows(MveLayers):
    """Layers without dilation, which has no rows; half of them also without stride, so that windows are neighbours."""

    def window(self, shape: tuple[int, int]) -> dict[str, Any]:
        window = {**super().window(shape), "dilation": (1, 1)}
        return window if self.random.integers(2) else {**window, "stride": (1, 1)}


def long_rows(seed: int, *, extreme: bool = False) -> Case:
    """Return a convolution with filter rows of three, six or twelve vectors."""
    layers = LongRows(seed, extreme=extreme)
    shape, depth = layers.pick((2, 3), (5, 3), *[(3, 3)] * 8), layers.pick(16, 16, 32, 64)
    image = layers.input(1, layers.size(5, 9), layers.size(3, 9), depth)
    image = layers.behind_large(image)
    layers.small = True  # filters may be larger than the image
    return layers.case(layers.conv2d(image, layers.size(1, 13), shape))


def pointwise(seed: int, *, extreme: bool = False) -> Case:
    """Return four 1x1 convolutions, of which the middle ones may compute in place, growing and shrinking."""
    layers = MveLayers(seed, extreme=extreme)
    image = layers.input(layers.size(1, 2), layers.size(1, 9), layers.size(1, 9), layers.size(1, 100))
    for channels in (layers.size(1, 40), layers.size(8, 90), layers.size(8, 90), layers.size(1, 9)):
        image = layers.pointwise(image, channels)
    return layers.case(image)


class SmallWindows(MveLayers):
    """Layers that clamp to the range of int8, few of which shift to the left."""

    def __init__(self, seed: int, *, extreme: bool = False) -> None:
        super().__init__(seed, extreme=extreme)
        self.growing = seed % 8 == 0 and not extreme

    def affine(self, source: int, inputs: int, channels: int) -> dict[str, Any]:
        affine = super().affine(source, inputs, channels)
        clamp = {"activation": "RELU", "zero_point": -128} if self.random.integers(6) else {"activation": "NONE"}
        return {**affine, **clamp}


def small_windows(seed: int, *, extreme: bool = False) -> Case:
    """Return a first layer of one to three channels and 1x1 convolutions of up to 32, on up to 400 pixels."""
    layers = SmallWindows(seed, extreme=extreme)
    depth, stride = layers.pick(1, 3), layers.pick((1, 1), (2, 2), (1, 2), (2, 1), (3, 2))
    image = layers.input(layers.size(1, 2), layers.size(5, 20), layers.size(9, 20), depth)
    channels = layers.size(2, 16)
    weights = layers.weights(channels, 3, 3, depth)
    affine = layers.affine(image, weights[0].size, channels)
    image = layers.network.conv2d(image, weights, **affine, stride=stride, padding=layers.pick("SAME", "VALID"))
    for channels in (layers.pick(8, 16, 32, layers.size(2, 40)), layers.pick(8, 16, 32), layers.size(2, 9)):
        image = layers.pointwise(image, channels)
    return layers.case(image)


def fully_connected(seed: int, *, extreme: bool = False) -> Case:
    """Return a product with a vector or with a few rows."""
    layers = MveLayers(seed, extreme=extreme)
    depth = layers.pick(1, 8, 15, 16, 17, 31, 48, 64, 80, 96, 100, 112, 128, 640)
    source = layers.input(layers.pick(1, 1, 1, 2, 3), depth)
    return layers.case(layers.fully_connected(source, layers.size(1, 26)))


def depthwise(seed: int, *, extreme: bool = False) -> Case:
    """Return a depthwise convolution after a 1x1 one, so that it may compute in place; images are high and wide."""
    layers = MveLayers(seed, extreme=extreme)
    shape = layers.pick((3, 3), (3, 3), (3, 3), (3, 3), (4, 4), (2, 5), (5, 2), (1, 3), (16, 1), (1, 1), (5, 5))
    image = layers.image(layers.size(1, 3), (16, 17), (17, 16), (16, 16), (18, 23), (25, 16))
    wide = layers.pointwise(image, layers.pick(4, 5, 7, 8, 16, 18, 20, 24, 35))
    return layers.case(layers.depthwise(wide, shape))


def depthwise_planes(seed: int, *, extreme: bool = False) -> Case:
    """Return two 3x3 filters with a stride of 1, some in place, on images that take one or several bands."""
    layers = SmallWindows(seed, extreme=extreme)
    height, width = layers.pick((layers.size(3, 9), layers.size(3, 9)), (30, 27), (layers.size(20, 33), 6), (5, 70))
    image = layers.input(layers.size(1, 2), height, width, layers.size(1, 3))
    image = layers.pointwise(image, layers.pick(4, 5, 8, 16, 20, 36))
    channels = layers.network.tensors[image].shape[3]
    for _ in range(2):
        affine, weights = layers.affine(image, 9, channels), layers.weights(1, 3, 3, channels)
        padding = layers.pick("SAME", "SAME", "VALID") if min(layers.network.tensors[image].shape[1:3]) > 3 else "SAME"
        image = layers.network.depthwise_conv2d(image, weights, **affine, padding=padding)
    return layers.case(layers.pointwise(image, 4))


def add(seed: int, *, extreme: bool = False) -> Case:
    """Return the sum or the difference of two convolutions, of any length."""
    layers = MveLayers(seed, extreme=extreme)
    image = layers.input(1, layers.size(1, 3), layers.size(1, 4), layers.size(1, 9))
    channels = layers.size(1, 20)
    first, second = layers.pointwise(image, channels), layers.pointwise(image, channels)
    name, scale = layers.pick("ADD", "ADD", "SUB"), float(np.float32(layers.random.uniform(0.02, 0.2)))
    activation = layers.pick("NONE", "RELU", "RELU6")
    affine = {"scale": scale, "zero_point": layers.zero_point()}
    return layers.case(layers.network.binary(name, first, second, activation=activation, **affine))


KINDS: dict[str, Callable[..., Case]] = {
    "CONV_2D": conv2d, "CONV_2D 1x1": pointwise, "CONV_2D small": small_windows, "CONV_2D long": long_rows,
    "FULLY_CONNECTED": fully_connected, "DEPTHWISE_CONV_2D": depthwise, "DEPTHWISE_CONV_2D 3x3": depthwise_planes,
    "ADD": add, "POOL_2D": pool,
}  # fmt: skip
