"""TREE_ENSEMBLE with ``parameters: replaceable``: all trees in one table, which has room for others.

Trees that are trained again have another shape in most cases: other features, other nodes, even another number of
trees. So all of that is data, and code and blob agree only on the features, the targets and the size of the table. The
kernel (``tree_stream.h``) uses no number of the table before it has compared it with one of these.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.graph import Array, Node, Tensor
from mlfbuild.native.graph.ops import TreeEnsemble
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.classifiers.tree_splits import Splits, in_stream_order
from mlfbuild.native.lowering.common.parameters import array, input_and_output

_HEADER = "tree_stream.h"
_ITEM = 8
"""Bytes."""
_VOTE, _LAST = 1 << 31, 1 << 30


def stream_call(
    node: Node, ends: tuple[Tensor, Tensor], splits: Splits, roots: Array, votes: tuple[Array, Array, Array],
    base: Array, room: int | None,
) -> KernelCall:  # fmt: skip
    """Return the call of ``mlf_tree_stream`` for the trees with ``roots``; ``ends`` are its input and output.

    ``votes`` are the first vote of each leaf, the targets and the weights. ``room`` is the size of the table in bytes,
    by default the next power of two. Raises ``UnsupportedModelError`` if the trees need more.
    """
    assert isinstance(node.operator, TreeEnsemble)
    source, output = ends
    bits = (2 * source.shape[1] - 1 if splits.floats else source.shape[1]).bit_length()
    items = _items(node, splits, roots, votes, bits)
    reserved = 1 << (items.nbytes - 1).bit_length() if room is None else room - room % _ITEM
    if items.nbytes > reserved:
        raise UnsupportedModelError(
            "trees-beyond-room",
            place=node.place,
            reason=f"needs {items.nbytes:,} bytes for its trees, and the option tree-room reserves {room:,}",
            hint="train smaller trees, or raise tree-room, which needs a new image",
        )
    table = Constant.array("stream", "uint32_t", items.reshape(-1), order=_HEADER)
    fields = {
        "rows": source.shape[0],
        "row_size": source.shape[1] * source.dtype.size,
        "targets": len(base),
        "type": f"MLF_TREE_{source.dtype.name}",
        "nan": f"MLF_TREE_NAN_{'MIXED' if splits.floats else 'SECOND'}",
        "aggregate": f"MLF_TREE_{node.operator.aggregate}",
        "feature_bits": bits,
    }
    return KernelCall("tree_ensemble", _HEADER, (
        Parameter("const uint32_t *", "stream", replace(table, room=reserved)),
        array("base", "float", base),
        *input_and_output(source, output),
    ), (
        *struct_lines("mlf_tree_ensemble", "shape", fields),
        f"mlf_tree_stream(&shape, {source.shape[1]}, {reserved // _ITEM}, stream, base, input, output);",
    ))  # fmt: skip


def _items(node: Node, splits: Splits, roots: Array, votes: tuple[Array, Array, Array], bits: int) -> Array:
    """Return the items, uint32 [items, 2]."""
    starts, targets, weights = votes
    stream = in_stream_order(splits, roots, near=0)
    splits, is_node = stream.splits, stream.items >= 0
    nodes = stream.items[is_node]
    # Each tree has an item in the list at the beginning, and each leaf as many as votes.
    sizes = np.where(is_node, 1, np.diff(starts)[np.where(is_node, 0, -1 - stream.items)])
    places = len(roots) + 1 + np.cumsum(sizes) - sizes
    distances = places[stream.seconds] - places[is_node] - 1
    if distances.max(initial=0) >= 1 << 31 - bits:
        raise UnsupportedModelError(
            "trees-beyond-room",
            place=node.place,
            reason="has trees that are too large for parameters: replaceable",
            hint="train smaller trees",
        )
    stored = (splits.features * 2 + splits.nan if splits.floats else splits.features)[nodes]
    items = np.zeros((len(roots) + 1 + sizes.sum(), 2), np.uint32)
    items[: len(roots), 0] = places[stream.roots]
    items[places[is_node], 0] = stored | distances << bits
    items[places[is_node], 1] = splits.stored_limits(nodes).view(np.uint32)
    pairs = list(pairwise(starts.tolist()))
    heads = _VOTE | targets.astype(np.int64)
    heads[starts[1:] - 1] |= _LAST
    for place, leaf in zip(places[~is_node].tolist(), stream.items[~is_node].tolist(), strict=True):
        first, end = pairs[-1 - leaf]
        items[place : place + end - first, 0] = heads[first:end]
        items[place : place + end - first, 1] = weights[first:end].view(np.uint32)
    return items
