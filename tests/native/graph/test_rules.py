"""Rules that no TFLite file can break, because its reader ensures them."""

from collections.abc import Sequence

import numpy as np
import pytest

from mlfbuild.native.graph import DType, Operands, Operator, Quantization, Tensor, ops

SCALE = Quantization((0.5,), (0,))


def image(*shape: int, dtype: DType = DType.FLOAT32, name: str = "x") -> Tensor:
    return Tensor(name, shape, dtype, SCALE if dtype is DType.INT8 else None)


def weights(*shape: int) -> Tensor:
    return Tensor("w", shape, DType.FLOAT32, data=np.zeros(shape, np.float32))


def row(scale: float, dtype: DType = DType.INT8, name: str = "y") -> Tensor:
    """Return four quantised numbers."""
    return Tensor(name, (4,), dtype, Quantization((scale,), (0,)))


X = image(1, 4, 4, 2)
INT8, INT16 = row(0.5, name="x"), row(0.5, DType.INT16, "x")

BROKEN: dict[str, tuple[Operator, Sequence[Tensor | None], Tensor, str]] = {
    "a hybrid layer without weights": (
        ops.Hybrid(ops.FullyConnected()), [image(1, 4, dtype=DType.INT8), image(1), None, None, None], image(1, 3),
        "input 3 is absent",
    ),
    "axes not ascending": (ops.Mean((2, 1)), [X], image(1, 2), "axes [2, 1] must be ascending and different"),
    "axes twice": (ops.Mean((1, 1)), [X], image(1, 4, 2), "axes [1, 1] must be ascending and different"),
    "axes negative": (ops.Mean((-1,)), [X], image(1, 4, 4), "axes [-1] are not dimensions of 'x' float32[1, 4, 4, 2]"),
    "negative padding": (
        ops.MaxPool2D((2, 2), padding=((-1, 0), (0, 0))), [X], image(1, 2, 3, 2),
        "padding ((-1, 0), (0, 0)) must not be negative",
    ),
    "padding that holds the whole filter": (
        ops.AveragePool2D((2, 2), padding=((2, 0), (0, 0))), [X], image(1, 5, 3, 2),
        "padding ((2, 0), (0, 0)) is wider than the filter (2, 2)",
    ),
    "stride zero": (
        ops.MaxPool2D((2, 2), stride=(0, 1)), [X], image(1, 3, 3, 2),
        "filter (2, 2), stride (0, 1) and dilation (1, 1) must be at least 1",
    ),
    "paddings of another rank": (ops.Pad(((0, 0),)), [X], X, "1 pairs of paddings do not fit 'x' float32[1, 4, 4, 2]"),
    "weights computed": (
        ops.FullyConnected(), [image(1, 4), image(3, 4, name="w")], image(1, 3),
        "the weights 'w' float32[3, 4] are not constant",
    ),
    "integer weights computed": (
        ops.Conv2D(), [image(1, 4, 4, 2, dtype=DType.INT8), image(3, 1, 1, 2, dtype=DType.INT8, name="w")],
        image(1, 4, 4, 3, dtype=DType.INT8), "the weights 'w' int8[3, 1, 1, 2] are not constant",
    ),
    "bias computed": (
        ops.Conv2D(), [X, weights(3, 1, 1, 2), image(3, name="b")], image(1, 4, 4, 3),
        "the bias 'b' float32[3] is not constant",
    ),
    "hybrid": (
        ops.FullyConnected(), [image(1, 4, dtype=DType.INT8), weights(3, 4)], image(1, 3, dtype=DType.INT8),
        "mixes 'x' int8[1, 4] and 'w' float32[3, 4]",
    ),
    "grouped weights": (
        ops.Conv2D(), [X, weights(2, 1, 1, 1)], image(1, 4, 4, 2),
        "the weights 'w' float32[2, 1, 1, 1] are for 1 input channels, 'x' float32[1, 4, 4, 2] has 2",
    ),
    "depthwise weights of two filters": (
        ops.DepthwiseConv2D(), [X, weights(2, 1, 1, 2)], image(1, 4, 4, 2),
        "the weights 'w' float32[2, 1, 1, 2] must have 1 as first dimension",
    ),
    "types mixed": (ops.Reshape(), [X], image(32, dtype=DType.INT8), "mixes 'x' float32[1, 4, 4, 2] and 'x' int8[32]"),
    "type without arithmetic": (
        ops.Softmax(), [image(4, dtype=DType.INT32)], image(4), "'x' int32[4]: the type must be int8, int16 or float32",
    ),
    "dequantise float32": (ops.Dequantize(), [X], X, "'x' float32[1, 4, 4, 2]: the type must be int8, int16 or uint8"),
    "quantise to float32": (
        ops.Quantize(), [X], X, "'x' float32[1, 4, 4, 2]: the type must be int8, int16, uint8 or int32",
    ),
    "quantise float32 to int32": (
        ops.Quantize(), [X], Tensor("y", X.shape, DType.INT32, Quantization((0.5,), (0,))),
        "cannot bring 'x' float32[1, 4, 4, 2] to 'y' int32[1, 4, 4, 2]",
    ),
    "quantise int8 to int32 without a scale": (
        ops.Quantize(), [INT8], Tensor("y", (4,), DType.INT32), "'y' int32[4] has no scale and zero point",
    ),
    "softmax of a scalar": (ops.Softmax(), [image()], image(), "'x' float32[] has no dimension to go over"),
    "softmax to another scale": (ops.Softmax(), [INT8], INT8, "'x' int8[4] must have scale 1/256 and zero point -128"),
    "pool to another scale": (
        ops.MaxPool2D((2, 2)), [image(1, 2, 2, 1, dtype=DType.INT8)],
        Tensor("y", (1, 1, 1, 1), DType.INT8, Quantization((0.25,), (0,))),
        "'x' int8[1, 2, 2, 1] and 'y' int8[1, 1, 1, 1] must have the same scale and zero point",
    ),
    "rows kept but not as in the input": (
        ops.FullyConnected(keep_num_dims=True), [image(2, 3, 4), weights(5, 4)], image(6, 5),
        "'x' float32[6, 5] should have the shape [2, 3, 5]",
    ),
    "rows kept of another depth": (
        ops.FullyConnected(keep_num_dims=True), [image(2, 3, 8), weights(5, 4)], image(2, 3, 5),
        "the last dimension of 'x' float32[2, 3, 8] should be 4",
    ),
    "required input absent": (ops.Add(), [X, None], X, "a required input is absent"),
}  # fmt: skip


