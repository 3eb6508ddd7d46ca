"""Layers of which most sums are near a tie of the rounding: a multiplier that is off by one bit changes outputs."""

import numpy as np

from support.drawing import Array, Case
from support.tflite_builder import Network

OPERATORS = ("BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")

_CHANNELS = 64
_LARGEST = 1 << 28
"""About the largest sum: far from 2**31, and so large that the last bits of a multiplier matter."""


def near_ties(operator: str, dtype: str, random: np.random.Generator) -> Case:
    """Return a layer of int8 or int16 whose biases (or constant products) are ties; inputs add little to them."""
    source, weight = (float(np.float32(scale)) for scale in random.uniform(0.002, 0.02, 2))
    greatest = int(np.iinfo(dtype).max)
    largest = _LARGEST >> (2 if operator == "BATCH_MATMUL" else 0)  # fewer products
    output = float(np.float32(source * weight * largest / greatest * random.uniform(1, 1.5)))
    steps = np.linspace(-0.9 * greatest, 0.9 * greatest, _CHANNELS).round() / 1.5
    sums: Array = ((steps.round() + 0.5) * output / (source * weight)).round().astype(np.int64)
    if operator == "BATCH_MATMUL":
        return _products(sums, dtype, (source, weight, output))
    net, affine = Network(), {"scale": output, "dtype": dtype}
    weights = random.choice(np.array([-1, 0, 1], np.int8), (_CHANNELS, 4))
    # Sums of int16 have 32 bits if the bias has, and then a multiplier of 31 bits instead of 15.
    narrow = dtype == "int8" or (operator in {"CONV_2D", "FULLY_CONNECTED"} and random.random() < 0.5)
    layer = {"bias": sums.astype("int32" if narrow else "int64"), "weight_scales": [weight]}
    depth = _CHANNELS if operator == "DEPTHWISE_CONV_2D" else 4
    shape = (16, depth) if operator == "FULLY_CONNECTED" else (1, 4, 4, depth)
    image = net.input(shape, source, dtype=dtype)
    if operator == "FULLY_CONNECTED":
        net.fully_connected(image, weights, **layer, **affine)
    elif operator == "CONV_2D":
        net.conv2d(image, weights.reshape(_CHANNELS, 1, 1, 4), **layer, **affine)
    elif operator == "TRANSPOSE_CONV":
        net.transpose_conv(image, (4, 4), weights.reshape(_CHANNELS, 1, 1, 4), **layer, **affine)
    else:
        net.depthwise_conv2d(image, np.ones((1, 1, 1, _CHANNELS), np.int8), **layer, **affine)
    return Case(net.build(), (np.zeros(shape, dtype),))


def varied(operator: str, case: Case, random: np.random.Generator) -> tuple[Array, ...]:
    """Return inputs that add up to some hundreds to the sums."""
    first, *others = (value.copy() for value in case.inputs)
    if operator == "BATCH_MATMUL":
        first[:, -1] = random.integers(-128, 128, len(first))
    else:
        first[...] = random.integers(-128, 128, first.shape)
    return first, *others


def _products(sums: Array, dtype: str, scales: tuple[float, float, float]) -> Case:
    """The sums as products: of the greatest value with as many of its kind as fit, and with the rest."""
    greatest = int(np.iinfo(dtype).max)
    depth = int(np.abs(sums).max()) // greatest**2 + 4
    first, second = np.full((16, depth), greatest, dtype), np.zeros((depth, len(sums)), dtype)
    first[:, -2], second[-1] = 1, 1
    for column, total in enumerate(sums):
        sign = -1 if total < 0 else 1
        whole, rest = divmod(abs(int(total)), greatest)
        count, more = divmod(whole, greatest)
        second[:count, column] = sign * greatest
        second[-3:-1, column] = sign * more, sign * rest
    net = Network()
    operands = [
        net.input(value.shape, scale, dtype=dtype) for value, scale in zip((first, second), scales, strict=False)
    ]
    output = net.activation((16, len(sums)), scales[2], dtype=dtype)
    net.operator("BATCH_MATMUL", operands, output, "BatchMatMulOptions", AdjX=False, AdjY=False)
    return Case(net.build(), (first, second))
