"""Operators that do not fit their tensors or have invalid attributes: one line with the place, exit code 4."""

from collections.abc import Callable

import numpy as np
import pytest

from support.refusals import Refusal, assert_tflite_refused, invalid
from support.tflite_builder import Network


def split(net: Network, x: int, axis: int) -> None:
    outputs = [net.like(x, (1, 2, 4, 2)), net.like(x, (1, 2, 4, 2))]
    net.many("SPLIT", [net.integers(axis), x], outputs, "SplitOptions", NumSplits=2)


def split_v(net: Network, x: int, sizes: list[int]) -> None:
    outputs = [net.like(x, (1, 1, 4, 2)), net.like(x, (1, 3, 4, 2))]
    net.many("SPLIT_V", [x, net.integers(sizes), net.integers(1)], outputs, "SplitVOptions", NumSplits=2)


def slices(net: Network, x: int, bounds: list[list[int]], **masks: int) -> None:
    attributes = [net.integers(values) for values in bounds]
    net.move("STRIDED_SLICE", x, (1, 1, 1, 1), *attributes, kind="StridedSliceOptions", **masks)


WEIGHTS = np.ones((3, 2, 2, 2), np.float32)


def matmul(net: Network, x: int, shape: tuple[int, ...], result: tuple[int, ...], **options: bool) -> None:
    net.operator("BATCH_MATMUL", [x, net.input(shape)], net.like(x, result), "BatchMatMulOptions", **options)


def scatter(net: Network, x: int, places: list[list[int]], wanted: list[int]) -> None:
    attributes = [net.integers(places)]
    net.move("SCATTER_ND", x, (2, 4, 4, 2), net.integers(wanted), before=attributes, kind="ScatterNdOptions")


def reverse(net: Network, x: int, lengths: list[int], sequence: int = 1, batch: int = 0) -> None:
    net.move("REVERSE_SEQUENCE", x, (1, 4, 4, 2), net.integers(lengths), kind="ReverseSequenceOptions",
             SeqDim=sequence, BatchDim=batch)  # fmt: skip


def without_channels(net: Network, kind: str, image: int, weights: tuple[int, ...]) -> None:
    tensors = [image, net.constant(np.zeros(weights, np.float32)), net.constant(np.zeros(2, np.float32))]
    strides = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
    name = {"Conv2DOptions": "CONV_2D", "DepthwiseConv2DOptions": "DEPTHWISE_CONV_2D"}[kind]
    net.operator(name, tensors, net.activation((1, 4, 4, 2)), kind, **strides)