BROKEN |= {
    "int16 with a zero point": (
        ops.Relu(), [Tensor("x", (4,), DType.INT16, Quantization((0.5,), (3,)))], row(0.5, DType.INT16),
        "'x' int16[4] must have the zero point 0, as int16 always has",
    ),
    "integers without a scale": (
        ops.Relu(), [Tensor("x", (4,), DType.INT8)], INT8, "'x' int8[4] has no scale and zero point",
    ),
    "scattered elements without updates": (
        ops.ScatterElements(), [None, image(4, dtype=DType.INT32)], image(4), "has 2 inputs, takes 3",
    ),
    "a quotient of truth values": (
        ops.Div(), [image(4, dtype=DType.BOOL)] * 2, image(4, dtype=DType.BOOL),
        "'x' bool[4]: the type must be int8, int16, int32, int64 or float32",
    ),
    "a quotient to a tiny scale": (
        ops.Div(), [INT8] * 2, row(1e-8), "the output's scale 1e-08 is too small for a quotient",
    ),
    "shapes that do not broadcast": (
        ops.Sub(), [image(2, 3), image(2, 4)], image(2, 4), "'x' float32[2, 3] and 'x' float32[2, 4] do not broadcast",
    ),
    "shapes that broadcast to another": (
        ops.Mul(), [image(2, 1), image(1, 4)], image(2, 3), "'x' float32[2, 3] should have the shape [2, 4]",
    ),
    "the greater of two scales": (
        ops.Maximum(), [INT8, row(0.25, name="z")],
        INT8, "'z' int8[4] and 'x' int8[4] must have the same scale and zero point",
    ),
    "a difference that must grow": (
        ops.Sub(), [INT8] * 2, row(1e-7), "the output's scale 1e-07 is too small for inputs of scale 0.5",
    ),
    "a product that no multiplier brings to its scale": (
        ops.Mul(), [INT8] * 2, row(1e-12), "cannot rescale by 2.5e+11, more than 2**30",
    ),
    "a logistic function to another scale": (
        ops.Logistic(), [INT8], INT8, "'x' int8[4] must have scale 1/256 and zero point -128",
    ),
    "a logistic function of int16 to another scale": (
        ops.Logistic(), [INT16], row(0.5, DType.INT16), "'y' int16[4] must have scale 1/32768",
    ),
    "a hyperbolic tangent of int16 of a huge scale": (
        ops.Tanh(), [row(3.0, DType.INT16, "x")],
        row(2.0**-15, DType.INT16),
        "the input's scale 3 is too large for a table of 16 bits",
    ),
    "a logarithm of shares to another scale": (
        ops.LogSoftmax(), [INT8], INT8, "'x' int8[4] must have scale 1/16 and zero point 127",
    ),
    "shares of int16 to another scale": (
        ops.Softmax(), [INT16], row(0.5, DType.INT16), "'y' int16[4] must have scale 1/32768 and zero point 0",
    ),
    "shares of int8 as int16 to another zero point": (
        ops.Softmax(), [INT8], row(2.0**-16, DType.INT16), "'y' int16[4] must have scale 1/65536 and zero point -32768",
    ),
    "shares of int16 as int8": (ops.Softmax(), [INT16], INT8, "mixes 'x' int16[4] and 'x' int8[4]"),
    "shares of int16 of a huge scale": (
        ops.Softmax(8.0), [INT16], row(2.0**-15, DType.INT16), "beta 8 times the input's scale 0.5 is too large",
    ),
    "a swish to a tiny scale": (ops.HardSwish(), [INT8], row(1e-4), "the output's scale 0.0001 is too small for 0.5"),
    "a swish to a huge scale": (ops.HardSwish(), [INT8], row(1e5), "the output's scale 100000 is too large for 0.5"),
    "a sine of int8": (ops.Sin(), [INT8], INT8, "'x' int8[4]: the type must be float32"),
    "an exponential of a huge scale": (
        ops.Exp(), [row(1.0, DType.INT16, "x")],
        row(0.5, DType.INT16),
        "the function of a number of scale 1 is no float32 of scale 0.5",
    ),
    "a logarithm to a tiny scale": (ops.Log(), [INT8], row(1e-39), "the output's scale 1e-39 is too small"),
    "a slope that is no number": (ops.LeakyRelu(float("nan")), [INT8], INT8, "alpha nan must be a number"),
    "float32 to bytes": (
        ops.Quantize(), [image(4)], Tensor("y", (4,), DType.UINT8, SCALE),
        "cannot bring 'x' float32[4] to 'y' uint8[4]",
    ),
    "a comparison of a large scale": (
        ops.Less(), [row(1.5, name="x")] * 2, Tensor("y", (4,), DType.BOOL),
        "the scale 1.5 of 'x' is too large to compare",
    ),
    "an order of two scales": (
        ops.Less(),
        [INT16, row(0.25, DType.INT16, "z")],
        Tensor("y", (4,), DType.BOOL), "'x' int16[4] and 'z' int16[4] must have the same scale and zero point",
    ),
    "a comparison that gives numbers": (ops.Less(), [image(4)] * 2, image(4), "'x' float32[4]: the type must be bool"),
    "a choice of two types": (
        ops.SelectV2(), [Tensor("c", (4,), DType.BOOL), image(4), INT8], image(4),
        "mixes 'x' float32[4] and 'x' int8[4]",
    ),
    "a position that is not there": (
        ops.Gather(3), [X, Tensor("i", (2,), DType.INT32, data=np.array([0, 2], np.int32))], X,
        "'i' int32[2] holds positions that are not in dimension 3 of 'x' float32[1, 4, 4, 2]",
    ),
    "more common dimensions than the axis leaves": (
        ops.Gather(1, 2), [X, Tensor("i", (1, 4), DType.INT32)], X,
        "2 common dimensions do not fit 'i' int32[1, 4] and axis 1",
    ),
    "common dimensions that differ": (
        ops.Gather(2, 1), [X, Tensor("i", (2, 4), DType.INT32)], X,
        "'x' float32[1, 4, 4, 2] and 'i' int32[2, 4] differ in their first 1 dimensions",
    ),
    "a choice of two shapes": (
        ops.Select(), [Tensor("c", (4,), DType.BOOL), image(4), image(1)], image(4),
        "'x' float32[1] should have the shape [4]",
    ),
    "places of too many positions": (
        ops.GatherNd(), [image(4), Tensor("i", (1, 2), DType.INT32)], image(1),
        "'i' int32[1, 2] has no rows of at most 1 positions in 'x' float32[4]",
    ),
    "places that are not there": (
        ops.GatherNd(), [image(4, 2), Tensor("i", (1, 2), DType.INT32, data=np.array([[1, 2]], np.int32))], image(1),
        "'i' int32[1, 2] holds positions that are not in 'x' float32[4, 2]",
    ),
    "a sum of one tensor": (ops.AddN(), [image(4)], image(4), "a required input is absent"),
    "a sum of more int8 than 32 bits hold": (
        ops.AddN(), [INT8] * 17, INT8, "adds 17 int8 tensors, of which at most 16 surely add up within 32 bits",
    ),
    "a sum of two shapes": (ops.AddN(), [image(4), image(1)], image(4), "'x' float32[1] should have the shape [4]"),
    "sums along no dimension": (ops.Cumsum(1), [image(4)], image(4), "axis 1 is not a dimension of 'x' float32[4]"),
    "sums to a tiny scale": (
        ops.Cumsum(0), [INT8], row(1e-8), "the output's scale 1e-08 is too small for inputs of scale 0.5",
    ),
    "factors of another type": (
        ops.PRelu(), [INT16, Tensor("a", (4,), DType.INT16, SCALE)],
        row(0.5, DType.INT16), "'a' int16[4]: the type must be int8",
    ),
}  # fmt: skip


