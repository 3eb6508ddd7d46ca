"""Operators that move elements and compute none."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.frontends.tflite_operators.kind import OperatorKind
from mlfbuild.frontends.tflite_operators.site import Site
from mlfbuild.graph import GraphError, Operator, ops


def _reshape(site: Site) -> Operator:
    # The output's own shape is the truth; a shape that is computed at run time would make it a guess.
    if len(site.inputs) > 1 and site.inputs[1] is not None:
        site.constant(1, "new shape")
    return ops.Reshape()


def _pad(site: Site) -> Operator:
    paddings = site.constant(1, "paddings")
    if paddings.size != 2 * len(site.input(0).shape):
        raise GraphError(site.place, f"{paddings.size} paddings do not fit {site.input(0)}")
    return ops.Pad(tuple((int(before), int(after)) for before, after in paddings.reshape(-1, 2)))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.PAD: OperatorKind(_pad, 1, 1),
    BuiltinOperator.RESHAPE: OperatorKind(_reshape, 1, 1),
}
