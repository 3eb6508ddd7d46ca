"""float32 arithmetic on tensors of the graph, of which converters make what has no operator of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.frontends.onnx.site import Site
from mlfbuild.graph import GraphError, Operator, Tensor, ops


def binary(site: Site, operator: Operator, first: Tensor, second: Tensor) -> Tensor:
    """Return ``operator`` of two tensors that broadcast."""
    try:
        shape = np.broadcast_shapes(first.shape, second.shape)
    except ValueError:
        raise GraphError(site.node.place, f"{first} and {second} do not broadcast") from None
    return site.emit(operator, [first, second], shape)


def unary(site: Site, operator: Operator, tensor: Tensor) -> Tensor:
    """Return ``operator`` of every element."""
    return site.emit(operator, [tensor], tensor.shape)


def add(site: Site, first: Tensor, second: Tensor | float) -> Tensor:
    """Return first + second."""
    return binary(site, ops.Add(), first, _tensor(site, second))


def subtract(site: Site, first: Tensor, second: Tensor | float) -> Tensor:
    """Return first - second."""
    return binary(site, ops.Sub(), first, _tensor(site, second))


def multiply(site: Site, first: Tensor, second: Tensor | float) -> Tensor:
    """Return first * second."""
    return binary(site, ops.Mul(), first, _tensor(site, second))


def divide(site: Site, first: Tensor, second: Tensor | float) -> Tensor:
    """Return first / second."""
    return binary(site, ops.Div(), first, _tensor(site, second))


def reduced(site: Site, kind: type[ops.Mean | ops.Sum | ops.ReduceMax], tensor: Tensor, axes: Sequence[int]) -> Tensor:
    """Return ``tensor`` reduced along its stored ``axes``, which stay as dimensions of 1."""
    operator = kind(tuple(sorted(axes)), keep_dims=True)
    return site.emit(operator, [tensor], operator.output_shape(tensor.shape))


def _tensor(site: Site, number: Tensor | float) -> Tensor:
    return number if isinstance(number, Tensor) else site.number("number", number)
