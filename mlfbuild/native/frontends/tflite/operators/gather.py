"""GATHER and GATHER_ND."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import dimension
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _gather(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("GatherOptions")
        axis = dimension(site, options.Axis(), len(site.input(0).shape))
        common, rank = options.BatchDims(), len(site.input(1).shape)
    if not -rank <= common <= rank:
        raise site.wrong(f"{common} common dimensions do not fit {site.input(1)}")
    return ops.Gather(axis, common + rank if common < 0 else common)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.GATHER: OperatorKind(_gather, 2),
    BuiltinOperator.GATHER_ND: OperatorKind(lambda _: ops.GatherNd(), 2),
}
