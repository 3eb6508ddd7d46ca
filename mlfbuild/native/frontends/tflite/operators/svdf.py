"""SVDF, which keeps the features of previous runs in a variable tensor."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _svdf(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("SVDFOptions")
        return ops.Svdf(options.Rank(), site.activation(options.FusedActivationFunction()))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.SVDF: OperatorKind(_svdf, 5, layer=True, states=(4,)),
}