def wide(*shape: int, scale: float = 0.5, zero_point: int = 0, name: str = "x") -> Tensor:
    return Tensor(name, shape, DType.INT16, Quantization((scale,), (zero_point,)))


def constant(dtype: DType, *shape: int, value: int = 0, name: str = "w") -> Tensor:
    data = np.zeros(shape, dtype.numpy)
    data[..., -1] = value
    return Tensor(name, shape, dtype, SCALE, data)


INT8_WEIGHTS = constant(DType.INT8, 3, 4)

BROKEN |= {
    "int16 weights": (
        ops.FullyConnected(), [wide(1, 4), constant(DType.INT16, 3, 4)], wide(1, 3),
        "the weights 'w' int16[3, 4] over 'x' int16[1, 4] must be int8",
    ),
    "int16 activations with a zero point": (
        ops.FullyConnected(), [wide(1, 4, zero_point=3), INT8_WEIGHTS], wide(1, 3),
        "'x' int16[1, 4] must have the zero point 0, as int16 always has",
    ),
    "int16 to int8": (
        ops.FullyConnected(), [wide(1, 4), INT8_WEIGHTS], image(1, 3, dtype=DType.INT8),
        "mixes 'x' int16[1, 4] and 'x' int8[1, 3]",
    ),
    "a bias of int16": (
        ops.FullyConnected(), [wide(1, 4), INT8_WEIGHTS, constant(DType.INT16, 3, name="b")], wide(1, 3),
        "the bias 'b' int16[3] must be int64 or int32",
    ),
    "a depthwise bias of int32": (
        ops.DepthwiseConv2D(), [wide(1, 1, 1, 4), constant(DType.INT8, 1, 1, 1, 4), constant(DType.INT32, 4, name="b")],
        wide(1, 1, 1, 4), "the bias 'b' int32[4] must be int64",
    ),
    "a transposed convolution with a bias of int8": (
        ops.TransposeConv(), [wide(1, 1, 1, 4), constant(DType.INT8, 3, 1, 1, 4), constant(DType.INT8, 3, name="b")],
        wide(1, 1, 1, 3), "the bias 'b' int8[3] must be int64, int32 or int16",
    ),
    "a bias beyond sums of 48 bits": (
        ops.FullyConnected(), [wide(1, 4), INT8_WEIGHTS, constant(DType.INT64, 3, value=-(2**46), name="b")],
        wide(1, 3), "the bias 'b' int64[3] has a value of 2**46 or more",
    ),
    "products beyond sums of 48 bits": (
        ops.FullyConnected(), [wide(1, 2**24 + 1), constant(DType.INT8, 1, 2**24 + 1)], wide(1, 1),
        "the weights 'w' int8[1, 16777217] have more products for a channel than 48 bits can add",
    ),
    "int16 sums that must grow": (
        ops.FullyConnected(), [wide(1, 4), INT8_WEIGHTS], wide(1, 3, scale=2.0**-9),
        "cannot rescale sums of 64 bits by 2**7 or more",
    ),
    "int16 convolutions that must grow": (
        ops.Conv2D(), [wide(1, 1, 1, 4), constant(DType.INT8, 3, 1, 1, 4)], wide(1, 1, 1, 3, scale=2.0**-9),
        "cannot rescale sums of 64 bits by 2**7 or more",
    ),
    "int16 matrices that must grow": (
        ops.BatchMatmul(), [wide(1, 4), wide(4, 1)], wide(1, 1, scale=2.0**-9),
        "cannot rescale sums of 64 bits by 2**7 or more",
    ),
    "int16 matrices of many products": (
        ops.BatchMatmul(), [wide(1, 65537), wide(65537, 1)], wide(1, 1),
        "'x' int16[1, 65537] has more than 65536 products for an element",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("operator", "inputs", "output", "reason"), BROKEN.values(), ids=BROKEN)
def test_broken_rule(operator: Operator, inputs: Sequence[Tensor | None], output: Tensor, reason: str) -> None:
    assert operator.check(Operands(inputs), [output]) == reason


def test_svdf_without_weights() -> None:
    inputs = [image(1, 4), None, image(2, 3), None, image(1, 6)]
    assert ops.Svdf().check(Operands(inputs), [image(1, 2), image(1, 6)]) == "input 1 is absent"
