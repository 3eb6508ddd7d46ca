"""Activations: Relu, Clip and others with bounds, and the ones made of exp, tanh or erf."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.activations import (
    hard_sigmoid,
    scaled_elu,
    softplus,
    softsign,
    thresholded,
)
from mlfbuild.native.frontends.onnx.conversion.elementwise import combined, extreme, in_integers, of_one_tensor
from mlfbuild.native.frontends.onnx.conversion.rescaling import clamped, clamped_integers, scaled
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import DType, GraphError, Tensor, ops


def _clip(op: OpContext) -> tuple[Value, ...]:
    """Clamp to bounds, which are attributes before opset 11 and inputs since, constant or computed."""
    if op.opset < 11:
        low, high = op.real_attribute("min", -math.inf), op.real_attribute("max", math.inf)
    # From version 11 on, bounds may be results of other nodes.
    elif any(op.has(index) and not op.is_constant(index) for index in (1, 2)):
        return (_clipped(op),)
    else:
        low, high = _bound(op, 1, "minimum", -math.inf), _bound(op, 2, "maximum", math.inf)
    return (_clamped_value(op, low, high),)


def _clipped(op: OpContext) -> Value:
    """Clamp to computed bounds; if the least is greater than the greatest, the result is the greatest."""
    value = op.value(0)
    # The order matters if the bounds are the wrong way round: the last one wins.
    for index, what, operator in ((1, "minimum", ops.Maximum()), (2, "maximum", ops.Minimum())):
        if not op.has(index):
            continue
        bound = op.value(index)
        if bound.tensor.elements != 1 or bound.dtype is not value.dtype:
            raise GraphError(op.node.place, f"the {what} {bound.tensor} is not one number of type {value.dtype.value}")
        number = Value(op.builder.reshaped(bound.tensor, ()), ())
        value = extreme(op, operator, value, number)
    return value


def _bound(op: OpContext, index: int, what: str, default: float) -> float:
    return float(op.constant_number(index, what)) if op.has(index) else default


def _clamped_value(op: OpContext, low: float, high: float) -> Value:
    """Clamp input 0; a quantised one is clamped with its own scale, because rounding keeps the order of numbers."""
    held = op.held(0)
    if held.dtype is not DType.FLOAT32:
        return _clamped_whole(op, op.value(0), low, high)
    # A clamp in integers needs bounds in order.
    if held.quantization is None or low > high:
        value = op.value(0)
        return Value(clamped(op, value.tensor, low, high), value.order)
    return clamped_integers(op, held, low, high)


def _clamped_whole(op: OpContext, value: Value, low: float, high: float) -> Value:
    """Clamp integers that are not quantised."""
    if value.dtype is DType.BOOL:
        raise op.type_unsupported(value.tensor, "a type of numbers")
    limits = np.iinfo(value.dtype.numpy)
    if limits.min < low < math.inf:
        # A bound outside of the type has no effect, or would not fit into its constant.
        value = extreme(op, ops.Maximum(), value, _limit(op, value, min(low, limits.max)))
    if -math.inf < high < limits.max:
        value = extreme(op, ops.Minimum(), value, _limit(op, value, max(high, limits.min)))
    return value


def _limit(op: OpContext, value: Value, bound: float) -> Value:
    return op.made(op.weights("bound", np.array(int(bound), value.dtype.numpy)))


def _prelu(op: OpContext) -> tuple[Value, ...]:
    """Multiply negative elements by a slope, which broadcasts to the input."""
    value, slope = op.value(0), op.value(1)
    if slope.rank > value.rank:
        raise op.unsupported(f"a slope of {slope.rank} dimensions for {value.rank} dimensions is not supported")
    return (combined(op, ops.PRelu(), value, slope),)


def _of_attributes(compute: Callable[..., Tensor], **defaults: float) -> Converter:
    """Return the converter that applies ``compute`` with the attributes that ``defaults`` names, as keywords."""

    def convert(op: OpContext) -> tuple[Value, ...]:
        numbers = {name: op.real_attribute(name, default) for name, default in defaults.items()}
        return of_one_tensor(lambda op, x: compute(op, x, **numbers))(op)

    return convert


def _shrink(op: OpContext, x: Tensor, bias: float, lambd: float) -> Tensor:
    """Return x + bias where x < -lambd, x - bias where x > lambd, else 0."""
    above = op.select(op.relation(ops.Greater(), x, lambd), op.subtract(x, bias), 0.0)
    return op.select(op.relation(ops.Less(), x, -lambd), op.add(x, bias), above)


def _elu(op: OpContext) -> tuple[Value, ...]:
    """Y = x, or alpha * (exp(x) - 1) where x is negative."""
    alpha = op.real_attribute("alpha", 1.0)
    if alpha == 1.0:
        return in_integers(op, ops.Elu())
    return of_one_tensor(lambda op, x: scaled_elu(op, x, alpha))(op)


def _selu(op: OpContext, x: Tensor, alpha: float, gamma: float) -> Tensor:
    """Return gamma * x, or gamma * alpha * (exp(x) - 1) where x is negative."""
    return op.multiply(scaled_elu(op, x, alpha), gamma)


def _celu(op: OpContext) -> tuple[Value, ...]:
    """Y = x, or alpha * (exp(x / alpha) - 1) where x is negative."""
    alpha = op.real_attribute("alpha", 1.0)
    if not alpha > 0.0:
        raise op.unsupported(f"alpha {alpha:g} is not positive")

    def compute(op: OpContext, x: Tensor) -> Tensor:
        # ELU is exp(x) - 1 for negative numbers only, and x for others: the sum of both clamped halves needs no
        # selection.
        below = clamped(op, op.unary(ops.Elu(), op.multiply(x, 1 / alpha)), -math.inf, 0.0)
        return op.add(op.unary(ops.Relu(), x), op.multiply(below, alpha))

    return of_one_tensor(compute)(op)


def _gelu(op: OpContext) -> tuple[Value, ...]:
    """Y = x / 2 * (1 + erf(x / sqrt(2))), or its approximation by tanh."""
    approximate = op.text("approximate", "none")
    if approximate not in _GELU_GATES:
        raise GraphError(op.node.place, f"attribute approximate is {approximate!r}")

    def compute(op: OpContext, x: Tensor) -> Tensor:
        gate = op.add(_GELU_GATES[approximate](op, x), 1.0)
        return op.multiply(op.multiply(x, gate), 0.5)

    return of_one_tensor(compute)(op)


def _exact_gate(op: OpContext, x: Tensor) -> Tensor:
    return op.unary(ops.Erf(), op.multiply(x, math.sqrt(0.5)))


def _tanh_gate(op: OpContext, x: Tensor) -> Tensor:
    """Return tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))."""
    factor = op.add(op.multiply(op.multiply(x, x), 0.044715), 1.0)
    return op.unary(ops.Tanh(), op.multiply(op.multiply(x, factor), math.sqrt(2 / math.pi)))


_GELU_GATES: Mapping[str, Callable[[OpContext, Tensor], Tensor]] = {"none": _exact_gate, "tanh": _tanh_gate}


def _hard_sigmoid(op: OpContext) -> tuple[Value, ...]:
    """Y = max(0, min(1, alpha * x + beta))."""
    alpha, beta = op.real_attribute("alpha", 0.2), op.real_attribute("beta", 0.5)
    held = op.held(0)
    if held.quantization is not None and held.tensor.dtype is DType.INT16:  # int8 becomes a table
        made = scaled(op, np.asarray(alpha), np.asarray(beta), held.order)
        if made is not None:
            return (clamped_integers(op, made, 0.0, 1.0),)
    return of_one_tensor(lambda op, x: hard_sigmoid(op, x, alpha, beta))(op)


def _mish(op: OpContext, x: Tensor) -> Tensor:
    """Return x * tanh(log(1 + exp(x)))."""
    return op.multiply(x, op.unary(ops.Tanh(), softplus(op, x)))


def _swish(op: OpContext, x: Tensor, alpha: float) -> Tensor:
    """Return x / (1 + exp(-alpha * x))."""
    steep = x if alpha == 1.0 else op.multiply(x, alpha)
    return op.multiply(x, op.unary(ops.Logistic(), steep))


def _swiglu(op: OpContext) -> tuple[Value, ...]:
    """Y = swish(a) * b."""
    gate, alpha = op.value(0), op.real_attribute("alpha", 1.0)
    gated = Value(_swish(op, gate.tensor, alpha), gate.order)
    return (combined(op, ops.Mul(), gated, op.value(1)),)


OPERATORS: Mapping[str, Converter] = {
    "Celu": _celu,
    "Clip": _clip,
    "Elu": _elu,
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": lambda op: in_integers(op, ops.LeakyRelu(op.real_attribute("alpha", 0.01))),
    "Mish": of_one_tensor(_mish),
    "PRelu": _prelu,
    "Relu": lambda op: (_clamped_value(op, 0.0, math.inf),),
    "Selu": _of_attributes(_selu, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875),
    "Shrink": _of_attributes(_shrink, bias=0.0, lambd=0.5),
    "Softplus": of_one_tensor(softplus),
    "Softsign": of_one_tensor(softsign),
    "SwiGLU": _swiglu,
    "Swish": _of_attributes(_swish, alpha=1.0),
    "ThresholdedRelu": _of_attributes(thresholded, alpha=1.0),
}
