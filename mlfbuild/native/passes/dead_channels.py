"""Remove channels that have one value for every input, or that nothing uses.

Trained networks with ReLU have filters that are all zero, or whose results never reach the activation's lower bound, so
that a channel is one constant. The next layer's bias then includes its contribution, which is exact in integers. The
channel needs neither weights nor memory nor time.

The channels of a tensor are the elements of its last dimension. Two kinds of operators are distinguished
(``channels.py``):

- Layers, CONV_2D and FULLY_CONNECTED with constant weights, mix channels: an output needs every input channel of which
  one of its weights is not 0.
- Operators with ties, such as depthwise convolutions, pools, additions and activations, compute a channel of the output
  from at most one channel of each input. Such a channel is removed from all tensors between two layers, or from none.

All other operators need all of their channels. So do inputs, outputs and states of the network.

The steps:

1. Ranges: from the inputs on, compute the least and the greatest stored value of each channel. For layers and depthwise
   convolutions that is interval arithmetic on the sums, then the rescaling and activation of the reference. Sums that
   could wrap have an unknown range; those of float32 get a margin for rounding. Other operators with ties are computed
   for the channels whose inputs are constant. A channel is constant if both values are equal.
2. Demand: a layer needs an input channel for an output if the weights are not all 0 and the channel cannot be folded.
   A constant channel can be folded. If the filter covers padding, it must be the stored value of 0, because otherwise
   its contribution differs at the borders.
3. From the outputs back, collect the channels that are needed, until nothing changes.
4. Round the number of channels of each tensor up to a multiple of four, because kernels compute four at once, and
   collect again, because that needs other channels.
5. Cut weights, biases and scales to the kept channels. The new bias of a layer is the old one plus, for each constant
   channel, the sum of its weights times the difference of the constant and the stored value of 0.

For example, two FULLY_CONNECTED layers, scales of 1 and zero points of 0::

    h = [[1, 1], [0, 0], [1, -1]] * x + [0, 5, 0]
    y = [1, 2, 0] * h + 7

Channel 1 of ``h`` is always 5, and ``y`` does not use channel 2. Without the rounding to four, one channel is left, and
2 * 5 moves into the bias::

    h = [[1, 1]] * x + [0]
    y = [1] * h + 17

With it this network stays as it is, because three channels are fewer than four.

The pass never changes a result of an integer network, and it removes nothing approximately: a used channel that varies
by one step stays. In float32, the new bias is rounded once, so that results may differ by rounding. Layers of more than
4 million weights keep all channels, and so do networks with more than 4 million channels. The options
``dead-channels: keep`` and ``trace`` switch it off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mlfbuild.core import counted
from mlfbuild.native.graph import Array, DType, Graph, Node, Tensor
from mlfbuild.native.graph.bases import convolution_tensors, resting
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, FullyConnected
from mlfbuild.native.passes.channels import (
    Indices,
    Ranges,
    by_input_channel,
    channels_of,
    filtering,
    is_padded,
    ranges_of,
    ties,
)
from mlfbuild.native.passes.rewrite import picked, rebuild

# True at the channels that are kept, or needed: one element for each index of the last dimension.
Mask = npt.NDArray[np.bool_]

_MOST_CHANNELS = 1 << 22
"""Channels of all tensors up to which they are examined, because that takes memory and time."""


@np.errstate(all="ignore")  # weights may be infinite or not a number
def remove_dead_channels(graph: Graph, multiple: int = 4) -> Graph:
    """Return ``graph`` without channels that are constant or unused; ``Graph.notes`` then has their number.

    Each tensor keeps a multiple of ``multiple`` channels if it has as many, because kernels compute four at once. A
    network with very many channels stays as it is.
    """
    # Each element of a long vector is a channel, so that a small file can have very many.
    if sum(channels_of(tensor) for tensor in graph.tensors.values()) > _MOST_CHANNELS:
        return graph
    ranges = ranges_of(graph)
    kept = _kept(graph, ranges, multiple)
    removed = {name: mask for name, mask in kept.items() if not mask.all()}
    if not removed:
        return graph
    extra: list[Tensor] = []
    for name, mask in removed.items():
        tensor = graph.tensor(name)
        # Scales along the last dimension shrink with the channels; those of another axis are the same as before.
        affine = picked(tensor.quantization, mask, len(tensor.shape) - 1)
        extra.append(replace(tensor, shape=(*tensor.shape[:-1], int(mask.sum())), quantization=affine))
    nodes = [_trimmed(graph, node, kept, ranges, extra) for node in graph.nodes]
    smaller = rebuild(graph, nodes, extra)
    return smaller.with_notes((*graph.notes, _note(graph, removed)))


def _note(graph: Graph, removed: Mapping[str, Mask]) -> str:
    layers = [node.outputs[0] for node in graph.nodes if filtering(graph, node) and node.outputs[0] in removed]
    masks = np.concatenate([removed[name] for name in layers])
    return (
        f"{np.count_nonzero(~masks)} of {len(masks)} channels in {counted(len(layers), 'layer')} are constant or "
        "unused and were removed; the option dead-channels: keep keeps them"
    )


def _kept(graph: Graph, ranges: Mapping[str, Ranges], multiple: int) -> dict[str, Mask]:
    """Return the channels to keep of each tensor that a node reads or writes and that is not constant."""
    # Start with nothing and add what is needed: channels of operators in a cycle of ties would otherwise keep each
    # other.
    kept = {
        name: np.zeros(channels_of(graph.tensor(name)), bool)
        for node in graph.nodes
        for name in (*node.inputs, *node.outputs)
        if name is not None and not graph.tensor(name).constant
    }
    # The interface of the network must not change, even if the caller would never see a difference.
    for name in (*graph.sources, *graph.results):
        kept[name] = np.ones(channels_of(graph.tensor(name)), bool)
    demands = [_Demand.of(graph, node, ranges) for node in graph.nodes]
    _spread(demands, kept)
    # Only now, because a channel added for the multiple of four can need further channels of its own inputs.
    for mask in kept.values():
        count = int(np.count_nonzero(mask))
        wanted = max(count + -count % multiple, multiple)
        # The first of the others, so that the choice is the same in every build.
        mask[np.flatnonzero(~mask)[: wanted - count]] = True
    _spread(demands, kept)
    return kept


@dataclass(frozen=True)
class _Demand:
    """The channels that a node needs for those that it writes."""

    node: Node
    needed: Mask | None
    """Of a layer that mixes channels, shape (outputs, inputs): weights other than 0 that cannot be folded."""
    tied: Mapping[str, Indices] | None
    """Of another node, its ``ties``."""

    @classmethod
    def of(cls, graph: Graph, node: Node, ranges: Mapping[str, Ranges]) -> _Demand:
        """Return the demand of ``node``."""
        layer = filtering(graph, node)
        if layer is None:
            return cls(node, None, ties(graph, node))
        source, weights, _, _ = layer
        # Over all taps: a channel is useful to an output if one weight of the whole filter is not 0.
        useful = by_input_channel(weights, source).any(axis=1)
        return cls(node, np.asarray(useful & ~_foldable(node, source, ranges[source.name])), None)

    def add_to(self, kept: Mapping[str, Mask]) -> None:
        """Add to ``kept`` the channels that the node needs, and those that it writes because it reads them."""
        output = self.node.outputs[0]
        if self.needed is not None:
            kept[str(self.node.inputs[0])][self.needed[kept[output]].any(axis=0)] = True
            return
        names = [name for name in self.node.inputs if name is not None and name in kept]
        if self.tied is None:
            # No known relation of the channels, as with SOFTMAX: everything that goes in or comes out stays.
            for name in (*names, *self.node.outputs):
                kept[name][:] = True
            return
        alone = np.ones(len(kept[output]), bool)
        for name in names:
            if name not in self.tied:
                # An input without a tie, such as a scalar operand, is read for every output and cannot lose channels.
                kept[name][:] = True
                continue
            # -1 means that an output channel does not come from this input, as with the other parts of a CONCATENATION.
            inside = self.tied[name] >= 0
            alone &= ~inside
            indices = self.tied[name][inside]
            # ``at`` and not plain indexing, because one input channel may feed several outputs, and the last would win.
            np.logical_or.at(kept[name], indices, kept[output][inside])
            # The other direction: an operator with ties writes every channel that it reads, so a kept input forces its
            # output.
            kept[output][inside] |= kept[name][indices]
        kept[output][alone] = True


def _spread(demands: Sequence[_Demand], kept: Mapping[str, Mask]) -> None:
    """Add to ``kept`` the channels from which those in it are computed, until nothing changes."""
    before = -1
    # Masks only grow and are finite, so that the loop ends; comparing the count is cheaper than comparing all masks.
    while before != (before := sum(int(np.count_nonzero(mask)) for mask in kept.values())):
        # Demand goes from outputs to inputs, ties in both directions: one round each way settles most networks.
        for demand in (*reversed(demands), *demands):
            demand.add_to(kept)


def _foldable(node: Node, source: Tensor, ranges: Ranges) -> Mask:
    """Mark the constant channels whose contribution to a layer is the same for all its outputs."""
    # A layer with padding adds nothing for a pixel outside the image, which equals a constant channel only at rest.
    if not is_padded(node):
        return ranges.constant
    return np.asarray(ranges.constant & (ranges.least == resting(source)))


def _trimmed(
    graph: Graph, node: Node, kept: Mapping[str, Mask], ranges: Mapping[str, Ranges], extra: list[Tensor]
) -> Node:
    """Return ``node`` on the channels that are kept; its new constants are added to ``extra``."""
    if all(kept[name].all() for name in (*node.inputs, *node.outputs) if name is not None and name in kept):
        return node
    layer = filtering(graph, node)
    if layer is not None:
        constants = _layer_constants(node, *layer, kept, ranges)
        return _with_constants(graph, node, constants, extra)
    mask = kept[node.outputs[0]]
    if isinstance(node.operator, DepthwiseConv2D):
        # Weights are 1HW(C*m): their last dimension is that of the output, so one mask fits weights, bias and output.
        _, weights, bias, _ = convolution_tensors(graph.inputs_of(node), graph.outputs_of(node))
        constants = [_sliced(weights, mask)]
        if bias is not None and bias.data is not None:
            # A bias may have leading dimensions of 1; flattened, its channels are the last dimension like all others.
            flat = replace(bias, shape=(bias.elements,), data=bias.data.reshape(-1), quantization=None)
            constants.append(_sliced(flat, mask))
        return _with_constants(graph, node, constants, extra)
    return replace(node, inputs=tuple(_operand(graph, node, at, mask, extra) for at in range(len(node.inputs))))


def _operand(graph: Graph, node: Node, at: int, mask: Mask, extra: list[Tensor]) -> str | None:
    """Return the name of input ``at`` of an operator on the channels ``mask``."""
    name = node.inputs[at]
    tensor = None if name is None else graph.tensor(name)
    if tensor is None or not tensor.constant or channels_of(tensor) != len(mask):
        return name
    extra.append(replace(_sliced(tensor, mask), name=_unused(graph, f"{node.outputs[0]}/operand{at}")))
    return extra[-1].name


def _unused(graph: Graph, name: str) -> str:
    """Return a name that no tensor of ``graph`` has: ``name`` if possible."""
    while name in graph.tensors:
        name = f"{name}/kept"
    return name


def _with_constants(graph: Graph, node: Node, constants: list[Tensor], extra: list[Tensor]) -> Node:
    """Return a layer with other weights and bias, which are added to ``extra``."""
    named = [
        # New names, because a constant may be shared with a node whose channels stay.
        replace(tensor, name=_unused(graph, f"{node.outputs[0]}/{word}"))
        for tensor, word in zip(constants, ("weights", "bias"), strict=False)
    ]
    extra.extend(named)
    return replace(node, inputs=(node.inputs[0], *(tensor.name for tensor in named)))


def _sliced(tensor: Tensor, mask: Mask) -> Tensor:
    """Return the channels ``mask`` of a constant; the scales belong to its last dimension, if it has several.

    ``mask`` has one element for each index of the last dimension.
    """
    data = np.ascontiguousarray(tensor.known[..., mask])
    affine = picked(tensor.quantization, mask, len(tensor.shape) - 1)
    return replace(tensor, shape=data.shape, data=data, quantization=affine)


def _layer_constants(
    node: Node,
    source: Tensor,
    weights: Tensor,
    bias: Tensor | None,
    output: Tensor,
    kept: Mapping[str, Mask],
    ranges: Mapping[str, Ranges],
) -> list[Tensor]:
    """Return weights and bias of a layer on the channels that are kept; the bias includes the others."""
    # Weights are [outputs, ..., inputs]: rows follow the output's channels, columns the input's.
    rows, columns = kept[output.name], kept[source.name]
    factors = by_input_channel(weights, source)[rows]
    folds = ~columns & factors.any(axis=(0, 1))
    # Exact: products of int8 or int16 summed in float64, which has 53 bits.
    folded = factors[:, :, folds].sum(axis=1) @ (ranges[source.name].least[folds] - resting(source))
    # FULLY_CONNECTED may read several rows of channels as one vector, so that its depth is a multiple of them.
    shape = (-1, weights.elements // weights.shape[0] // len(columns), len(columns))
    data = np.ascontiguousarray(weights.known.reshape(shape)[rows][:, :, columns])
    trimmed_shape = (data.shape[0], *weights.shape[1:-1], weights.shape[-1] // len(columns) * int(columns.sum()))
    data = data.reshape(trimmed_shape)
    trimmed = replace(weights, shape=data.shape, data=data, quantization=picked(weights.quantization, rows, 0))
    # Nothing was folded: a layer without a bias stays without one.
    if bias is None and not folded.any():
        return [trimmed]
    return [trimmed, _bias(node, source, weights, bias, rows, folded)]


def _bias(
    node: Node, source: Tensor, weights: Tensor, bias: Tensor | None, rows: Mask, folded: npt.NDArray[np.float64]
) -> Tensor:
    """Return ``bias`` plus ``folded``, which wraps like the sums of the layer."""
    assert isinstance(node.operator, Conv2D | FullyConnected)
    if bias is not None:
        dtype = bias.dtype
    elif source.dtype is DType.FLOAT32:
        dtype = DType.FLOAT32
    else:
        # Without a bias its type would decide the width of the sums, so that the new one must not change it.
        dtype = DType.INT64 if node.operator.sums_are_wide(source, None) else DType.INT32
    old: Array = np.zeros(len(rows)) if bias is None or bias.data is None else bias.data.reshape(-1)
    if dtype is DType.FLOAT32:
        data: Array = (old[rows].astype(np.float64) + folded).astype(np.float32)
    else:
        # The cast wraps like the accumulator does, so that a bias near the end of its range gives the same sums.
        data = (old[rows].astype(np.int64) + folded.astype(np.int64)).astype(dtype.numpy)
    return Tensor(f"{weights.name}/bias", data.shape, dtype, data=data)
