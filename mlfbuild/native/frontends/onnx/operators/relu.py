"""Relu and Clip (float32 and int8), LeakyRelu, PRelu, ThresholdedRelu and Shrink."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import (
    Converter,
    add,
    binary,
    of_one_tensor,
    relation,
    select,
    subtract,
    unary,
)
from mlfbuild.native.frontends.onnx.operators.elementwise import combined, extreme
from mlfbuild.native.frontends.onnx.operators.unary import with_integers
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, GraphError, Operator, Quantization, Tensor, ops, quantize_value

_KNOWN_CLAMPS: Mapping[tuple[float, float], Operator] = {
    (0.0, math.inf): ops.Relu(), (0.0, 6.0): ops.Relu6(), (-1.0, 1.0): ops.ReluN1To1()
}  # fmt: skip
"""RELU, RELU6 and similar operators by their bounds."""


def _clip(site: OnnxSite) -> tuple[Value, ...]:
    """Clamp to bounds, which are attributes before opset 11 and inputs since, constant or computed."""
    if site.opset < 11:
        low, high = site.real_attribute("min", -math.inf), site.real_attribute("max", math.inf)
    elif any(site.has(index) and not site.is_constant(index) for index in (1, 2)):
        return (_clipped(site),)
    else:
        low, high = _bound(site, 1, "minimum", -math.inf), _bound(site, 2, "maximum", math.inf)
    return (_clamped_value(site, low, high),)


def _clipped(site: OnnxSite) -> Value:
    """Clamp to computed bounds; if the least is greater than the greatest, the result is the greatest."""
    value = site.value(0)
    for index, what, operator in ((1, "minimum", ops.Maximum()), (2, "maximum", ops.Minimum())):
        if not site.has(index):
            continue
        bound = site.value(index)
        if bound.tensor.elements != 1 or bound.dtype is not value.dtype:
            raise GraphError(
                site.node.place, f"the {what} {bound.tensor} is not one number of type {value.dtype.value}"
            )
        number = Value(site.builder.reshaped(bound.tensor, ()), ())
        value = extreme(site, operator, value, number)
    return value


def _bound(site: OnnxSite, index: int, what: str, default: float) -> float:
    return float(site.constant_number(index, what)) if site.has(index) else default


def _relu(site: OnnxSite) -> tuple[Value, ...]:
    return (_clamped_value(site, 0.0, math.inf),)


def _clamped_value(site: OnnxSite, low: float, high: float) -> Value:
    """Clamp input 0; a quantised one is clamped with its own scale, because rounding keeps the order of numbers."""
    held = site.held(0)
    if held.dtype is not DType.FLOAT32:
        return _clamped_whole(site, site.value(0), low, high)
    if held.quantization is None or low > high:
        value = site.value(0)
        return Value(clamped(site, value.tensor, low, high), value.order)
    return clamped_integers(site, held, low, high)


def clamped_integers(site: OnnxSite, held: Value, low: float, high: float) -> Value:
    """Return the quantised value ``held``, clamped with its own scale."""
    assert held.quantization is not None
    return held.moved(_clamped_integers(site, held.tensor, held.quantization, low, high), held.order)


def _clamped_whole(site: OnnxSite, value: Value, low: float, high: float) -> Value:
    """Clamp integers that are not quantised."""
    if value.dtype is DType.BOOL:
        raise site.type_unsupported(value.tensor, "a type of numbers")
    limits = np.iinfo(value.dtype.numpy)
    if limits.min < low < math.inf:
        value = extreme(site, ops.Maximum(), value, _limit(site, value, min(low, limits.max)))
    if -math.inf < high < limits.max:
        value = extreme(site, ops.Minimum(), value, _limit(site, value, max(high, limits.min)))
    return value


def _limit(site: OnnxSite, value: Value, bound: float) -> Value:
    return site.made(site.weights("bound", np.array(int(bound), value.dtype.numpy)))


def _clamped_integers(site: OnnxSite, tensor: Tensor, held: Quantization, low: float, high: float) -> Tensor:
    limits = np.iinfo(tensor.dtype.numpy)
    least, greatest = (_stored_bound(bound, held, limits) for bound in (low, high))
    if (low, high) in _KNOWN_CLAMPS and (least > limits.min or greatest < limits.max):
        return site.emit(_KNOWN_CLAMPS[low, high], [tensor], tensor.shape, quantization=held)
    return limited(site, tensor, least if least > limits.min else None, greatest if greatest < limits.max else None)


def limited(site: OnnxSite, tensor: Tensor, least: int | None, greatest: int | None) -> Tensor:
    """Return the quantised ``tensor`` with its integers clamped."""
    held, dtype = tensor.quantization, tensor.dtype.numpy
    if (least, greatest) == (0, None) and held is not None and held.zero_points == (0,):  # fused into the layer before
        if site.builder.is_rectified(tensor):
            return tensor
        return site.emit(ops.Relu(), [tensor], tensor.shape, quantization=held)
    if least is not None:
        limit = site.weights("minimum", np.array(least, dtype), held)
        tensor = site.emit(ops.Maximum(), [tensor, limit], tensor.shape, quantization=held)
    if greatest is not None:
        limit = site.weights("maximum", np.array(greatest, dtype), held)
        tensor = site.emit(ops.Minimum(), [tensor, limit], tensor.shape, quantization=held)
    return tensor


def _stored_bound(bound: float, held: Quantization, limits: np.iinfo[Any]) -> int:
    """Return the integer that represents ``bound``, the nearest one if it is outside of ``limits``."""
    try:
        return max(limits.min, min(limits.max, quantize_value(bound, held.scale, held.zero_point)))
    except OverflowError:  # infinite, or nearly so
        return limits.max if bound > 0 else limits.min


def clamped(site: OnnxSite, tensor: Tensor, low: float, high: float) -> Tensor:
    """Return ``tensor`` clamped, by RELU, RELU6 or a similar operator if it has these bounds."""
    if (low, high) in _KNOWN_CLAMPS:
        return unary(site, _KNOWN_CLAMPS[low, high], tensor)
    if low > -math.inf:
        tensor = binary(site, ops.Maximum(), tensor, site.number("minimum", low))
    if high < math.inf:
        tensor = binary(site, ops.Minimum(), tensor, site.number("maximum", high))
    return tensor


def _prelu(site: OnnxSite) -> tuple[Value, ...]:
    """Multiply negative elements by a slope, which broadcasts to the input."""
    value, slope = site.value(0), site.value(1)
    if slope.rank > value.rank:
        raise site.unsupported(f"a slope of {slope.rank} dimensions for {value.rank} dimensions is not supported")
    return (combined(site, ops.PRelu(), value, slope),)


def _leaky_relu(site: OnnxSite) -> tuple[Value, ...]:
    return with_integers(ops.LeakyRelu(site.real_attribute("alpha", 0.01)))(site)


def _thresholded_relu(site: OnnxSite) -> tuple[Value, ...]:
    """Y = x where x > alpha, else 0."""
    alpha = site.real_attribute("alpha", 1.0)
    return of_one_tensor(lambda site, x: select(site, relation(site, ops.Greater(), x, alpha), x, 0.0))(site)


def _shrink(site: OnnxSite) -> tuple[Value, ...]:
    """Y = x + bias where x < -lambd, x - bias where x > lambd, else 0."""
    bias, threshold = site.real_attribute("bias", 0.0), site.real_attribute("lambd", 0.5)

    def compute(site: OnnxSite, x: Tensor) -> Tensor:
        above = select(site, relation(site, ops.Greater(), x, threshold), subtract(site, x, bias), 0.0)
        return select(site, relation(site, ops.Less(), x, -threshold), add(site, x, bias), above)

    return of_one_tensor(compute)(site)


OPERATORS: Mapping[str, Converter] = {
    "Clip": _clip,
    "LeakyRelu": _leaky_relu,
    "PRelu": _prelu,
    "Relu": _relu,
    "Shrink": _shrink,
    "ThresholdedRelu": _thresholded_relu,
}
