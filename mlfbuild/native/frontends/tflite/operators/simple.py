"""Operators whose row says everything: their inputs, and which option or constant input each attribute is."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.tflite.operators.site import ANY_NUMBER, TfliteRow, TfliteSite
from mlfbuild.native.graph import DType, Operator, ops

_KEEP_DIMS = ("ReducerOptions", "KeepDims")


def _axes(site: TfliteSite) -> tuple[int, ...]:
    # TensorFlow permits an axis twice, which has no effect.
    return tuple(sorted(set(site.axes())))


def _l2_normalization(site: TfliteSite, activation: int) -> Operator:
    site.check_no_activation(activation)
    return ops.L2Normalization(shifted=site.unsigned)


def _rfft2d(site: TfliteSite) -> Operator:
    lengths = site.constant(1, "length of the transform").tolist()
    if len(lengths) != 2:
        raise site.wrong(f"the length of the transform {lengths} must have 2 numbers")
    return ops.Rfft2d(*lengths)


def _topk(site: TfliteSite) -> Operator:
    (k,) = site.integers(1, "number of elements", 1)
    if len(site.outputs) > 1 and site.outputs[1].dtype is not DType.INT32:
        raise site.type_unsupported(site.outputs[1], "int32")
    return ops.TopkV2(k)


ROWS: Mapping[str, TfliteRow] = {
    "ADD_N": TfliteRow(lambda _: ops.AddN(), ANY_NUMBER),
    "ARG_MAX": TfliteRow(lambda site: ops.ArgMax(site.axis()), 1, 1),
    "ARG_MIN": TfliteRow(lambda site: ops.ArgMin(site.axis()), 1, 1),
    "CUMSUM": TfliteRow(
        lambda site, exclusive, reverse: ops.Cumsum(site.axis(), bool(exclusive), bool(reverse)),
        1, 1, ("CumsumOptions", "Exclusive", "Reverse"),
    ),
    "DIV": TfliteRow(
        lambda site, code: ops.Div(site.activation(code), rounded_quotient=site.unsigned),
        2, options=("DivOptions", "FusedActivationFunction"),
    ),
    "GELU": TfliteRow(lambda _, approximate: ops.Gelu(bool(approximate)), options=("GeluOptions", "Approximate")),
    "L2_NORMALIZATION": TfliteRow(_l2_normalization, options=("L2NormOptions", "FusedActivationFunction")),
    "LEAKY_RELU": TfliteRow(lambda _, alpha: ops.LeakyRelu(float(alpha)), options=("LeakyReluOptions", "Alpha")),
    "MEAN": TfliteRow(lambda site, keep: ops.Mean(_axes(site), bool(keep)), 1, 1, _KEEP_DIMS),
    "QUANTIZE": TfliteRow(lambda _: ops.Quantize()),
    "REDUCE_ALL": TfliteRow(lambda site, keep: ops.ReduceAll(_axes(site), bool(keep)), 1, 1, _KEEP_DIMS),
    "REDUCE_ANY": TfliteRow(lambda site, keep: ops.ReduceAny(_axes(site), bool(keep)), 1, 1, _KEEP_DIMS),
    "REDUCE_MAX": TfliteRow(lambda site, keep: ops.ReduceMax(_axes(site), bool(keep)), 1, 1, _KEEP_DIMS),
    "REDUCE_MIN": TfliteRow(lambda site, keep: ops.ReduceMin(_axes(site), bool(keep)), 1, 1, _KEEP_DIMS),
    "REDUCE_PROD": TfliteRow(lambda site, keep: ops.ReduceProd(_axes(site), bool(keep)), 1, 1, _KEEP_DIMS),
    "RFFT2D": TfliteRow(_rfft2d, 1, 1),
    "SELECT": TfliteRow(lambda _: ops.Select(), 3),
    "SELECT_V2": TfliteRow(lambda _: ops.SelectV2(), 3),
    "SOFTMAX": TfliteRow(lambda _, beta: ops.Softmax(float(beta)), options=("SoftmaxOptions", "Beta")),
    "SUM": TfliteRow(lambda site, keep: ops.Sum(_axes(site), bool(keep)), 1, 1, _KEEP_DIMS),
    "TOPK_V2": TfliteRow(_topk, 1, 1),
}  # fmt: skip
