"""Networks with int8 weights over float32 (dynamic range quantisation), whose reference is LiteRT."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from tflite.TensorType import TensorType

from mlfbuild.native.graph.bases.window import output_size
from support.drawing import Array, Case
from support.tflite_builder import Network

Random = np.random.Generator


def _numbers(random: Random, *shape: int) -> Array:
    """Return float32 numbers; rows that are 0, of one sign, or at halves of steps, so that their rounding matters."""
    found = (random.normal(size=shape) * random.choice([1e-3, 1.0, 50.0])).astype(np.float32)
    for row in found.reshape(shape[0], -1):
        kind = random.integers(0, 6)
        if kind == 0:
            row[:] = 0
        elif kind == 1:
            row[:] = np.abs(row)
        elif kind == 2:
            row[:] = -np.abs(row)
        elif kind == 3:
            row[:] = random.integers(-254, 255, row.shape) * np.float32(0.5)
            row[0] = random.choice([-127, 127])
        elif kind == 4:
            row[:] = random.integers(-100, 400, row.shape) * np.float32(0.5)
            row[:1], row[-1:] = -51, 204  # a range of 255, and numbers halfway between two steps
    return found


def _weights(net: Network, random: Random, *shape: int, axis: int, scales: str, int4: bool = False) -> int:
    count = shape[axis] if scales != "one" else 1
    given = random.uniform(1e-3, 0.05, count).astype(np.float32)
    if scales == "equal":
        given[:] = given[0]
    limit = 8 if int4 else 128
    data = random.integers(1 - limit, limit, shape).astype(np.int8)
    tensor = net.tensor(
        shape, "int8", data=data, scales=given.tolist(), zero_points=[0] * count, axis=axis if count > 1 else 0
    )
    if int4:
        pairs = np.append(data.reshape(-1), [0] * (data.size % 2)).astype(np.int8).reshape(-1, 2)
        net.tensors[tensor].type = TensorType.INT4
        net.tensors[tensor].content = ((pairs[:, 0] & 15) | (pairs[:, 1] << 4)).astype(np.uint8).tobytes()
    return tensor


def _bias(net: Network, random: Random, channels: int) -> int:
    return net.constant(random.normal(size=channels).astype(np.float32))


def _dense(asymmetric: bool, *, int4: bool = False) -> Callable[[Random], Case]:
    def make(random: Random) -> Case:
        net, rows = Network(), int(random.integers(1, 5))
        depth, channels = (int(size) for size in random.integers(1, (150, 14)))
        source = net.input((rows, depth))
        scales = str(random.choice(["one", "each"]))
        inputs = [source, _weights(net, random, channels, depth, axis=0, scales=scales, int4=int4)]
        if random.random() < 0.7:
            inputs.append(_bias(net, random, channels))
        options = {"AsymmetricQuantizeInputs": asymmetric, "FusedActivationFunction": int(random.choice([0, 1, 3]))}
        net.operator("FULLY_CONNECTED", inputs, net.activation((rows, channels)), "FullyConnectedOptions", **options)
        return Case(net.build(), (_numbers(random, rows, depth),))

    return make


def _product(random: Random) -> Case:
    """A BATCH_MATMUL by a constant matrix."""
    net, adjoint = Network(), bool(random.integers(0, 2))
    shape = [int(size) for size in random.integers(1, (3, 4, 40))]
    columns = int(random.integers(1, 9))
    matrix = (*([1] if random.random() < 0.5 else []), *((columns, shape[2]) if adjoint else (shape[2], columns)))
    source, scales = net.input(shape), str(random.choice(["one", "each"]))
    weights = _weights(net, random, *matrix, axis=len(matrix) - (2 if adjoint else 1), scales=scales)
    options = {"AdjY": adjoint, "AsymmetricQuantizeInputs": bool(random.integers(0, 2))}
    output = net.activation((*shape[:2], columns))
    net.operator("BATCH_MATMUL", [source, weights], output, "BatchMatMulOptions", **options)
    return Case(net.build(), (_numbers(random, *shape),))


def blockwise(random: Random) -> Case:
    """A FULLY_CONNECTED of int4 with a scale for each block of weights."""
    net, rows, channels = Network(), int(random.integers(1, 4)), int(random.integers(4, 11))
    size, blocks = int(random.choice([32, 64])), int(random.integers(1, 4))
    source = net.input((rows, blocks * size))
    weights = _weights(net, random, channels, blocks * size, axis=0, scales="one", int4=True)
    net.tensors[weights].scales, net.tensors[weights].zero_points = [], []
    scales = random.uniform(1e-3, 0.05, (channels, blocks)).astype(np.float16)
    net.tensors[weights].blocks = (net.tensor(scales.shape, "float16", data=scales), -1, size)
    inputs = [source, weights, *([_bias(net, random, channels)] if random.random() < 0.7 else [])]
    net.operator("FULLY_CONNECTED", inputs, net.activation((rows, channels)), "FullyConnectedOptions")
    return Case(net.build(), (_numbers(random, rows, blocks * size),))


def _convolved(
    net: Network, random: Random, source: int, depth: int, channels: int, scales: str, *, int4: bool = False
) -> int:
    """Add a CONV_2D, or with 0 ``channels`` a DEPTHWISE_CONV_2D."""
    batches, *sizes, _ = net.tensors[source].shape
    filter_size, stride, dilation = ([int(size) for size in random.integers(1, most, 2)] for most in (4, 3, 3))
    same = bool(random.integers(0, 2)) or any(
        (tap - 1) * step + 1 > size for tap, step, size in zip(filter_size, dilation, sizes, strict=True)
    )
    wanted = [output_size(*each, same=same) for each in zip(sizes, filter_size, stride, dilation, strict=True)]
    options: dict[str, Any] = {
        "StrideH": stride[0], "StrideW": stride[1], "DilationHFactor": dilation[0], "DilationWFactor": dilation[1],
        "Padding": int(not same), "FusedActivationFunction": int(random.choice([0, 1, 2])),
    }  # fmt: skip
    if channels:
        weights = _weights(net, random, channels, *filter_size, depth, axis=0, scales=scales, int4=int4)
        output = net.activation((batches, *wanted, channels))
        inputs = [source, weights, _bias(net, random, channels)]
        return net.operator("CONV_2D", inputs, output, "Conv2DOptions", **options)
    multiplier = int(random.integers(1, 3))
    channels = depth * multiplier
    weights = _weights(net, random, 1, *filter_size, channels, axis=3, scales=scales)
    output = net.activation((batches, *wanted, channels))
    inputs = [source, weights, *([_bias(net, random, channels)] if random.random() < 0.7 else [])]
    return net.operator("DEPTHWISE_CONV_2D", inputs, output, "DepthwiseConv2DOptions",
                        DepthMultiplier=multiplier, **options)  # fmt: skip


def _image(scales: str, *, depthwise: bool = False, int4: bool = False) -> Callable[[Random], Case]:
    def make(random: Random) -> Case:
        net, shape = Network(), [int(size) for size in random.integers((1, 3, 3, 2), (3, 9, 9, 9))]
        channels = 0 if depthwise else int(random.integers(2, 10))
        _convolved(net, random, net.input(shape), shape[3], channels, scales, int4=int4)
        return Case(net.build([len(net.tensors) - 1]), (_numbers(random, *shape),))

    return make


def network(random: Random) -> Case:
    """Layers of all kinds; two of them read one tensor."""
    net = Network()
    image = net.input((1, 12, 12, 3), name="image")
    x = _convolved(net, random, image, 3, 8, "each")
    y = _convolved(net, random, x, 8, 0, "each")
    pooled = net.pool2d("MAX", y, (2, 2)) if min(net.tensors[y].shape[1:3]) > 1 else y
    shape = net.tensors[pooled].shape
    first = _convolved(net, random, pooled, shape[3], 6, "one")
    second = _convolved(net, random, pooled, shape[3], 6, "one")
    size = int(np.prod(net.tensors[first].shape))
    flat = net.reshape(first, (1, size))
    hidden = net.activation((1, 16))
    weights = _weights(net, random, 16, size, axis=0, scales="each")
    net.operator("FULLY_CONNECTED", [flat, weights], hidden, "FullyConnectedOptions", AsymmetricQuantizeInputs=True)
    scores = net.activation((1, 5))
    last = [_weights(net, random, 5, 16, axis=0, scales="one"), _bias(net, random, 5)]
    net.operator("FULLY_CONNECTED", [hidden, *last], scores, "FullyConnectedOptions")
    return Case(net.build([scores, second]), (_numbers(random, 1, 12, 12, 3),))


BLOCKWISE = "FULLY_CONNECTED in blocks"
"""LiteRT has only one kernel for this kind, which is not in its set of reference kernels."""
KINDS: Mapping[str, Callable[[Random], Case]] = {
    "FULLY_CONNECTED": _dense(False), "FULLY_CONNECTED asymmetric": _dense(True),
    "FULLY_CONNECTED int4": _dense(True, int4=True), "CONV_2D": _image("one"), "CONV_2D per channel": _image("each"),
    "CONV_2D of equal scales": _image("equal"), "CONV_2D int4": _image("each", int4=True),
    "DEPTHWISE_CONV_2D": _image("each", depthwise=True), "BATCH_MATMUL": _product, "network": network,
    BLOCKWISE: blockwise,
}  # fmt: skip


def hybrid(kind: str, count: int) -> Iterator[Case]:
    """Yield ``count`` networks of ``kind``, always the same."""
    random = np.random.default_rng(sum(kind.encode()))
    return (KINDS[kind](random) for _ in range(count))
