"""Mod."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.frontends.onnx.operators.elementwise import NARROW, as_type, chosen, combined
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import DType, ops


def _modulo(site: OnnxSite) -> tuple[Value, ...]:
    """Return the remainder of a division, with the sign of the divisor, or of the dividend if ``fmod`` is set."""
    first, second = site.value(0), site.value(1)
    dtype = first.dtype
    if dtype is DType.FLOAT32:
        raise site.type_unsupported(first.tensor, "integers, which have an exact quotient")
    if dtype in NARROW and second.dtype is dtype:
        first, second = as_type(site, first, DType.INT32), as_type(site, second, DType.INT32)
    whole = combined(site, ops.Mul(), combined(site, ops.Div(), first, second), second)
    rest = combined(site, ops.Sub(), first, whole)
    if not site.integer("fmod", 0):
        zero = Value(site.weights("zero", np.zeros((), rest.dtype.numpy)), ())
        signs = [combined(site, ops.Less(), value, zero, dtype=DType.BOOL) for value in (rest, second)]
        differ = combined(site, ops.NotEqual(), *signs, dtype=DType.BOOL)
        some = combined(site, ops.NotEqual(), rest, zero, dtype=DType.BOOL)
        turned = combined(site, ops.LogicalAnd(), differ, some, dtype=DType.BOOL)
        rest = chosen(site, turned, combined(site, ops.Add(), rest, second), rest)
    return (as_type(site, rest, dtype),)


OPERATORS: Mapping[str, Converter] = {
    "Mod": _modulo,
}
