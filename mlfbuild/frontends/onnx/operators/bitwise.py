"""BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot and BitShift; narrow integers are computed as int32."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.frontends.onnx.operators.elementwise import NARROW, as_type, combined
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import DType, GraphError, Operator, ops


def _bitwise(operator: Operator) -> Converter:
    def convert(site: OnnxSite) -> tuple[Value, ...]:
        return (_on_bits(site, operator, _integers(site, 0), _integers(site, 1)),)

    return convert


def _not(site: OnnxSite) -> tuple[Value, ...]:
    value = _integers(site, 0)
    ones = site.made(site.weights("ones", np.array(~value.dtype.numpy.type(0), value.dtype.numpy)))
    return (_on_bits(site, ops.BitwiseXor(), value, ones),)


def _shift(site: OnnxSite) -> tuple[Value, ...]:
    """Shift unsigned integers, of which uint8 is the only supported type."""
    direction = site.text("direction", "")
    if direction not in _SHIFTS:
        raise GraphError(site.node.place, f"the direction {direction!r} is neither 'LEFT' nor 'RIGHT'")
    if site.value(0).dtype is not DType.UINT8:
        raise site.type_unsupported(site.value(0).tensor, "uint8")
    return (_on_bits(site, _SHIFTS[direction], site.value(0), site.value(1)),)


_SHIFTS: Mapping[str, Operator] = {"LEFT": ops.LeftShift(), "RIGHT": ops.RightShift()}


def _integers(site: OnnxSite, index: int) -> Value:
    value = site.value(index)
    if value.dtype in {DType.BOOL, DType.FLOAT32}:
        raise site.type_unsupported(value.tensor, "integers")
    return value


def _on_bits(site: OnnxSite, operator: Operator, first: Value, second: Value) -> Value:
    dtype = first.dtype
    if dtype in NARROW and second.dtype is dtype:
        first, second = as_type(site, first, DType.INT32), as_type(site, second, DType.INT32)
    return as_type(site, combined(site, operator, first, second), dtype)


OPERATORS: Mapping[str, Converter] = {
    "BitShift": _shift,
    "BitwiseAnd": _bitwise(ops.BitwiseAnd()),
    "BitwiseNot": _not,
    "BitwiseOr": _bitwise(ops.BitwiseOr()),
    "BitwiseXor": _bitwise(ops.BitwiseXor()),
}
