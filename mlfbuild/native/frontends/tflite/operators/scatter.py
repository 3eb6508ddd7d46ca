"""SCATTER_ND."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import Operator, ops


def _scatter_nd(site: TfliteSite) -> Operator:
    wanted = site.constant(2, "output shape").tolist()
    if wanted != list(site.output().shape):
        raise site.misshapen(wanted)
    return ops.ScatterNd()


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.SCATTER_ND: OperatorKind(_scatter_nd, 2, 1, order=(1, 0, 2)),
}
