"""Arithmetic on tensors of the graph, for converters of operators that the graph lacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, GraphError, Operator, Tensor, ops

Converter = Callable[[OnnxSite], tuple[Value, ...]]


def of_one_tensor(compute: Callable[[OnnxSite, Tensor], Tensor]) -> Converter:
    """Return a converter that applies ``compute`` element by element, regardless of the stored order.

    If the input is quantised and so is the result, that is done at once, and ``tabulation`` makes a table of it all.
    """

    def convert(site: OnnxSite) -> tuple[Value, ...]:
        value, target = site.value(0), site.held_target
        made = compute(site, value.tensor)
        if (
            target is None
            or site.target is None
            or site.held(0).quantization is None
            or made.dtype is not DType.FLOAT32
        ):
            return (Value(made, value.order),)
        return (site.real(site.emit(ops.Quantize(), [made], made.shape, site.target.holder, target), value.order),)

    return convert


def binary(site: OnnxSite, operator: Operator, first: Tensor, second: Tensor | float) -> Tensor:
    """Apply ``operator`` to two tensors, with broadcasting."""
    second = _tensor(site, second, first.dtype)
    try:
        shape = np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise GraphError(site.node.place, f"{first} and {second} do not broadcast") from None
    return site.emit(operator, [first, second], shape)


def unary(site: OnnxSite, operator: Operator, tensor: Tensor) -> Tensor:
    """Apply ``operator`` to every element."""
    return site.emit(operator, [tensor], tensor.shape)


def add(site: OnnxSite, first: Tensor, second: Tensor | float) -> Tensor:
    """Return first + second."""
    return binary(site, ops.Add(), first, second)


def subtract(site: OnnxSite, first: Tensor, second: Tensor | float) -> Tensor:
    """Return first - second."""
    return binary(site, ops.Sub(), first, second)


def multiply(site: OnnxSite, first: Tensor, second: Tensor | float) -> Tensor:
    """Return first * second."""
    return binary(site, ops.Mul(), first, second)


def divide(site: OnnxSite, first: Tensor, second: Tensor | float) -> Tensor:
    """Return first / second."""
    return binary(site, ops.Div(), first, second)


def relation(site: OnnxSite, operator: Operator, first: Tensor, second: Tensor | float) -> Tensor:
    """Return the result of the comparison ``operator``, element by element."""
    other = _tensor(site, second, first.dtype)
    return site.emit(operator, [first, other], np.broadcast_shapes(first.shape, other.shape), DType.BOOL)


def select(site: OnnxSite, condition: Tensor, first: Tensor | float, second: Tensor | float) -> Tensor:
    """Return elements of ``first`` where ``condition`` is true, else of ``second``."""
    like = next((tensor.dtype for tensor in (first, second) if isinstance(tensor, Tensor)), DType.FLOAT32)
    tensors = condition, _tensor(site, first, like), _tensor(site, second, like)
    shape = np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    return site.emit(ops.SelectV2(), tensors, shape, tensors[1].dtype)


def cast(site: OnnxSite, tensor: Tensor, dtype: DType) -> Tensor:
    """Return ``tensor`` as another type."""
    return tensor if tensor.dtype is dtype else site.emit(ops.Cast(), [tensor], tensor.shape, dtype)


def reduced(
    site: OnnxSite, kind: type[ops.Mean | ops.Sum | ops.ReduceMax | ops.ReduceMin], tensor: Tensor, axes: Sequence[int]
) -> Tensor:
    """Return ``tensor`` reduced along its stored ``axes``, which stay as dimensions of 1."""
    operator = kind(tuple(sorted(axes)), keep_dims=True)
    return site.emit(operator, [tensor], operator.output_shape(tensor.shape))


def _tensor(site: OnnxSite, number: Tensor | float, dtype: DType) -> Tensor:
    return number if isinstance(number, Tensor) else site.weights("number", np.array(number, dtype.numpy))
