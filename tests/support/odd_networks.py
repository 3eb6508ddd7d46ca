"""Hand-written unusual networks, with all combinations of inputs, outputs, constants and aliases."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Activation, DType, Graph, Tensor
from mlfbuild.native.graph.ops import (
    Add,
    AveragePool2D,
    BatchToSpaceNd,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    Dequantize,
    FullyConnected,
    LeakyRelu,
    MaxPool2D,
    Mean,
    MirrorPad,
    Pad,
    PadV2,
    Quantize,
    Relu6,
    ReluN1To1,
    Reshape,
    Softmax,
    SpaceToBatchNd,
    StridedSlice,
    Tile,
    Transpose,
)
from mlfbuild.native.graph.ops.movement.views import Steps
from support.sketch import RANDOM, Sketch


def no_nodes() -> Graph:
    s = Sketch("no_nodes")
    return s.graph([s.tensor("x", 5)], [s.tensor("constant", 7, constant=True), "x"])


def without_elements() -> Graph:
    """Return a network with an input and an output that have no elements, and a constant that is not finite."""
    s = Sketch("without_elements")
    s.node(Add(), s.tensor("x", 2, 3), "x", s.tensor("y", 2, 3))
    s.tensors.append(Tensor("least", (2,), DType.FLOAT32, data=np.array([-np.inf, np.nan], np.float32)))
    return s.graph([s.tensor("e", 0, 3), "x"], ["y", s.tensor("nothing", 2, 0, constant=True), "least"])


def input_is_output() -> Graph:
    s = Sketch("input_is_output")
    s.node(Add(), s.tensor("x", 2, 3), "x", s.tensor("y", 2, 3))
    return s.graph(["x"], ["x", "y"])


def same_output_twice() -> Graph:
    s = Sketch("same_output_twice")
    s.node(Add(), s.tensor("x", 2, 3), "x", s.tensor("y", 2, 3))
    return s.graph(["x"], ["y", "y", "y"])


def output_read_later() -> Graph:
    s = Sketch("output_read_later")
    s.node(Add(), s.tensor("x", 4), "x", s.tensor("early", 4))
    s.node(Add(), "early", "x", s.tensor("middle", 4))
    s.node(Add(), "middle", "early", s.tensor("late", 4))
    return s.graph(["x"], ["late", "early"])


def folded_to_constants() -> Graph:
    s = Sketch("folded_to_constants")
    s.node(Add(), s.tensor("a", 3, constant=True), s.tensor("b", 3, constant=True), s.tensor("sum", 3))
    s.node(Reshape(), "sum", s.tensor("column", 3, 1))
    s.node(Add(), s.tensor("x", 3, 3), "column", s.tensor("y", 3, 3))
    return s.graph(["x"], ["y", "column"])


def no_inputs() -> Graph:
    s = Sketch("no_inputs")
    s.node(Add(), s.tensor("a", 3, constant=True), s.tensor("b", 3, constant=True), s.tensor("sum", 3))
    return s.graph([], ["sum"])


def reshapes() -> Graph:
    """Return reshapes from an input to an output, to and from a tensor in the arena, and between outputs."""
    s = Sketch("reshapes")
    s.node(Reshape(), s.tensor("x", 2, 6), s.tensor("direct", 12))
    s.node(Reshape(), "x", s.tensor("alias", 3, 4))
    s.node(Softmax(), "alias", s.tensor("soft", 3, 4, scale=1 / 256, zero_point=-128))
    s.node(Reshape(), "soft", s.tensor("flat", 12, scale=1 / 256, zero_point=-128))
    s.node(Reshape(), "flat", s.tensor("again", 4, 3, scale=1 / 256, zero_point=-128))
    return s.graph(["x"], ["direct", "flat", "again"])


def in_place_chain() -> Graph:
    """Return ADD, QUANTIZE, SOFTMAX, unpadded pools and depthwise filters, which may all overwrite their input."""
    s = Sketch("in_place_chain")
    s.node(Quantize(), s.real("x", 1, 9, 9, 4), s.tensor("q", 1, 9, 9, 4))
    s.node(Add(), "q", "q", s.tensor("doubled", 1, 9, 9, 4))
    s.node(DepthwiseConv2D(), "doubled", s.weights("w", 1, 2, 3, 4), s.tensor("filtered", 1, 8, 7, 4, scale=1.0))
    s.node(MaxPool2D((3, 2), (1, 2)), "filtered", s.tensor("greatest", 1, 6, 3, 4, scale=1.0))
    s.node(AveragePool2D((2, 2)), "greatest", s.tensor("average", 1, 5, 2, 4, scale=1.0))
    s.node(Quantize(), "average", s.tensor("finer", 1, 5, 2, 4, scale=0.7, zero_point=-9))
    s.node(Softmax(0.3), "finer", s.tensor("soft", 1, 5, 2, 4, scale=1 / 256, zero_point=-128))
    s.node(Dequantize(), "soft", s.real("y", 1, 5, 2, 4))
    return s.graph(["x"], ["y"])


def residual_with_a_broadcast() -> Graph:
    s = Sketch("residual_with_a_broadcast")
    image = s.tensor("x", 2, 4, 5, 6)
    s.node(Add(), image, s.tensor("per_channel", 6, constant=True), s.tensor("biased", 2, 4, 5, 6))
    s.node(Mean((1, 2), keep_dims=True), "biased", s.tensor("mean", 2, 1, 1, 6))
    s.node(Add(Activation.RELU), "mean", "biased", s.tensor("gated", 2, 4, 5, 6))
    s.node(Add(), "gated", "biased", s.tensor("y", 2, 4, 5, 6))
    return s.graph(["x"], ["y"])


def pads_of_all_kinds() -> Graph:
    """Return PADs that a convolution absorbs, that two readers share, with another scale, and of channels."""
    s = Sketch("pads_of_all_kinds")
    paddings = ((0, 0), (1, 0), (2, 1), (0, 0))
    s.node(Pad(paddings), s.tensor("x", 1, 5, 5, 3), s.tensor("p1", 1, 6, 8, 3))
    s.node(Conv2D((2, 1), (1, 2), ((0, 0), (1, 1))), "p1", s.weights("w1", 5, 3, 3, 3),
           s.tensor("c1", 1, 2, 6, 5, scale=2.0))  # fmt: skip
    s.node(Pad(paddings), "x", s.tensor("p2", 1, 6, 8, 3))
    s.node(
        DepthwiseConv2D(depth_multiplier=2), "p2", s.weights("w2", 1, 3, 3, 6), s.tensor("d2", 1, 4, 6, 6, scale=1.5)
    )
    s.node(MaxPool2D((2, 2)), "p2", s.tensor("m2", 1, 5, 7, 3))
    s.node(Pad(paddings), "x", s.tensor("p3", 1, 6, 8, 3, zero_point=-20))
    s.node(Conv2D(), "p3", s.weights("w3", 4, 3, 3, 3), s.tensor("c3", 1, 4, 6, 4, scale=2.0))
    s.node(Pad(((0, 0), (0, 0), (0, 0), (1, 0))), "x", s.tensor("p4", 1, 5, 5, 4))
    s.node(Conv2D(), "p4", s.weights("w4", 4, 1, 1, 4), s.tensor("c4", 1, 5, 5, 4, scale=2.0))
    return s.graph(["x"], ["c1", "d2", "m2", "c3", "c4"])


def pads_with_other_values() -> Graph:
    """Return PADs of rows and columns with values other than zero points, which convolutions cannot absorb."""
    s = Sketch("pads_with_other_values")
    paddings = ((0, 0), (1, 1), (1, 1), (0, 0))
    s.node(PadV2(paddings, 50), s.tensor("x", 1, 3, 3, 2), s.tensor("fifty", 1, 5, 5, 2))
    s.node(Conv2D(), "fifty", s.weights("w1", 4, 3, 3, 2), s.tensor("c1", 1, 3, 3, 4, scale=2.0))
    s.node(PadV2(paddings, 3), "x", s.tensor("zero", 1, 5, 5, 2))
    s.node(Conv2D(), "zero", s.weights("w2", 4, 3, 3, 2), s.tensor("c2", 1, 3, 3, 4, scale=2.0))
    return s.graph(["x"], ["c1", "c2"])


def identities() -> Graph:
    s = Sketch("identities")
    s.node(Quantize(), s.tensor("x", 2, 2), s.tensor("same", 2, 2))
    s.node(Reshape(), "same", s.tensor("shaped", 2, 2))
    s.node(Add(), "shaped", "x", s.tensor("sum", 2, 2))
    s.node(Pad(((0, 0), (0, 0))), "sum", s.tensor("padded", 2, 2))
    s.node(Quantize(), "padded", s.tensor("y", 2, 2))
    s.node(Quantize(), "x", s.tensor("copy", 2, 2))
    return s.graph(["x"], ["y", "copy"])


def dead_branch() -> Graph:
    s = Sketch("dead_branch")
    s.node(Add(), s.tensor("x", 3), "x", s.tensor("y", 3))
    s.node(Add(), "x", "y", s.tensor("unused", 3))
    s.node(Add(), "unused", "y", s.tensor("unused_too", 3))
    return s.graph(["x", s.tensor("ignored", 4)], ["y"])


def sums_beyond_32_bits() -> Graph:
    """Return biases at the limits of int32; sums wrap, as on the hardware of the reference."""
    s = Sketch("sums_beyond_32_bits")
    limits = np.array([2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 0], np.int32)
    s.tensors.append(Tensor("bias", (5,), DType.INT32, None, limits))
    s.node(FullyConnected(), s.tensor("x", 1, 9, zero_point=-128), s.weights("w", 5, 9), "bias",
           s.tensor("y", 1, 5, scale=1e6))  # fmt: skip
    return s.graph(["x"], ["y"])


def bounded() -> Graph:
    """Return RELU_N1_TO_1 and similar operators as clamps and tables; TensorFlow Lite Micro lacks some of them."""
    s = Sketch("bounded")
    s.node(ReluN1To1(), s.tensor("x", 3, 50), s.tensor("clamped", 3, 50))
    s.node(ReluN1To1(), "x", s.tensor("finer", 3, 50, scale=0.009, zero_point=-5))
    s.node(Relu6(), "x", s.tensor("coarser", 3, 50, scale=0.3, zero_point=-128))
    s.node(LeakyRelu(-0.5), "x", s.tensor("folded", 3, 50))
    s.node(ReluN1To1(), s.real("r", 3, 5), s.real("bounded", 3, 5))
    return s.graph(["x", "r"], ["clamped", "finer", "coarser", "folded", "bounded"])


def moved() -> Graph:
    """Return views of inputs, constants, outputs and tensors in the arena, and a TILE, which TFLite Micro lacks."""
    s = Sketch("moved")
    s.node(Tile((2, 1, 3)), s.tensor("x", 3, 4, 5), s.tensor("tiled", 6, 4, 15))
    s.node(Transpose((2, 0, 1)), "tiled", s.tensor("turned", 15, 6, 4))
    s.node(StridedSlice((Steps(14, -3, 5), Steps(1, 2, 3), Steps(0, 1, 4))), "turned", s.tensor("picked", 5, 3, 4))
    s.node(Pad(((0, 0), (1, 1), (0, 0))), "picked", s.tensor("y", 5, 5, 4))
    s.node(Concatenation(1), s.tensor("c", 5, 1, 4, constant=True), "picked", s.tensor("joined", 5, 4, 4))
    s.node(MirrorPad(((2, 1), (0, 0), (3, 3)), symmetric=False), "joined", s.tensor("mirrored", 8, 4, 10))
    s.node(SpaceToBatchNd((2, 3), ((1, 0), (2, 1))), s.tensor("image", 1, 5, 6, 2), s.tensor("batches", 6, 3, 3, 2))
    s.node(BatchToSpaceNd((2, 3), ((0, 1), (1, 2))), "batches", s.tensor("cropped", 1, 5, 6, 2))
    return s.graph(["x", "image"], ["y", "mirrored", "joined", "cropped"])


GRAPHS: tuple[Callable[[], Graph], ...] = (
    no_nodes, without_elements, input_is_output, same_output_twice, output_read_later, folded_to_constants, no_inputs,
    reshapes, in_place_chain, residual_with_a_broadcast, pads_of_all_kinds, pads_with_other_values, identities,
    dead_branch, sums_beyond_32_bits, bounded, moved,
)  # fmt: skip


def values_of(graph: Graph) -> list[npt.NDArray[Any]]:
    """Return a random value for each input of ``graph``."""
    values: list[npt.NDArray[Any]] = []
    for name in graph.inputs:
        tensor = graph.tensor(name)
        if tensor.dtype is DType.FLOAT32:
            values.append(RANDOM.normal(0, 5, tensor.shape).astype(np.float32))
        else:
            values.append(RANDOM.integers(-128, 128, tensor.shape, dtype=np.int8))
    return values
