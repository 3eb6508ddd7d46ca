"""Small float networks in both formats, and data to calibrate them with."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
from onnx import helper

from support.onnx_models import model as onnx_model
from support.tflite_builder import Network

SHAPE = (1, 8, 8, 3)


def _weights(random: np.random.Generator, *shape: int) -> npt.NDArray[np.float32]:
    return (random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def float_tflite(seed: int = 0) -> bytes:
    """Return a network of convolutions, a sum, a pool and a classifier; the file has no signature."""
    random = np.random.default_rng(seed)
    net = Network()
    image = net.input(SHAPE)
    first = net.conv2d(image, _weights(random, 8, 3, 3, 3), bias=_weights(random, 8), padding="SAME", activation="RELU")
    second = net.depthwise_conv2d(first, _weights(random, 1, 3, 3, 8), bias=_weights(random, 8), padding="SAME")
    pooled = net.pool2d("AVERAGE", net.add(first, second), (8, 8))
    logits = net.fully_connected(net.reshape(pooled, (1, 8)), _weights(random, 4, 8), bias=_weights(random, 4))
    return net.build([net.softmax(logits)])


def float_onnx(seed: int = 0) -> bytes:
    """Return a network with a batch normalisation, whose batch has no fixed size and whose nodes have no names."""
    random = np.random.default_rng(seed)
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["conv"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["conv", "g", "b", "m", "v"], ["normal"]),
        helper.make_node("Relu", ["normal"], ["relu"]),
        helper.make_node("Conv", ["relu", "d"], ["deep"], group=8, pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["deep", "relu"], ["sum"]),
        helper.make_node("GlobalAveragePool", ["sum"], ["pool"]),
        helper.make_node("Flatten", ["pool"], ["flat"]),
        helper.make_node("Gemm", ["flat", "k", "c"], ["logits"], transB=1),
        helper.make_node("Softmax", ["logits"], ["y"]),
    ]
    constants = {"w": _weights(random, 8, 3, 3, 3), "d": _weights(random, 8, 1, 3, 3), "k": _weights(random, 4, 8)}
    constants |= {name: np.abs(_weights(random, 8)) + 0.5 for name in "gbmv"}
    constants["c"] = _weights(random, 4)
    return onnx_model(nodes, [("x", ("n", 3, 8, 8))], [("y", ("n", 4))], constants)


def calibration(path: Path, cases: int = 100, *, shape: tuple[int, ...] = SHAPE, seed: int = 0) -> Path:
    """Write ``cases`` of numbers between 0 and 1 to ``path``, and return it."""
    np.savez(path, in0=np.random.default_rng(seed).random((cases, *shape[1:]), np.float32))
    return path


def hostile_tflite(factor: float = 3000, seed: int = 0) -> bytes:
    """Return a classifier in which one channel of t3 is ``factor`` times as large as the others, and weighs as little.

    One scale for all channels of t3 hides the others.
    """
    random = np.random.default_rng(seed)
    net = Network()
    first, second = _weights(random, 8, 3, 3, 3), _weights(random, 1, 3, 3, 8) * 4
    first[0], second[..., 0] = np.abs(first[0]) * factor, second[..., 0] / factor
    image = net.conv2d(net.input(SHAPE), first, bias=_weights(random, 8), padding="SAME", activation="RELU")
    deep = net.depthwise_conv2d(image, second, bias=_weights(random, 8), padding="SAME")
    pooled = net.reshape(net.pool2d("AVERAGE", deep, (8, 8)), (1, 8))
    return net.build([net.softmax(net.fully_connected(pooled, _weights(random, 4, 8), bias=_weights(random, 4)))])
