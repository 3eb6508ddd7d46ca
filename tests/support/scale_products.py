"""Networks whose every output depends on how the product of two scales is rounded."""

import numpy as np

from support.drawing import Array, Case
from support.tflite_builder import Network

SOURCE, WEIGHTS = (float(np.float32(scale)) for scale in (0.010724610649049282, 0.01905881054699421))
OUTPUT = float(np.float32(SOURCE) * np.float32(WEIGHTS)) * 2**20
"""The multiplier is 2**-20 if the product of the scales is rounded to float32, and a little less otherwise."""

TODAY = np.arange(30, 90)
"""What the networks output: sums of (k + 0.5) * 2**20 come to a little less than k + 0.5.

Below 30, the first of the two roundings makes them ties again.
"""
OLDER = TODAY + 1
"""The same with the older multiplier: ties are rounded up."""

SUMS: Array = (2 * TODAY + 1) << 19


def networks() -> dict[str, Case]:
    """Return each network by a name for it."""
    return {
        "fully_connected_int8": _fully_connected("int8", "int32"),
        "fully_connected_int16_wide": _fully_connected("int16", "int64"),
        "fully_connected_int16_narrow": _fully_connected("int16", "int32"),
        "batch_matmul_int8": _batch_matmul("int8"),
        "batch_matmul_int16": _batch_matmul("int16"),
        "svdf": _svdf(),
    }


def _fully_connected(dtype: str, bias_type: str) -> Case:
    net = Network()
    source = net.input((1, 4), SOURCE, dtype=dtype)
    weights, bias = np.zeros((len(SUMS), 4), np.int8), SUMS.astype(bias_type)
    net.fully_connected(source, weights, bias, weight_scales=[WEIGHTS], scale=OUTPUT, dtype=dtype)
    return Case(net.build(), (np.zeros((1, 4), dtype),))


def _batch_matmul(dtype: str) -> Case:
    """The sums as products: of the greatest value with as many of its kind as fit, and of 1 with the rest."""
    greatest = int(np.iinfo(dtype).max)
    depth = int(SUMS.max()) // greatest**2 + 3
    first, second = np.full((1, depth), greatest, dtype), np.zeros((depth, len(SUMS)), dtype)
    first[0, -1] = 1
    for column, total in enumerate(SUMS):
        whole, second[-1, column] = divmod(int(total), greatest)
        count, second[depth - 2, column] = divmod(whole, greatest)
        second[:count, column] = greatest
    net = Network()
    operands = [net.input(value.shape, scale, dtype=dtype) for value, scale in ((first, SOURCE), (second, WEIGHTS))]
    output = net.activation((1, len(SUMS)), OUTPUT, dtype=dtype)
    net.operator("BATCH_MATMUL", operands, output, "BatchMatMulOptions", AdjX=False, AdjY=False)
    return Case(net.build(), (first, second))


def _svdf() -> Case:
    """Features of 0, so that the sums are the biases."""
    net, count = Network(), len(SUMS)
    source, feature = net.input((1, 2), 0.1), net.constant(np.zeros((count, 2), np.int8), 0.01)
    time, bias = (
        net.constant(np.zeros((count, 2), np.int16), WEIGHTS),
        net.constant(SUMS.astype(np.int32), OUTPUT / 2**20),
    )
    state = net.activation((1, 2 * count), SOURCE, dtype="int16")
    net.tensors[state].is_variable = True
    net.operator("SVDF", [source, feature, time, bias, state], net.activation((1, count), OUTPUT), "SVDFOptions",
                 Rank=1, FusedActivationFunction=1)  # fmt: skip
    return Case(net.build(), (np.zeros((1, 2), np.int8),))
