"""Networks of uint8: the drawn networks of int8 with every quantised tensor higher by 128, and some of their own."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from tflite.BuiltinOperator import BuiltinOperator
from tflite.TensorType import TensorType

from support.drawing import Array, Case
from support.near_ties import near_ties, varied
from support.tflite_builder import Network
from support.tflite_copy import copy_of

OFFSET = 128

WEIGHTED = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")
"""Operators whose weights have a zero point of their own."""


def unsigned(case: Case, random: np.random.Generator) -> Case:
    """Return ``case`` with uint8 instead of int8; weights get any zero point, or one without which they fit in int8."""
    net = copy_of(case.model)
    for tensor in net.tensors:
        if tensor.type == TensorType.INT8 and tensor.scales:
            tensor.type = TensorType.UINT8
            tensor.scales = tensor.scales[:1]
            tensor.zero_points = [(tensor.zero_points or [0])[0] + OFFSET]
            tensor.content = (np.frombuffer(tensor.content, np.uint8) ^ np.uint8(OFFSET)).tobytes()
    codes = {getattr(BuiltinOperator, name) for name in WEIGHTED}
    for operator in net.operators:
        if operator.code in codes:
            weights = net.tensors[operator.inputs[1]]
            zero_point = int(random.integers(0, 256))
            weights.zero_points = [zero_point]
            if random.random() < 0.25:
                ends = max(0, zero_point - OFFSET), min(256, zero_point + OFFSET)
                weights.content = random.integers(*ends, len(weights.content)).astype(np.uint8).tobytes()
            if len(operator.inputs) < 3 and operator.code == BuiltinOperator.CONV_2D:  # LiteRT refuses it
                bias = np.zeros(weights.shape[0], np.int32)
                operator.inputs.append(net.constant(bias))
    inputs = tuple(
        value.view(np.uint8) ^ np.uint8(OFFSET) if net.tensors[index].type == TensorType.UINT8 else value
        for index, value in zip(net.inputs, case.inputs, strict=True)
    )
    return Case(net.build(net.outputs), inputs)


def _data(random: np.random.Generator, *shape: int) -> Array:
    return random.integers(0, 256, shape).astype(np.uint8)


def _scale(random: np.random.Generator) -> float:
    return float(np.float32(random.uniform(0.004, 0.5)))


def _ties(operator: str) -> Callable[[np.random.Generator], Case]:
    def make(random: np.random.Generator) -> Case:
        case = near_ties(operator, "int8", random)
        return unsigned(Case(case.model, varied(operator, case, random)), random)

    return make


def _concatenation(random: np.random.Generator) -> Case:
    """Inputs of several scales; the ties of some are exact."""
    net, size = Network(), int(random.integers(8, 40))
    exact = bool(random.integers(0, 2))
    scales = [0.25 if exact else _scale(random) for _ in range(3)]
    inputs = [net.input((1, size), scale, int(random.integers(0, 256)), dtype="uint8") for scale in scales]
    scale = 0.5 if exact else _scale(random)
    output = net.activation((1, 3 * size), scale, int(random.integers(0, 256)), dtype="uint8")
    net.operator("CONCATENATION", inputs, output, "ConcatenationOptions", Axis=1)
    return Case(net.build(), tuple(_data(random, 1, size) for _ in inputs))


def _resize(random: np.random.Generator) -> Case:
    """Sizes that differ by powers of two."""
    net, sizes = Network(), [int(size) for size in random.integers(1, 7, 2)]
    factors = [2 ** int(exponent) for exponent in random.integers(0, 5, 2)]
    corners, half = [(True, False), (False, True), (False, False)][int(random.integers(0, 3))]
    wanted = [
        (size - 1) * factor + 1 if corners else size * factor for size, factor in zip(sizes, factors, strict=True)
    ]
    image = net.input((1, *sizes, 2), 0.1, 3, dtype="uint8")
    output = net.activation((1, *wanted, 2), 0.1, 3, dtype="uint8")
    options = {"AlignCorners": corners, "HalfPixelCenters": half}
    net.operator("RESIZE_BILINEAR", [image, net.integers(wanted)], output, "ResizeBilinearOptions", **options)
    return Case(net.build(), (_data(random, 1, *sizes, 2),))


def _mean(random: np.random.Generator) -> Case:
    """The mean of all pixels, for which LiteRT has a function of its own."""
    net, shape = Network(), tuple(int(size) for size in random.integers(1, 9, 3))
    image = net.input((1, *shape), _scale(random), int(random.integers(0, 256)), dtype="uint8")
    output = net.activation((1, 1, 1, shape[2]), _scale(random), int(random.integers(0, 256)), dtype="uint8")
    net.operator("MEAN", [image, net.integers([1, 2])], output, "ReducerOptions", KeepDims=True)
    return Case(net.build(), (_data(random, 1, *shape),))


def _network(random: np.random.Generator) -> Case:
    """A small network with layers of all kinds, from uint8 to uint8."""
    net = Network()
    image = net.input((1, 9, 9, 3), 0.02, 120, name="image", dtype="uint8")

    def parameters(channels: int, *shape: int) -> tuple[int, int]:
        data = random.integers(60, 190, shape).astype(np.uint8)
        return (
            net.tensor(shape, "uint8", data=data, scales=[0.01], zero_points=[131]),
            net.constant(random.integers(-900, 900, channels).astype(np.int32)),
        )

    x = net.activation((1, 5, 5, 8), 0.08, 128, dtype="uint8")
    options = {"StrideH": 2, "StrideW": 2, "DilationHFactor": 1, "DilationWFactor": 1, "Padding": 0}
    net.operator("CONV_2D", [image, *parameters(8, 8, 3, 3, 3)], x, "Conv2DOptions", **options)
    y = net.activation((1, 5, 5, 8), 0.05, 0, dtype="uint8")
    options |= {"StrideH": 1, "StrideW": 1, "DepthMultiplier": 1, "FusedActivationFunction": 3}
    net.operator("DEPTHWISE_CONV_2D", [x, *parameters(8, 1, 3, 3, 8)], y, "DepthwiseConv2DOptions", **options)
    z = net.activation((1, 5, 5, 8), 0.1, 100, dtype="uint8")
    net.operator("ADD", [x, y], z, "AddOptions")
    pool = {"FilterHeight": 5, "FilterWidth": 5, "StrideH": 1, "StrideW": 1, "Padding": 1}
    mean = net.activation((1, 1, 1, 8), 0.1, 100, dtype="uint8")
    net.operator("AVERAGE_POOL_2D", [z], mean, "Pool2DOptions", **pool)
    scores = net.activation((1, 4), 0.05, 90, dtype="uint8")
    net.operator("FULLY_CONNECTED", [mean, *parameters(4, 4, 8)], scores, "FullyConnectedOptions")
    shares = net.activation((1, 4), 1 / 256, 0, name="shares", dtype="uint8")
    net.operator("SOFTMAX", [scores], shares, "SoftmaxOptions", Beta=1.0)
    return Case(net.build([shares]), (_data(random, 1, 9, 9, 3),))


def _convolution(depth: int, filter_size: int, channels: int, image: int, stride: int = 1) -> Case:
    """A CONV_2D whose weights have a zero point and, as the converter writes them, none is 0."""
    random, net = np.random.default_rng(depth), Network()
    source = net.input((1, image, image, depth), 0.02, 122, dtype="uint8")
    spread = 127 if depth < 100 else 20
    shape = (channels, filter_size, filter_size, depth)
    weights = random.integers(128 - spread, 128 + spread, shape).astype(np.uint8)
    weights[0, 0, 0, :2] = 1, 255
    parameters = net.tensor(shape, "uint8", data=weights, scales=[0.003], zero_points=[121])
    size = -(-image // stride)
    scale = float(np.float32(1e-4 * spread * filter_size * np.sqrt(depth)))
    output = net.activation((1, size, size, channels), scale, 120, dtype="uint8")
    bias = net.constant(random.integers(-500, 500, channels).astype(np.int32))
    options = {"StrideH": stride, "StrideW": stride, "DilationHFactor": 1, "DilationWFactor": 1, "Padding": 0}
    net.operator("CONV_2D", [source, parameters, bias], output, "Conv2DOptions", **options)
    return Case(net.build(), (_data(random, 1, image, image, depth),))


def dsp_convolutions() -> list[Case]:
    """Convolutions for cores with DSP: of one pixel and several, any number of channels, one and two groups of sums."""
    return [
        _convolution(8, 1, 5, 5), _convolution(300, 1, 6, 2), _convolution(1100, 1, 4, 1), _convolution(3, 3, 8, 7, 2),
        _convolution(12, 3, 7, 5), _convolution(5, 1, 4, 4),
    ]  # fmt: skip


OWN: Mapping[str, Callable[[np.random.Generator], Case]] = {
    "network": _network,
    "CONCATENATION of several scales": _concatenation,
    "MEAN of images": _mean,
    "RESIZE_BILINEAR by powers of two": _resize,
    **{f"{operator} near ties": _ties(operator) for operator in WEIGHTED},
}
"""Networks that only uint8 has."""


def own(kind: str, count: int) -> Iterator[Case]:
    """Yield ``count`` networks of ``kind``, always the same."""
    random = np.random.default_rng(8)
    return (OWN[kind](random) for _ in range(count))
