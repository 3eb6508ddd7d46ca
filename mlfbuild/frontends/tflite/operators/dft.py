"""RFFT2D; REAL, IMAG and COMPLEX_ABS have no attributes."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.frontends.tflite.operators.site import TfliteSite
from mlfbuild.graph import Operator, ops


def _rfft2d(site: TfliteSite) -> Operator:
    lengths = site.constant(1, "length of the transform").tolist()
    if len(lengths) != 2:
        raise site.wrong(f"the length of the transform {lengths} must have 2 numbers")
    return ops.Rfft2d(*lengths)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.RFFT2D: OperatorKind(_rfft2d, 1, 1),
}
