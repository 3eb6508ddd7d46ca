"""Mod."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, unary
from mlfbuild.native.frontends.onnx.operators.elementwise import WIDER, as_type, chosen, combined, unsigned_quotient
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, ops


def _modulo(site: OnnxSite) -> tuple[Value, ...]:
    """Return the remainder of a division, with the sign of the divisor, or of the dividend if ``fmod`` is set."""
    first, second, fmod = site.value(0), site.value(1), site.integer("fmod", 0)
    dtype = first.dtype
    if dtype is DType.FLOAT32:
        return (_float_remainder(site, first, second) if fmod else combined(site, ops.FloorMod(), first, second),)
    if dtype is second.dtype is DType.UINT64:
        return (unsigned_quotient(site, first, second)[1],)
    if dtype in WIDER and second.dtype is dtype:
        first, second = as_type(site, first, WIDER[dtype]), as_type(site, second, WIDER[dtype])
    rest = combined(site, ops.FloorMod(), first, second)
    if fmod:
        zero = Value(site.weights("zero", np.zeros((), rest.dtype.numpy)), ())
        signs = [combined(site, ops.Less(), value, zero, dtype=DType.BOOL) for value in (rest, first)]
        differ = combined(site, ops.NotEqual(), *signs, dtype=DType.BOOL)
        some = combined(site, ops.NotEqual(), rest, zero, dtype=DType.BOOL)
        turned = combined(site, ops.LogicalAnd(), differ, some, dtype=DType.BOOL)
        rest = chosen(site, turned, combined(site, ops.Sub(), rest, second), rest)
    return (as_type(site, rest, dtype),)


def _float_remainder(site: OnnxSite, first: Value, second: Value) -> Value:
    """Return the exact remainder of the magnitudes, with the sign of ``first``."""
    magnitudes = (Value(unary(site, ops.Abs(), value.tensor), value.order) for value in (first, second))
    rest = combined(site, ops.FloorMod(), *magnitudes)
    negative = combined(site, ops.Less(), first, Value(site.number("zero", 0.0), ()), dtype=DType.BOOL)
    return chosen(site, negative, Value(unary(site, ops.Neg(), rest.tensor), rest.order), rest)


OPERATORS: Mapping[str, Converter] = {
    "Mod": _modulo,
}
