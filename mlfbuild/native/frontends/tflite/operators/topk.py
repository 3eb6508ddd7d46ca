"""TOPK_V2."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import integers
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import DType, Operator, ops


def _topk(site: TfliteSite) -> Operator:
    (k,) = integers(site, 1, "number of elements", 1)
    if len(site.outputs) > 1 and site.outputs[1].dtype is not DType.INT32:
        raise site.type_unsupported(site.outputs[1], "int32")
    return ops.TopkV2(k)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.TOPK_V2: OperatorKind(_topk, 1, 1),
}
