"""Operators that do not fit their tensors or have impossible attributes: one line of place and reason, exit code 4."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.frontends.tflite import parse_tflite
from support.refusals import without_advice
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


MISTAKES: dict[str, tuple[Callable[[Network, int], object], str]] = {
    "concatenation along a dimension that is not there": (
        lambda net, x: net.operator("CONCATENATION", [x, x], net.like(x, (1, 4, 4, 4)), "ConcatenationOptions", Axis=4),
        "operator 0 (CONCATENATION) writing 't1': axis 4 is not one of 4 dimensions",
    ),
    "concatenation to another length": (
        lambda net, x: net.operator("CONCATENATION", [x, x], net.like(x, (1, 4, 4, 5)), "ConcatenationOptions",
                                    Axis=-1),
        "CONCATENATION 't1': the parts of 't1' float32[1, 4, 4, 5] along dimension 3 add up to 4",
    ),
    "concatenation of other heights": (
        lambda net, x: net.operator("CONCATENATION", [x, net.input((1, 3, 4, 2))], net.like(x, (1, 4, 4, 4)),
                                    "ConcatenationOptions", Axis=3),
        "CONCATENATION 't2': 't1' float32[1, 3, 4, 2] is no part of 't2' float32[1, 4, 4, 4] along dimension 3",
    ),
    "split along a dimension that is not there": (
        lambda net, x: split(net, x, -5), "operator 0 (SPLIT) writing 't1': axis -5 is not one of 4 dimensions",
    ),
    "split along another dimension": (
        lambda net, x: split(net, x, 2),
        "SPLIT 't1': 't1' float32[1, 2, 4, 2] is no part of 'x' float32[1, 4, 4, 2] along dimension 2",
    ),
    "sizes that the outputs have not": (
        lambda net, x: split_v(net, x, [2, 2]),
        "operator 0 (SPLIT_V) writing 't1': the sizes [2, 2] are not those of its outputs, [1, 3]",
    ),
    "another number of pieces than outputs": (
        lambda net, x: net.many("SPLIT", [net.integers(3), x], [net.like(x, (1, 4, 4, 1)) for _ in range(2)],
                                "SplitOptions", NumSplits=4),
        "operator 0 (SPLIT) writing 't2': makes 4 tensors, but has 2 outputs",
    ),
    "another number of layers than outputs": (
        lambda net, x: net.many("UNPACK", [x], [net.like(x, (1, 4, 4)) for _ in range(2)], "UnpackOptions", Axis=3,
                                Num=3),
        "operator 0 (UNPACK) writing 't1': makes 3 tensors, but has 2 outputs",
    ),
    "another number of layers than inputs": (
        lambda net, x: net.operator("PACK", [x, x], net.like(x, (2, 1, 4, 4, 2)), "PackOptions", ValuesCount=1),
        "operator 0 (PACK) writing 't1': packs 1 tensors, but has 2 inputs",
    ),
    "slice beyond the tensor": (
        lambda net, x: net.move("SLICE", x, (1, 4, 2, 2), net.integers([0, 0, 3, 0]), net.integers([1, 4, 2, 2])),
        "SLICE 't3': 2 elements from 3 on by 1 are not within dimension 2 of 'x' float32[1, 4, 4, 2]",
    ),
    "slice of another rank": (
        lambda net, x: net.move("SLICE", x, (1, 4, 2), net.integers([0, 0, 3]), net.integers([1, 4, 2])),
        "operator 0 (SLICE) writing 't3': the begin [0, 0, 3] does not fit 'x' float32[1, 4, 4, 2]",
    ),
    "stride zero in a slice": (
        lambda net, x: slices(net, x, [[0, 0, 0, 0], [1, 1, 1, 1], [1, 0, 1, 1]]),
        "operator 0 (STRIDED_SLICE) writing 't4': strides [1, 0, 1, 1] must not be 0",
    ),
    "nothing in a slice": (
        lambda net, x: slices(net, x, [[0, 3, 0, 0], [1, 2, 1, 1], [1, 1, 1, 1]]),
        "STRIDED_SLICE 't4': 0 elements from 3 on by 1 are not within dimension 1 of 'x' float32[1, 4, 4, 2]",
    ),
    "new axes": (
        lambda net, x: slices(net, x, [[0] * 4, [1] * 4, [1] * 4], NewAxisMask=1),
        (
            "operator 0 (STRIDED_SLICE) writing 't4': ellipsis and new axes are not supported; give every dimension "
            "a begin and an end"
        ),
    ),
    "dimension twice in a transposition": (
        lambda net, x: net.move("TRANSPOSE", x, (1, 4, 4, 2), net.integers([0, 1, 1, 3])),
        "TRANSPOSE 't2': [0, 1, 1, 3] is no order of the dimensions of 'x' float32[1, 4, 4, 2]",
    ),
    "squares that do not fit": (
        lambda net, x: net.move("SPACE_TO_DEPTH", x, (1, 1, 1, 18), kind="SpaceToDepthOptions", BlockSize=3),
        "SPACE_TO_DEPTH 't1': 'x' float32[1, 4, 4, 2] cannot be cut into squares of 3",
    ),
    "squares of nothing": (
        lambda net, x: net.move("DEPTH_TO_SPACE", x, (1, 4, 4, 2), kind="DepthToSpaceOptions", BlockSize=0),
        "DEPTH_TO_SPACE 't1': 't1' float32[1, 4, 4, 2] cannot be cut into squares of 0",
    ),
    "reversed twice": (
        lambda net, x: net.move("REVERSE_V2", x, (1, 4, 4, 2), net.integers([1, -3]), kind="ReverseV2Options"),
        "REVERSE_V2 't2': [1, 1] are not different dimensions of 'x' float32[1, 4, 4, 2]",
    ),
    "filled with many": (
        lambda net, x: net.operator("FILL", [net.integers([1, 4]), x], net.activation((1, 4)), "FillOptions"),
        "FILL 't2': 'x' float32[1, 4, 4, 2] must have one element",
    ),
    "filled to another shape": (
        lambda net, x: net.operator("FILL", [net.integers([1, 4]), x], net.activation((4, 1)), "FillOptions"),
        "operator 0 (FILL) writing 't2': 't2' float32[4, 1] should have the shape [1, 4]",
    ),
    "repeated zero times": (
        lambda net, x: net.move("TILE", x, (1, 4, 4, 2), net.integers([1, 0, 1, 1])),
        "TILE 't2': multiples [1, 0, 1, 1] do not fit 'x' float32[1, 4, 4, 2]",
    ),
    "repeated to another shape": (
        lambda net, x: net.move("BROADCAST_TO", x, (1, 4, 4, 3), net.integers([1, 4, 4, 3])),
        "BROADCAST_TO 't2': 'x' float32[1, 4, 4, 2] cannot be repeated to 't2' float32[1, 4, 4, 3]",
    ),
    "mirrored beyond the tensor": (
        lambda net, x: net.move("MIRROR_PAD", x, (1, 8, 4, 2), net.integers([(0, 0), (4, 0), (0, 0), (0, 0)]),
                                kind="MirrorPadOptions"),
        "MIRROR_PAD 't2': paddings ((0, 0), (4, 0), (0, 0), (0, 0)) are wider than 'x' float32[1, 4, 4, 2] can mirror",
    ),
    "blocks that do not fit": (
        lambda net, x: net.move("SPACE_TO_BATCH_ND", x, (9, 1, 1, 2), net.integers([3, 3]),
                                net.integers([(0, 0), (0, 2)]), kind="SpaceToBatchNDOptions"),
        (
            "SPACE_TO_BATCH_ND 't3': 'x' float32[1, 4, 4, 2] with margins [(0, 0), (0, 2)] cannot be cut into blocks "
            "of [3, 3]"
        ),
    ),
    "blocks of nothing": (
        lambda net, x: net.move("BATCH_TO_SPACE_ND", x, (1, 4, 4, 2), net.integers([0, 1]),
                                net.integers([(0, 0), (0, 0)]), kind="BatchToSpaceNDOptions"),
        "BATCH_TO_SPACE_ND 't3': blocks [0, 1] must be at least 1 and margins [(0, 0), (0, 0)] at least 0",
    ),
    "margins of one dimension": (
        lambda net, x: net.move("BATCH_TO_SPACE_ND", x, (1, 4, 4, 2), net.integers([1, 1]), net.integers([(0, 0)]),
                                kind="BatchToSpaceNDOptions"),
        "operator 0 (BATCH_TO_SPACE_ND) writing 't3': 2 margins do not fit blocks [1, 1]",
    ),
    "resized to another size": (
        lambda net, x: net.move("RESIZE_BILINEAR", x, (1, 8, 8, 2), net.integers([8, 9]), kind="ResizeBilinearOptions"),
        "operator 0 (RESIZE_BILINEAR) writing 't2': 't2' float32[1, 8, 8, 2] should have the height and width [8, 9]",
    ),
    "corners and half pixels": (
        lambda net, x: net.move("RESIZE_BILINEAR", x, (1, 8, 8, 2), net.integers([8, 8]), kind="ResizeBilinearOptions",
                                AlignCorners=True, HalfPixelCenters=True),
        "RESIZE_BILINEAR 't2': corners and half pixels exclude each other",
    ),
    "greatest along a dimension that is not there": (
        lambda net, x: net.operator("ARG_MAX", [x, net.integers([4])], net.activation((1, 4, 4), dtype="int32"),
                                    "ArgMaxOptions"),
        "operator 0 (ARG_MAX) writing 't2': axis 4 is not a dimension of 'x' float32[1, 4, 4, 2]",
    ),
    "greatest along two dimensions": (
        lambda net, x: net.operator("ARG_MIN", [x, net.integers([1, 2])], net.activation((1, 4, 4), dtype="int32"),
                                    "ArgMinOptions"),
        "operator 0 (ARG_MIN) writing 't2': has 2 axes, takes 1",
    ),
    "sum along a dimension that is not there": (
        lambda net, x: net.operator("SUM", [x, net.integers([-5])], net.like(x, (1, 4, 4)), "ReducerOptions"),
        "operator 0 (SUM) writing 't2': axis -5 is not a dimension of 'x' float32[1, 4, 4, 2]",
    ),
    "positions of another type": (
        lambda net, x: net.operator("ARG_MAX", [x, net.integers([3])], net.activation((1, 4, 4), dtype="int16"),
                                    "ArgMaxOptions"),
        "operator 0 (ARG_MAX) writing 't2': type int16 of 't2'; supported are int32 and int64",
    ),
    "a transposed convolution to no size of its window": (
        lambda net, x: net.transpose_conv(x, (12, 8), WEIGHTS, stride=(2, 2)),
        (
            "TRANSPOSE_CONV 't3': 'x' float32[1, 4, 4, 2] does not fit a filter of (2, 2) moving over "
            "'t3' float32[1, 12, 8, 3]"
        ),
    ),
    "matrices that do not fit": (
        lambda net, x: matmul(net, x, (1, 1, 3, 5), (1, 4, 4, 5)),
        (
            "BATCH_MATMUL 't2': a matrix of 2 columns of 'x' float32[1, 4, 4, 2] does not fit one of 3 rows of "
            "'t1' float32[1, 1, 3, 5]"
        ),
    ),
    "batches that do not broadcast": (
        lambda net, x: matmul(net, x, (1, 3, 2, 5), (1, 4, 4, 5)),
        "BATCH_MATMUL 't2': 'x' float32[1, 4, 4, 2] and 't1' float32[1, 3, 2, 5] do not broadcast",
    ),
    "a product with a vector": (
        lambda net, x: matmul(net, x, (2,), (1, 4, 4)),
        "BATCH_MATMUL 't2': 'x' float32[1, 4, 4, 2] and 't1' float32[2] must be matrices",
    ),
    "reshaped to another shape than is said": (
        lambda net, x: net.move("RESHAPE", x, (8, 4), net.integers([4, 8])),
        "operator 0 (RESHAPE) writing 't2': 't2' float32[8, 4] should have the shape [4, 8]",
    ),
    "reshaped to another rank than is said": (
        lambda net, x: net.move("RESHAPE", x, (8, 4), net.integers([-1])),
        "operator 0 (RESHAPE) writing 't2': 't2' float32[8, 4] should have the shape [-1]",
    ),
    "a new dimension that is not there": (
        lambda net, x: net.move("EXPAND_DIMS", x, (1, 4, 4, 2, 1), net.integers(5)),
        "operator 0 (EXPAND_DIMS) writing 't2': axis 5 is not one of 5 dimensions",
    ),
    "a new dimension in another place": (
        lambda net, x: net.move("EXPAND_DIMS", x, (1, 4, 4, 2, 1), net.integers(2)),
        "operator 0 (EXPAND_DIMS) writing 't2': 't2' float32[1, 4, 4, 2, 1] should have the shape [1, 4, 1, 4, 2]",
    ),
    "squeezed dimensions that are not 1": (
        lambda net, x: net.move("SQUEEZE", x, (4, 8), kind="SqueezeOptions"),
        "SQUEEZE 't1': 'x' float32[1, 4, 4, 2] and 't1' float32[4, 8] differ in more than dimensions of 1",
    ),
    "padded with another type": (
        lambda net, x: net.move("PADV2", x, (1, 4, 4, 2), net.integers([(0, 0)] * 4), net.integers([0])),
        (
            "operator 0 (PADV2) writing 't3': the value 't2' int32[1] must be one element of the type of "
            "'x' float32[1, 4, 4, 2]"
        ),
    ),
}  # fmt: skip


def test_a_scale_whose_greatest_number_is_no_float32() -> None:
    net = Network()
    net.unary("EXP", net.input((2,), 3e38, dtype="int16"), "ExpOptions", scale=0.1, dtype="int16")
    with pytest.raises(
        UnsupportedModelError, match=r"EXP 't1': the function of a number of scale 3e\+38 is no float32"
    ):
        parse_tflite(net.build(), "net", "net.tflite")


@pytest.mark.parametrize(("build", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_one_mistake(build: Callable[[Network, int], object], expected: str) -> None:
    net = Network()
    build(net, net.input((1, 4, 4, 2), name="x"))
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(net.build(), "net", "net.tflite")
    assert without_advice(str(caught.value)) == f"net.tflite: {expected}"
