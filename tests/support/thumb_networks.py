"""Networks for the limits of the int8 kernels for cores without SIMD: packed products and requantisation."""

from typing import Any

import numpy as np
import numpy.typing as npt

from support.drawing import Case
from support.dsp_networks import Layers
from support.tflite_builder import Network

Array = npt.NDArray[Any]

_MAGNITUDES = np.array(
    [
        (127, 127, 1, 0),  # 255: the products of four inputs fit in 16 bits
        (1, 0, 127, 127),
        (64, 64, 64, 63),
        (127, 127, 1, 1),  # 256: only those of two do
        (127, 127, 127, 127),
        (0, 1, 127, 127),
    ]
)
_SIGNS = np.array([[1 - 2 * (bits >> at & 1) for at in range(4)] for bits in range(16)])
_ENDS = np.array([[(-128, 127)[bits >> at & 1] for at in range(4)] for bits in range(16)], np.int8)
"""All combinations of the least and the greatest input."""


def packed_limits(seed: int) -> Case:
    """Return 1x1 convolutions whose products reach the ends of 16 bits in both halves of a word."""
    random = np.random.default_rng(seed)
    groups = int(random.integers(1, 4))
    network = Network()
    pixels = int(random.integers(60, 68))
    channels = int(random.integers(7, 16))
    rows = [random.permuted(_MAGNITUDES[random.integers(6, size=groups)], axis=1) for _ in range(channels)]
    signs = _SIGNS[random.integers(16, size=(channels, groups))]
    weights = (np.stack(rows) * signs).reshape(channels, 1, 1, -1).astype(np.int8)
    value = _ENDS[random.integers(16, size=(pixels, groups))].reshape(1, 1, pixels, -1)
    image = network.input(value.shape, 0.05, int(random.integers(-128, 128)))
    factor = 1 / (600 * groups)
    output = network.conv2d(
        image, weights, None, weight_scales=[factor * float(each) for each in random.uniform(0.5, 1, channels)],
        scale=0.05, zero_point=int(random.choice([-128, 0, 5])), activation=str(random.choice(["NONE", "RELU"])),
    )  # fmt: skip
    return Case(network.build(outputs=[output]), (value,))


def depthwise_limits(seed: int) -> Case:
    """Return a depthwise convolution whose products reach the ends of 16 bits in both halves of a word."""
    random = np.random.default_rng(seed)
    network = Network()
    shape = (1, int(random.integers(3, 9)), int(random.integers(3, 12)), int(random.integers(1, 6)))
    value = random.choice(np.array([-128, 127], np.int8), shape)
    sums = np.array([(127, 127, 1), (1, 127, 127), (85, 85, 85), (127, 127, 2), (127, 127, 127), (127, 2, 127)])
    taps = sums[random.integers(6, size=(shape[3], 3))] * random.choice([-1, 1], (shape[3], 3, 3))
    axes = (2, 1, 0) if random.integers(2) else (1, 2, 0)
    weights = taps.transpose(axes)[None].astype(np.int8)
    image = network.input(shape, 0.05, int(random.integers(-128, 128)))
    scales = [float(each) / 600 for each in random.uniform(0.2, 1, shape[3])]
    output = network.depthwise_conv2d(
        image, weights, None, weight_scales=scales, scale=0.05, zero_point=int(random.choice([-128, 0, 5])),
        stride=(int(random.integers(1, 3)), int(random.integers(1, 3))), padding=str(random.choice(["SAME", "VALID"])),
        activation=str(random.choice(["NONE", "RELU"])),
    )  # fmt: skip
    return Case(network.build(outputs=[output]), (value,))


def requantisation(seed: int) -> Case:
    """Return a 1x1 convolution with all inputs and sums up to the limits of the kernels, 2**20 and 2**23."""
    random = np.random.default_rng(seed)
    network = Network()
    channels = int(random.integers(4, 12))
    value = np.arange(-128, 128, dtype=np.int8).reshape(1, 1, 256, 1)
    image = network.input(value.shape, 0.5, 0)
    exponents = random.uniform(1.1, random.choice([11, 14]), channels)
    weights = random.integers(1, 128, channels) * random.choice([-1, 1], channels)
    limit = np.minimum(2.0**exponents * 140, (1 << int(random.choice([20, 23]))) - 128 * 128)
    bias = (random.uniform(-1, 1, channels) * limit).astype(np.int32)
    relu = bool(random.integers(2))
    scales = [float(2**-each) for each in exponents]
    output = network.conv2d(
        image, weights.astype(np.int8).reshape(-1, 1, 1, 1), bias, weight_scales=scales,
        scale=0.5, zero_point=-128 if relu else int(random.integers(-128, 128)), activation="RELU" if relu else "NONE",
    )  # fmt: skip
    return Case(network.build(outputs=[output]), (value,))


def unpacked(seed: int, *, extreme: bool = False) -> Case:
    """Return a convolution with so many inputs that packing them would enlarge the arena."""
    layers = Layers(seed, extreme=extreme)
    image = layers.input(1, layers.size(7, 9), layers.size(7, 9), layers.size(43, 50))
    return layers.case(layers.conv2d(image, layers.size(4, 9), layers.pick((3, 3), (2, 3), (4, 2))))
