"""Find the scale and zero point to which a float32 tensor is quantised later in the network.

A quantised network in ONNX is a float32 one with pairs of QuantizeLinear and DequantizeLinear around its operators. An
operator between such pairs is computed in integers if it has an integer form. That requires the scale of its output,
which a later node has. Only nodes that preserve the order of numbers, such as a RELU, a maximum or a reshape, may be
between them, because rounding commutes only with those.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mlfbuild.native.frontends.onnx.affine import Affine, Constants
from mlfbuild.native.frontends.onnx.raw_graph import RawNode
from mlfbuild.native.graph import Array, GraphError

MOVEMENT = frozenset(
    {
        "Concat", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice",
        "SpaceToDepth", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze",
    }
)  # fmt: skip
_UNSIGNED = np.dtype(np.uint8)
"""The default output type of QuantizeLinear."""

_MONOTONE = MOVEMENT | {"Clip", "GlobalMaxPool", "MaxPool", "Relu"}


def affine_of(node: RawNode, constants: Constants, dtype: np.dtype[Any] = _UNSIGNED) -> Affine | None:
    """Return the scale and zero point of ``node``, a (De)QuantizeLinear, if they are constant and not blocked.

    ``dtype`` is the type of zero points that are left out.
    """
    scales = constants.get(node.inputs[1])
    if scales is None or scales.dtype not in (np.float32, np.float16) or scales.ndim > 1 or scales.size == 0:
        return None
    scales = scales.astype(np.float32)
    zero_points: Array | None = np.zeros(scales.shape, dtype)
    if len(node.inputs) > 2 and node.inputs[2]:
        zero_points = constants.get(node.inputs[2])
    # Blocks have a scale for each part of a row, which no tensor of the graph can have.
    if zero_points is None or node.attributes.get("block_size", 0) != 0:
        return None
    if zero_points.size != scales.size:
        raise GraphError(node.place, f"has {scales.size} scales and {zero_points.size} zero points")
    axis = node.attributes.get("axis", 1)
    return Affine(scales, zero_points, axis if isinstance(axis, int) else 1)


def targets(nodes: Sequence[RawNode], constants: Constants, outputs: Collection[str]) -> Mapping[str, Affine]:
    """Return the scale and zero point of each name that is quantised later, always in the same way."""

    def found(reader: RawNode, name: str, known: Mapping[str, Affine]) -> Affine | None:
        if reader.operator == "QuantizeLinear" and reader.inputs[:1] == (name,):
            return affine_of(reader, constants)
        return _common(reader, known) if reader.operator in _MONOTONE else None

    return _backwards(nodes, outputs, found)


def sources(nodes: Sequence[RawNode], constants: Constants) -> Mapping[str, Affine]:
    """Return the scale and zero point of integer tensors, which the DequantizeLinear that reads them has."""

    def found(reader: RawNode, name: str, known: Mapping[str, Affine]) -> Affine | None:
        if reader.operator == "DequantizeLinear" and reader.inputs[:1] == (name,):
            return affine_of(reader, constants)
        return _common(reader, known) if reader.operator in MOVEMENT else None

    return _backwards(nodes, (), found)


def _common(node: RawNode, known: Mapping[str, Affine]) -> Affine | None:
    """Return the scale and zero point that all outputs of ``node`` share."""
    # A node with several outputs, such as Split, passes on only what all of them agree on.
    found = [known.get(name) for name in node.outputs if name]
    first = found[0] if found else None
    return first if first and all(other and _equal(first, other) for other in found) else None


def _backwards(
    nodes: Sequence[RawNode],
    excluded: Collection[str],
    found: Callable[[RawNode, str, Mapping[str, Affine]], Affine | None],
) -> dict[str, Affine]:
    """Collect the answers of all readers of each name, from the last node to the first, and keep unanimous ones."""
    known: dict[str, Affine] = {}
    refused = set(excluded)
    # From the end, so that the answers of all readers are known when a node between passes them on.
    for reader in reversed(nodes):
        for name in reader.reads:
            affine = found(reader, name, known)
            # One reader that quantises in another way, or not at all, needs the exact value.
            if affine is None or (name in known and not _equal(known[name], affine)):
                refused.add(name)
            if affine is not None and name not in refused:
                known[name] = affine
            elif name in refused:
                known.pop(name, None)
    return known


def _equal(one: Affine, other: Affine) -> bool:
    return (
        one.zero_points.dtype == other.zero_points.dtype
        and np.array_equal(one.scales.reshape(-1), other.scales.reshape(-1))
        and np.array_equal(one.zero_points.reshape(-1), other.zero_points.reshape(-1))
    )
