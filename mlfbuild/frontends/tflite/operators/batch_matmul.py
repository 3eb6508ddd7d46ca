"""BATCH_MATMUL."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.frontends.tflite.operators.site import TfliteSite
from mlfbuild.frontends.tflite.reader import reading
from mlfbuild.graph import Operator, ops


def _batch_matmul(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("BatchMatMulOptions")
        return ops.BatchMatmul(bool(options.AdjX()), bool(options.AdjY()))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.BATCH_MATMUL: OperatorKind(_batch_matmul, 2),
}
