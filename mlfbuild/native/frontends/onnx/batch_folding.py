"""Fold a BatchNormalization into the quantised weights of the Conv before it.

The sums of a quantised Conv have one scale per output channel, so a factor per channel changes only these scales (and
the signs of weights, if it is negative), and the offset is added to the bias. The numbers are the same, and no operator
remains between Conv and QuantizeLinear, so that the Conv has an integer form. float32 weights are folded by the
compiler. If the result of Conv is quantised before the normalisation, both are operators of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from mlfbuild.native.frontends.onnx.affine import Affine, Constants, Quantized
from mlfbuild.native.frontends.onnx.raw_graph import RawNode
from mlfbuild.native.graph import Array

_EPSILON = 1e-5
_PARAMETERS = 5
"""The input and four constants of BatchNormalization."""


def with_folded_batches(
    nodes: Sequence[RawNode], constants: Constants, outputs: Collection[str]
) -> tuple[RawNode, ...]:
    """Return ``nodes`` without the BatchNormalizations that can be folded; new weights are added to ``constants``.

    ``outputs`` are the names of the model's outputs, which must stay. The order of nodes does not change.
    """
    return tuple(_folded(nodes, constants, outputs))


def _folded(nodes: Sequence[RawNode], constants: Constants, outputs: Collection[str]) -> Iterator[RawNode]:
    reads = Counter(name for node in nodes for name in node.reads)
    after = {node.inputs[0]: node for node in nodes if node.operator == "BatchNormalization" and node.inputs}
    gone: set[int] = set()
    for position, node in enumerate(nodes):
        # A Conv whose result is read by several nodes, or is an output, must keep its own values.
        batch = after.get(node.outputs[0]) if node.operator == "Conv" and node.outputs else None
        made = None
        if batch is not None and reads[node.outputs[0]] == 1 and node.outputs[0] not in outputs:
            made = _fold(node, batch, constants)
        if made is not None and batch is not None:
            # By identity, because equal nodes may occur more than once.
            gone.update(index for index in range(position, len(nodes)) if nodes[index] is batch)
        if position not in gone:
            yield node if made is None else made


def _fold(conv: RawNode, batch: RawNode, constants: Constants) -> RawNode | None:
    """Return ``conv`` with the factors and offsets of ``batch``; ``None`` if its weights cannot have them."""
    weights = constants.quantized(conv.inputs[1]) if len(conv.inputs) > 1 else None
    numbers = [constants.get(name) for name in batch.inputs[1:]]
    bias = constants.get(conv.inputs[2]) if len(conv.inputs) > 2 and conv.inputs[2] else None
    if weights is None or len(batch.inputs) != _PARAMETERS or any(number is None for number in numbers):
        return None
    # In training mode, mean and variance are computed from the batch.
    if batch.attributes.get("training_mode", 0) or any(batch.outputs[1:]):
        return None
    if len(conv.inputs) > 2 and conv.inputs[2] and bias is None:
        return None
    scale, offset, mean, variance = (np.asarray(number, np.float64) for number in numbers)
    channels = weights.stored.shape[:1]
    if any(number.shape != channels for number in (scale, offset, mean, variance)):
        return None
    epsilon = batch.attributes.get("epsilon", _EPSILON)
    # The formula of BatchNormalization: scale * (x - mean) / sqrt(variance + epsilon) + offset.
    factors = scale / np.sqrt(variance + (epsilon if isinstance(epsilon, float) else _EPSILON))
    scaled = _scaled(weights, factors)
    if scaled is None:
        return None
    # The mean is subtracted before the factor, so that it is multiplied by it together with the bias.
    shifted = (np.zeros(channels) if bias is None else bias.reshape(-1).astype(np.float64)) - mean
    name = batch.outputs[0]
    constants.add_quantized(f"{name}/folded weights", scaled)
    constants.add(f"{name}/folded bias", (shifted * factors + offset).astype(np.float32))
    inputs = (conv.inputs[0], f"{name}/folded weights", f"{name}/folded bias")
    return replace(conv, inputs=inputs, outputs=batch.outputs, written=conv)


def _scaled(weights: Quantized, factors: Array) -> Quantized | None:
    """Return ``weights`` times ``factors``, one per output channel, in the same type."""
    stored, affine = weights.stored, weights.affine
    # A factor of 0 would be a scale of 0.
    if stored.dtype not in (np.int8, np.uint8) or not np.isfinite(factors).all() or (factors == 0).any():
        return None
    if not affine.per_tensor and affine.axis % stored.ndim != 0:
        return None
    channels = stored.shape[0]
    # One factor for each channel makes one scale for each channel, even if there was one scale for all.
    scales, zeros = (np.broadcast_to(values.reshape(-1), (channels,)) for values in (affine.scales, affine.zero_points))
    spread = (-1, *(1 for _ in stored.shape[1:]))
    zero_points = zeros.astype(np.int64).reshape(spread)
    # A scale is positive, so a negative factor changes the signs of the weights.
    signed = (stored.astype(np.int64) - zero_points) * np.sign(factors).astype(np.int64).reshape(spread) + zero_points
    limits = np.iinfo(stored.dtype)
    if signed.min(initial=0) < limits.min or signed.max(initial=0) > limits.max:
        return None
    new = Affine((scales.astype(np.float64) * np.abs(factors)).astype(np.float32), zeros, 0)
    return Quantized(signed.astype(stored.dtype), new) if (new.scales > 0).all() else None