MISTAKES: dict[str, tuple[Callable[[Network, int], object], Refusal]] = {
    "angles of points with other shapes": (
        lambda net, x: net.binary("ATAN2", x, net.input((4, 2))), invalid("ATAN2 't2'", "'t1' float32[4, 2]"),
    ),
    "int32 to a finer scale": (
        lambda net, _: net.unary("QUANTIZE", net.input((4,), 0.5, dtype="int32"), scale=0.1),
        invalid("QUANTIZE 't2'", "0.5", "0.1"),
    ),
    "int32 with a zero point": (
        lambda net, _: net.unary("QUANTIZE", net.input((4,), 0.5, 3, dtype="int32"), scale=1.0),
        invalid("QUANTIZE 't2'", "'t1' int32[4]", "0"),
    ),
    "slices at positions that are not there": (
        lambda net, x: scatter(net, x, [[2]], [2, 4, 4, 2]), invalid("SCATTER_ND 't3'", "'t1' int32[1, 1]")
    ),
    "more slices than positions": (
        lambda net, x: scatter(net, x, [[0], [1]], [2, 4, 4, 2]), invalid("SCATTER_ND 't3'", "'x'", "2")
    ),
    "slices to another shape": (
        lambda net, x: scatter(net, x, [[0]], [2, 4, 2, 4]),
        invalid("operator 0 (SCATTER_ND) writing 't3'", "[2, 4, 2, 4]"),
    ),
    "sequences longer than the tensor": (
        lambda net, x: reverse(net, x, [5]), invalid("REVERSE_SEQUENCE 't2'", "'t1' int32[1]", "4")
    ),
    "more lengths than sequences": (
        lambda net, x: reverse(net, x, [4, 4]), invalid("REVERSE_SEQUENCE 't2'", "'t1' int32[2]", "1")
    ),
    "sequences along their batch": (
        lambda net, x: reverse(net, x, [1], 0, 0), invalid("REVERSE_SEQUENCE 't2'", "0", "'x'")
    ),
    "concatenation along a dimension that is not there": (
        lambda net, x: net.operator("CONCATENATION", [x, x], net.like(x, (1, 4, 4, 4)), "ConcatenationOptions", Axis=4),
        invalid("operator 0 (CONCATENATION) writing 't1'", "4"),
    ),
    "concatenation to another length": (
        lambda net, x: net.operator("CONCATENATION", [x, x], net.like(x, (1, 4, 4, 5)), "ConcatenationOptions",
                                    Axis=-1),
        invalid("CONCATENATION 't1'", "'t1' float32[1, 4, 4, 5]"),
    ),
    "concatenation of other heights": (
        lambda net, x: net.operator("CONCATENATION", [x, net.input((1, 3, 4, 2))], net.like(x, (1, 4, 4, 4)),
                                    "ConcatenationOptions", Axis=3),
        invalid("CONCATENATION 't2'", "'t1' float32[1, 3, 4, 2]", "'t2' float32[1, 4, 4, 4]"),
    ),
    "split along a dimension that is not there": (
        lambda net, x: split(net, x, -5), invalid("operator 0 (SPLIT) writing 't1'", "-5", "4"),
    ),
    "split along another dimension": (
        lambda net, x: split(net, x, 2), invalid("SPLIT 't1'", "'t1' float32[1, 2, 4, 2]", "'x' float32[1, 4, 4, 2]"),
    ),
    "sizes that the outputs have not": (
        lambda net, x: split_v(net, x, [2, 2]), invalid("operator 0 (SPLIT_V) writing 't1'", "[2, 2]", "[1, 3]"),
    ),
    "another number of pieces than outputs": (
        lambda net, x: net.many("SPLIT", [net.integers(3), x], [net.like(x, (1, 4, 4, 1)) for _ in range(2)],
                                "SplitOptions", NumSplits=4),
        invalid("operator 0 (SPLIT) writing 't2'", "4"),
    ),
    "another number of layers than outputs": (
        lambda net, x: net.many("UNPACK", [x], [net.like(x, (1, 4, 4)) for _ in range(2)], "UnpackOptions", Axis=3,
                                Num=3),
        invalid("operator 0 (UNPACK) writing 't1'", "3", "2"),
    ),
    "another number of layers than inputs": (
        lambda net, x: net.operator("PACK", [x, x], net.like(x, (2, 1, 4, 4, 2)), "PackOptions", ValuesCount=1),
        invalid("operator 0 (PACK) writing 't1'", "2"),
    ),
    "slice beyond the tensor": (
        lambda net, x: net.move("SLICE", x, (1, 4, 2, 2), net.integers([0, 0, 3, 0]), net.integers([1, 4, 2, 2])),
        invalid("SLICE 't3'", "2", "1"),
    ),
    "slice of another rank": (
        lambda net, x: net.move("SLICE", x, (1, 4, 2), net.integers([0, 0, 3]), net.integers([1, 4, 2])),
        invalid("operator 0 (SLICE) writing 't3'", "[0, 0, 3]", "'x' float32[1, 4, 4, 2]"),
    ),
    "stride zero in a slice": (
        lambda net, x: slices(net, x, [[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 1]]),
        invalid("operator 0 (STRIDED_SLICE) writing 't4'", "[1, 0, 1, 1]"),
    ),
    "nothing in a slice": (
        lambda net, x: slices(net, x, [[0, 3, 0, 0], [1, 2, 1, 1], [1, 1, 1, 1]]),
        invalid("STRIDED_SLICE 't4'", "0", "3"),
    ),
    "new axes": (
        lambda net, x: slices(net, x, [[0] * 4, [1] * 4, [1] * 4], NewAxisMask=1),
        (
            ("operator-variant-unsupported", "operator 0 (STRIDED_SLICE) writing 't4'")
        ),
    ),
    "dimension twice in a transposition": (
        lambda net, x: net.move("TRANSPOSE", x, (1, 4, 4, 2), net.integers([0, 1, 1, 3])),
        invalid("TRANSPOSE 't2'", "[0, 1, 1, 3]", "'x' float32[1, 4, 4, 2]"),
    ),
    "squares that do not fit": (
        lambda net, x: net.move("SPACE_TO_DEPTH", x, (1, 1, 1, 18), kind="SpaceToDepthOptions", BlockSize=3),
        invalid("SPACE_TO_DEPTH 't1'", "'x' float32[1, 4, 4, 2]"),
    ),
    "squares of nothing": (
        lambda net, x: net.move("DEPTH_TO_SPACE", x, (1, 4, 4, 2), kind="DepthToSpaceOptions", BlockSize=0),
        invalid("DEPTH_TO_SPACE 't1'", "'t1' float32[1, 4, 4, 2]", "0"),
    ),
    "reversed twice": (
        lambda net, x: net.move("REVERSE_V2", x, (1, 4, 4, 2), net.integers([1, -3]), kind="ReverseV2Options"),
        invalid("REVERSE_V2 't2'", "[1, 1]", "'x' float32[1, 4, 4, 2]"),
    ),
    "filled with many": (
        lambda net, x: net.operator("FILL", [net.integers([1, 4]), x], net.activation((1, 4)), "FillOptions"),
        invalid("FILL 't2'", "'x' float32[1, 4, 4, 2]"),
    ),
    "filled to another shape": (
        lambda net, x: net.operator("FILL", [net.integers([1, 4]), x], net.activation((4, 1)), "FillOptions"),
        invalid("operator 0 (FILL) writing 't2'", "'t2' float32[4, 1]", "[1, 4]"),
    ),
    "repeated zero times": (
        lambda net, x: net.move("TILE", x, (1, 4, 4, 2), net.integers([1, 0, 1, 1])),
        invalid("TILE 't2'", "[1, 0, 1, 1]", "'x' float32[1, 4, 4, 2]"),
    ),
    "repeated to another shape": (
        lambda net, x: net.move("BROADCAST_TO", x, (1, 4, 4, 3), net.integers([1, 4, 4, 3])),
        invalid("BROADCAST_TO 't2'", "'x' float32[1, 4, 4, 2]", "'t2' float32[1, 4, 4, 3]"),
    ),
    "mirrored beyond the tensor": (
        lambda net, x: net.move("MIRROR_PAD", x, (1, 8, 4, 2), net.integers([(0, 0), (4, 0), (0, 0), (0, 0)]),
                                kind="MirrorPadOptions"),
        invalid("MIRROR_PAD 't2'", "((0, 0)", "(4, 0)"),
    ),
    "blocks that do not fit": (
        lambda net, x: net.move("SPACE_TO_BATCH_ND", x, (9, 1, 1, 2), net.integers([3, 3]),
                                net.integers([(0, 0), (0, 2)]), kind="SpaceToBatchNDOptions"),
        invalid("SPACE_TO_BATCH_ND 't3'", "'x' float32[1, 4, 4, 2]", "[(0, 0), (0, 2)]"),
    ),
    "blocks of nothing": (
        lambda net, x: net.move("BATCH_TO_SPACE_ND", x, (1, 4, 4, 2), net.integers([0, 1]),
                                net.integers([(0, 0), (0, 0)]), kind="BatchToSpaceNDOptions"),
        invalid("BATCH_TO_SPACE_ND 't3'", "[0, 1]", "[(0, 0), (0, 0)]"),
    ),
    "margins of one dimension": (
        lambda net, x: net.move("BATCH_TO_SPACE_ND", x, (1, 4, 4, 2), net.integers([1, 1]), net.integers([(0, 0)]),
                                kind="BatchToSpaceNDOptions"),
        invalid("operator 0 (BATCH_TO_SPACE_ND) writing 't3'", "2", "[1, 1]"),
    ),
    "resized to another size": (
        lambda net, x: net.move("RESIZE_BILINEAR", x, (1, 8, 8, 2), net.integers([8, 9]), kind="ResizeBilinearOptions"),
        invalid("operator 0 (RESIZE_BILINEAR) writing 't2'", "'t2' float32[1, 8, 8, 2]", "[1, 8, 9, 2]"),
    ),
    "corners and half pixels": (
        lambda net, x: net.move("RESIZE_BILINEAR", x, (1, 8, 8, 2), net.integers([8, 8]), kind="ResizeBilinearOptions",
                                AlignCorners=True, HalfPixelCenters=True),
        invalid("RESIZE_BILINEAR 't2'"),
    ),
    "greatest along a dimension that is not there": (
        lambda net, x: net.operator("ARG_MAX", [x, net.integers([4])], net.activation((1, 4, 4), dtype="int32"),
                                    "ArgMaxOptions"),
        invalid("operator 0 (ARG_MAX) writing 't2'", "4", "'x' float32[1, 4, 4, 2]"),
    ),
    "greatest along two dimensions": (
        lambda net, x: net.operator("ARG_MIN", [x, net.integers([1, 2])], net.activation((1, 4, 4), dtype="int32"),
                                    "ArgMinOptions"),
        invalid("operator 0 (ARG_MIN) writing 't2'", "1"),
    ),
    "sum along a dimension that is not there": (
        lambda net, x: net.operator("SUM", [x, net.integers([-5])], net.like(x, (1, 4, 4)), "ReducerOptions"),
        invalid("operator 0 (SUM) writing 't2'", "-5", "'x' float32[1, 4, 4, 2]"),
    ),
    "positions of another type": (
        lambda net, x: net.operator("ARG_MAX", [x, net.integers([3])], net.activation((1, 4, 4), dtype="int16"),
                                    "ArgMaxOptions"),
        ("type-unsupported", "operator 0 (ARG_MAX) writing 't2'", "16"),
    ),
    "more elements than a row has": (
        lambda net, x: net.many("TOPK_V2", [x, net.integers([3])],
                                [net.like(x, (1, 4, 4, 3)), net.activation((1, 4, 4, 3), dtype="int32")]),
        invalid("TOPK_V2 't2'", "3", "'x' float32[1, 4, 4, 2]"),
    ),
    "positions of the greatest elements in int16": (
        lambda net, x: net.many("TOPK_V2", [x, net.integers([1])],
                                [net.like(x, (1, 4, 4, 1)), net.activation((1, 4, 4, 1), dtype="int16")]),
        ("type-unsupported", "operator 0 (TOPK_V2) writing 't2'", "int16", "'t3'"),
    ),
    "a transposed convolution to no size of its window": (
        lambda net, x: net.transpose_conv(x, (12, 8), WEIGHTS, stride=(2, 2)),
        invalid("TRANSPOSE_CONV 't3'", "'x' float32[1, 4, 4, 2]", "(2, 2)"),
    ),
    "matrices that do not fit": (
        lambda net, x: matmul(net, x, (1, 1, 3, 5), (1, 4, 4, 5)),
        invalid("BATCH_MATMUL 't2'", "'x' float32[1, 4, 4, 2]", "'t1' float32[1, 1, 3, 5]"),
    ),
    "batches that do not broadcast": (
        lambda net, x: matmul(net, x, (1, 3, 2, 5), (1, 4, 4, 5)),
        invalid("BATCH_MATMUL 't2'", "'x' float32[1, 4, 4, 2]", "'t1' float32[1, 3, 2, 5]"),
    ),
    "a product with a vector": (
        lambda net, x: matmul(net, x, (2,), (1, 4, 4)),
        invalid("BATCH_MATMUL 't2'", "'x' float32[1, 4, 4, 2]", "'t1' float32[2]"),
    ),
    "reshaped to another shape than is said": (
        lambda net, x: net.move("RESHAPE", x, (8, 4), net.integers([4, 8])),
        invalid("operator 0 (RESHAPE) writing 't2'", "'t2' float32[8, 4]", "[4, 8]"),
    ),
    "reshaped to another rank than is said": (
        lambda net, x: net.move("RESHAPE", x, (8, 4), net.integers([-1])),
        invalid("operator 0 (RESHAPE) writing 't2'", "'t2' float32[8, 4]", "[32]"),
    ),
    "a new dimension that is not there": (
        lambda net, x: net.move("EXPAND_DIMS", x, (1, 4, 4, 2, 1), net.integers(5)),
        invalid("operator 0 (EXPAND_DIMS) writing 't2'", "5"),
    ),
    "a new dimension in another place": (
        lambda net, x: net.move("EXPAND_DIMS", x, (1, 4, 4, 2, 1), net.integers(2)),
        invalid("operator 0 (EXPAND_DIMS) writing 't2'", "'t2' float32[1, 4, 4, 2, 1]", "[1, 4, 1, 4, 2]"),
    ),
    "squeezed dimensions that are not 1": (
        lambda net, x: net.move("SQUEEZE", x, (4, 8), kind="SqueezeOptions"),
        invalid("SQUEEZE 't1'", "'x' float32[1, 4, 4, 2]", "'t1' float32[4, 8]"),
    ),
    "a convolution with weights without channels": (
        lambda net, x: without_channels(net, "Conv2DOptions", x, (2, 1, 1, 0)),
        ("tensor-empty", "operator 0 (CONV_2D) writing 't3'", "'t1' float32[2, 1, 1, 0]"),
    ),
    "a depthwise convolution of an image without channels": (
        lambda net, _: without_channels(net, "DepthwiseConv2DOptions", net.input((1, 4, 4, 0)), (1, 1, 1, 2)),
        ("tensor-empty", "operator 0 (DEPTHWISE_CONV_2D) writing 't4'", "'t1' float32[1, 4, 4, 0]"),
    ),
    "padded with another type": (
        lambda net, x: net.move("PADV2", x, (1, 4, 4, 2), net.integers([(0, 0)] * 4), net.integers([0])),
        invalid("operator 0 (PADV2) writing 't3'", "'t2' int32[1]", "'x' float32[1, 4, 4, 2]"),
    ),
}  # fmt: skip


def test_scale_too_large_for_float32() -> None:
    net = Network()
    net.unary("EXP", net.input((2,), 3e38, dtype="int16"), "ExpOptions", scale=0.1, dtype="int16")
    assert_tflite_refused(net.build(), "operator-invalid", "EXP 't1'", "3e+38")


@pytest.mark.parametrize(("build", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_one_mistake(build: Callable[[Network, int], object], expected: Refusal) -> None:
    net = Network()
    build(net, net.input((1, 4, 4, 2), name="x"))
    assert_tflite_refused(net.build(), *expected)
