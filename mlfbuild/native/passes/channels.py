"""The channels of tensors: which input channel each output channel of an operator comes from, and their ranges.

The channels of a tensor are the elements of its last dimension. Operators such as pools and additions compute each
channel of their output from the same channel of their inputs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Array, DType, Graph, Node, Operator, Tensor, integer_range
from mlfbuild.native.graph.bases import (
    QUANTIZED,
    Binary,
    Unary,
    centred,
    convolution_tensors,
    finish,
    has_room,
    resting,
)
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected, Pad, Reshape

Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]

_CHANNELWISE = frozenset(
    {"ADD_N", "AVERAGE_POOL_2D", "DEPTHWISE_CONV_2D", "MAX_POOL_2D", "PAD", "PADV2", "QUANTIZE", "RESHAPE", "SQUEEZE"}
)
"""Operators that compute each channel of their output from one channel of each input, beside unary and binary ones.

Those of families that few networks have are named, so that their files are not imported.
"""
_JOINS, _REDUCTIONS = "CONCATENATION", frozenset({"MEAN", "REDUCE_MAX"})
_WRAPS = 1 << 31
_MOST_ELEMENTS = 1 << 22
"""Weights of a layer, and elements of a tensor, up to which ranges are computed, because they take memory.

The result of a PAD can have gigabytes.
"""
_INFINITE = 1e200
"""Stands for infinity, whose product with 0 is not a number; above all float32 numbers and products."""


@dataclass(frozen=True)
class Ranges:
    """The least and the greatest stored value of each channel of a tensor, shape (channels,)."""

    least: Numbers
    greatest: Numbers

    @property
    def constant(self) -> npt.NDArray[np.bool_]:
        """Mark the channels with one value."""
        return np.asarray(self.least == self.greatest)


def channels_of(tensor: Tensor) -> int:
    """Return the size of the last dimension; 1 for a scalar."""
    return tensor.shape[-1] if tensor.shape else 1


def filtering(graph: Graph, node: Node) -> tuple[Tensor, Tensor, Tensor | None, Tensor] | None:
    """Return (input, weights, bias, output) of a layer that mixes channels and has constant weights, or ``None``.

    Such a layer reads all channels of its input for each channel of its output, so that a channel without weights can
    be removed. Layers with too many weights or sums without room for a folded constant are excluded.
    """
    if not isinstance(node.operator, Conv2D | FullyConnected) or getattr(node.operator, "in_double", False):
        return None
    tensors = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    source, weights, bias, _ = tensors
    known = weights.constant and (bias is None or bias.constant) and not source.constant
    known = known and weights.elements <= _MOST_ELEMENTS
    # Folding adds to the bias, which must stay within the sums of 48 bits.
    if source.dtype is DType.INT16 and not has_room(weights, bias, weights.shape[0]):
        return None
    return tensors if known and weights.shape[-1] % channels_of(source) == 0 else None


def is_padded(node: Node) -> bool:
    """Return whether the filter of ``node`` covers positions outside of its input."""
    return isinstance(node.operator, Conv2D | DepthwiseConv2D) and node.operator.padding != ((0, 0), (0, 0))


def by_input_channel(weights: Tensor, source: Tensor) -> Numbers:
    """Return constant ``weights`` without their zero point, shape (outputs, taps or positions, input channels)."""
    return centred(weights, weights.known).reshape(weights.shape[0], -1, channels_of(source))


def ties(graph: Graph, node: Node) -> Mapping[str, Indices] | None:
    """Return the channel of each input that each channel of the output comes from; -1 if from none.

    Constants and inputs of one channel, which all channels use, are not listed. Returns ``None`` if the operator mixes
    channels or is not known.
    """
    operator = node.operator
    known = isinstance(operator, Binary | Unary) or operator.name in {_JOINS, *_REDUCTIONS, *_CHANNELWISE}
    if not known or len(node.outputs) != 1:
        return None
    inputs, (output,) = graph.inputs_of(node).present, graph.outputs_of(node)
    if isinstance(operator, DepthwiseConv2D) and (inputs[0].constant or not inputs[1].constant):
        return None
    if operator.name == _JOINS and vars(operator)["axis"] == len(output.shape) - 1:
        return _joined(inputs, channels_of(output))
    found: dict[str, Indices] = {}
    for tensor in inputs:
        indices = None if tensor.constant else _tied(operator, tensor, output)
        if indices is not None:
            found[tensor.name] = indices
        elif not tensor.constant and not isinstance(operator, Binary):  # its smaller inputs have one channel
            return None
    return found


def _joined(inputs: Sequence[Tensor], count: int) -> Mapping[str, Indices] | None:
    """Return the ties of tensors whose channels are joined; ``None`` if one of them occurs twice."""
    found: dict[str, Indices] = {}
    first = 0
    for tensor in inputs:
        if tensor.name in found:
            return None
        if not tensor.constant:
            found[tensor.name] = np.full(count, -1)
            found[tensor.name][first : first + channels_of(tensor)] = np.arange(channels_of(tensor))
        first += channels_of(tensor)
    return found


def _tied(operator: Operator, source: Tensor, output: Tensor) -> Indices | None:
    """Return the channel of ``source`` for each channel of the output; ``None`` if channels are mixed or differ."""
    size, straight = channels_of(source), np.arange(channels_of(output))
    last = len(source.shape) - 1
    if isinstance(operator, DepthwiseConv2D):
        return straight // operator.depth_multiplier
    # A last dimension that is a multiple of the other one repeats the channels in order; other shapes mix them.
    if isinstance(operator, Reshape):
        return straight % size if len(straight) % size == 0 else None
    if isinstance(operator, Pad) and any(operator.paddings[-1]):
        return None
    if operator.name in _REDUCTIONS and last in vars(operator)["axes"]:
        return None
    return straight if size == len(straight) else None


def ranges_of(graph: Graph) -> Mapping[str, Ranges]:
    """Return the ranges of all tensors that nodes read or write.

    Numbers are stored values for quantised tensors, real ones for float32, in float64. A range may be wider than
    necessary, and never narrower.
    """
    found: dict[str, Ranges] = {}
    for name in graph.sources:
        found[name] = _any(graph.tensor(name))
    for tensor in graph.constants:
        found[tensor.name] = _of_constant(tensor)
    for node in graph.nodes:
        for name in node.outputs:
            found[name] = _any(graph.tensor(name))
        if len(node.outputs) == 1:
            found[node.outputs[0]] = _of_result(graph, node, found)
    return found


def _any(tensor: Tensor) -> Ranges:
    """Return the range of the type."""
    least, greatest = integer_range(tensor.dtype) if tensor.dtype in QUANTIZED else (-np.inf, np.inf)
    count = channels_of(tensor)
    return Ranges(np.full(count, float(least)), np.full(count, float(greatest)))


def _of_constant(tensor: Tensor) -> Ranges:
    rows = tensor.known.reshape(-1, channels_of(tensor)).astype(np.float64)
    return Ranges(rows.min(axis=0), rows.max(axis=0))


def _of_result(graph: Graph, node: Node, found: Mapping[str, Ranges]) -> Ranges:
    """Return the ranges of the only output of ``node``, the inputs of which have the ranges ``found``."""
    (output,) = graph.outputs_of(node)
    layer = filtering(graph, node)
    if layer is not None:
        source, weights, _, _ = layer
        return _of_sums(graph, node, by_input_channel(weights, source).transpose(1, 2, 0), found[source.name])
    tied = ties(graph, node)
    if tied is None or output.dtype not in {*QUANTIZED, DType.FLOAT32}:
        return _any(output)
    if isinstance(node.operator, DepthwiseConv2D):
        source, weights, _, _ = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
        inputs, indices = found[source.name], tied[source.name]
        taps = np.concatenate(by_input_channel(weights, weights))[:, np.newaxis]
        return _of_sums(graph, node, taps, Ranges(inputs.least[indices], inputs.greatest[indices]))
    return _of_channels(graph, node, tied, found)


def _of_sums(graph: Graph, node: Node, factors: Numbers, inputs: Ranges) -> Ranges:
    """Return the ranges of a layer with weights ``factors``, shape (taps, input channels or 1, output channels).

    If the second dimension is 1, each output channel has one of the ``inputs``.
    """
    source, weights, bias, output = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
    operator = node.operator
    assert isinstance(operator, Conv2D | DepthwiseConv2D | FullyConnected)
    above, below = np.maximum(factors, 0).sum(axis=0), np.minimum(factors, 0).sum(axis=0)
    # A weight of 0 times an unknown float32 must be 0, and infinity times 0 is not a number.
    least, greatest = (
        np.clip(side, -_INFINITE, _INFINITE) - resting(source) for side in (inputs.least, inputs.greatest)
    )
    if is_padded(node):  # products may be left out
        least, greatest = np.minimum(least, 0), np.maximum(greatest, 0)
    # A depthwise layer has one input for each output, so that there is no sum over channels.
    times = np.multiply if len(above) == 1 else np.matmul
    # The least sum: each positive weight meets the least input, each negative one the greatest.
    lower = times(least, above) + times(greatest, below)
    bounds = np.concatenate([lower, times(greatest, above) + times(least, below)]).reshape(2, -1)
    offset = np.zeros(channels_of(output)) if bias is None or bias.data is None else bias.data.reshape(-1)
    rescales, wide = operator.rescales(source, weights, output), operator.sums_are_wide(source, bias)
    unknown = np.zeros(channels_of(output), bool)
    if source.dtype is DType.FLOAT32:
        terms = times(np.maximum(np.abs(least), np.abs(greatest)), above - below)
        # The error of n additions in any order is below n * eps * the sum of the magnitudes.
        error = (terms + np.abs(offset)) * (factors.size // terms.size + 1) * np.finfo(np.float32).eps
        bounds += np.where(terms == 0, 0, error) * np.array([[-1], [1]])
    else:  # outside of 32 bits, sums wrap; those of 64 bits wrap when they are rescaled
        left = np.array([rescale.shift if wide else rescale.left_shift for rescale in rescales])
        unknown = np.abs(bounds + offset).max(axis=0) * 2.0**left >= _WRAPS
        bounds[:, unknown] = 0
    added = None if bias is None else bias.data
    results = finish(bounds, added, rescales, output, operator.activation, wide=wide, fine=operator.fine)
    anything = _any(output)
    return Ranges(np.where(unknown, anything.least, results[0]), np.where(unknown, anything.greatest, results[1]))


def _of_channels(graph: Graph, node: Node, tied: Mapping[str, Indices], found: Mapping[str, Ranges]) -> Ranges:
    """Return the ranges of an operator whose channels are ``tied``: known where all its inputs are constant."""
    inputs, (output,) = graph.inputs_of(node), graph.outputs_of(node)
    known = np.ones(channels_of(output), bool)
    for tensor in inputs.present:
        if not tensor.constant:
            constant, indices = found[tensor.name].constant, tied.get(tensor.name)
            known &= constant.all() if indices is None else (constant[indices] | (indices < 0))
    anything = _any(output)
    largest = max(tensor.elements for tensor in (*inputs.present, output))
    if not known.any() or largest > _MOST_ELEMENTS:
        return anything
    values = inputs.map(lambda tensor: _filled(tensor, found[tensor.name]))
    rows = node.operator.reference(inputs, values, (output,))[0].reshape(-1, channels_of(output))
    # Padding, for example, makes the borders of a constant channel differ from its inside.
    known &= (rows == rows[0]).all(axis=0)
    return Ranges(np.where(known, rows[0], anything.least), np.where(known, rows[0], anything.greatest))


def _filled(tensor: Tensor, ranges: Ranges) -> Array:
    """Return a value of ``tensor`` whose channels have one element each."""
    if tensor.data is not None:
        return tensor.data
    finite = np.where(ranges.constant, ranges.least, 0)
    return np.broadcast_to(finite.astype(tensor.dtype.numpy), tensor.shape)
