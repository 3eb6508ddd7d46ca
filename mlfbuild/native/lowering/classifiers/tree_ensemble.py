"""TREE_ENSEMBLE: the trees as the smallest tables that ``tree_ensemble.h`` reads."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from mlfbuild.native.graph import Array, Graph, Node
from mlfbuild.native.graph.ops import TreeEnsemble
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.classifiers.tree_code import branch_code
from mlfbuild.native.lowering.classifiers.tree_splits import Splits, Stream, in_stream_order, splits_of
from mlfbuild.native.lowering.common.parameters import input_and_output
from mlfbuild.native.settings import TREES_AS_CODE, CodegenSettings

_HEADER = "tree_ensemble.h"
_WORDS = {"shared": 2, "half": 4, "word": 3}
"""The words of a node in each form of the tables."""
_ARGUMENTS = ("nodes", "roots", "thresholds", "starts", "targets", "weights", "base")


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_tree_ensemble_<form of tables>_<type of targets>``, or the trees as code."""
    operator, (output,) = node.operator, graph.outputs_of(node)
    assert isinstance(operator, TreeEnsemble)
    source, *tensors = graph.inputs_of(node).present
    features, thresholds, children, nan, roots, leaves, targets, weights, base = (tensor.known for tensor in tensors)
    splits, roots = splits_of(source.dtype, features, thresholds, nan, children, roots)
    if settings.replaceable:
        from mlfbuild.native.lowering.classifiers.tree_stream import stream_call  # few models need it

        parts = leaves, targets, weights
        return stream_call(node, (source, output), splits, roots, parts, base, settings.tree_room)
    if settings.trees == TREES_AS_CODE:
        votes_of = [list(zip(targets[a:b].tolist(), weights[a:b], strict=True)) for a, b in pairwise(leaves.tolist())]
        return branch_code(node, (source, output), splits, roots, votes_of, base, fpu=settings.has("fpu"))
    votes = _votes(leaves, targets, weights, roots, splits.children)
    tables = _tables(replace(splits, children=votes.children), votes.roots, len(votes.last))
    # The highest bit of a stored target marks the last vote of a leaf, so that a byte has 7 bits for the target.
    suffix = "uint16" if votes.target_bits or len(base) > 1 << 7 else "uint8"
    parameters = [
        _table("nodes", "int32_t" if tables.form == "word" else "int16_t", tables.nodes),
        _table("roots", "int32_t", tables.roots),
        *([Parameter("const int32_t *", "thresholds", Constant.packed(tables.thresholds, _HEADER))]
          if tables.form == "shared" else []),
        *([_table("starts", "uint16_t", tables.starts)] if tables.starts.size else []),
        *([] if votes.by_tree == _ONE_TARGET else [_table("targets", f"{suffix}_t", votes.stored(suffix))]),
        _table("weights", "float", votes.weights),
        _table("base", "float", base),
    ]  # fmt: skip
    names = {parameter.name for parameter in parameters}
    arguments = [name if name in names else "0" for name in _ARGUMENTS]
    fields = {
        "rows": source.shape[0],
        "row_size": source.shape[1] * source.dtype.size,
        "targets": len(base),
        "trees": len(roots),
        "type": f"MLF_TREE_{source.dtype.name}",
        "nan": f"MLF_TREE_NAN_{tables.nan}",
        "aggregate": f"MLF_TREE_{operator.aggregate}",
        "by_tree": votes.by_tree,
        "feature_bits": tables.feature_bits,
        "by_feature": int(tables.starts.size > 0),
        "target_bits": votes.target_bits,
    }
    return KernelCall("tree_ensemble", _HEADER, (
        *parameters,
        *input_and_output(source, output),
    ), (
        *struct_lines("mlf_tree_ensemble", "shape", fields),
        f"mlf_tree_ensemble_{tables.form}_{suffix}(&shape, {', '.join(arguments)}, input, output);",
    ))  # fmt: skip


def _table(name: str, c_type: str, values: Array) -> Parameter:
    data = values.astype(c_type.removesuffix("_t") if c_type != "float" else np.float32)
    return Parameter(f"const {c_type} *", name, Constant.array(name, c_type, data, order=_HEADER))


@dataclass(frozen=True, eq=False)
class _Tables:
    """The tables of the nodes."""

    form: str
    nan: str
    nodes: Array
    roots: Array
    thresholds: Array
    starts: Array
    """The first threshold of each feature; empty unless the thresholds of each feature are together."""
    feature_bits: int


def _tables(splits: Splits, roots: Array, votes: int) -> _Tables:
    """Return the smallest tables that hold the nodes of ``splits`` and refer to so many ``votes``."""
    stream, mode = in_stream_order(splits, roots), splits.nan_mode
    splits, is_node = stream.splits, stream.items >= 0
    nodes = stream.items[is_node]
    stored = (splits.features * 2 + splits.nan if mode == "MIXED" else splits.features)[nodes]
    beyond = splits.stored_limits(nodes)
    # In the narrow forms, a word has a sign and 15 bits.
    narrow = {form: votes <= _WORD and _reach(stream, words) < _WORD for form, words in _WORDS.items()}
    half = narrow["half"] and stored.max(initial=0) < _WORD
    shared = _shared(splits.features[nodes], stored, beyond) if narrow["shared"] and len(nodes) else None
    # Bytes of a node: 4 with thresholds elsewhere, 8 or 12 with its own, of 16 or 32 bits.
    if shared is not None and 4 * len(nodes) + shared.size <= (8 if half else 12) * len(nodes):
        form, columns = "shared", [shared.first]
    else:
        form, shared = "half" if half else "word", None
        columns = [stored, *beyond.reshape(-1, 1).view("<i2" if half else "<i4").T]
    places = _places(stream, _WORDS[form])
    words = np.repeat(stream.items, np.where(is_node, _WORDS[form], 1))
    for offset, column in enumerate([columns[0], places[stream.seconds] - places[is_node], *columns[1:]]):
        words[places[is_node] + offset] = column
    starts = places[stream.roots]
    if shared is None:
        return _Tables(form, mode, words, starts, _NOTHING, _NOTHING, 0)
    return _Tables(form, mode, words, starts, shared.thresholds, shared.starts, shared.feature_bits)


_WORD = 1 << 15
_WORTH = 512
"""The bytes for which equal weights are stored once."""
_NOTHING = np.empty(0, np.int32)


def _places(stream: Stream, words: int) -> Array:
    """Return the first word of each item if a node has so many ``words``."""
    sizes = np.where(stream.items >= 0, words, 1)
    return np.asarray(np.cumsum(sizes) - sizes)


def _reach(stream: Stream, words: int) -> int:
    """Return the greatest distance between a node and its second child, in words."""
    places = _places(stream, words)
    return int(np.abs(places[stream.seconds] - places[stream.items >= 0]).max(initial=0))


@dataclass(frozen=True, eq=False)
class _Shared:
    """Thresholds that are stored once, and the first word of each node."""

    first: Array
    thresholds: Array
    starts: Array
    feature_bits: int

    @property
    def size(self) -> int:
        """Bytes of the tables of thresholds."""
        return 4 * len(self.thresholds) + 2 * len(self.starts)


def _shared(features: Array, stored: Array, beyond: Array) -> _Shared | None:
    """Return the smaller way to store equal thresholds once, for all features or for each; ``None`` if none fits."""
    bits = int(stored.max()).bit_length()
    values, positions = np.unique(beyond, return_inverse=True)
    found = [_Shared(stored | positions.reshape(-1) << bits, values, _NOTHING, bits)]
    # By feature, then by threshold, in one number.
    pairs, positions = np.unique((features.astype(np.int64) << 32) + beyond, return_inverse=True)
    # Half of 2**32 is added, because a negative threshold borrows one from the feature above it.
    starts = np.searchsorted(pairs + (1 << 31) >> 32, np.arange(features.max() + 1))
    first = stored | positions.reshape(-1) - starts[features] << bits
    found.append(_Shared(first, pairs.astype(np.int32), starts, bits))
    fitting = [each for each in found if each.first.max() < _WORD and each.starts.max(initial=0) < 1 << 16]
    return min(fitting, key=lambda each: each.size, default=None)


_VOTES, _TREES, _ONE_TARGET = range(3)
"""Values of ``by_tree``: the target is in each vote, in each tree, or always 0."""


@dataclass(frozen=True, eq=False)
class _Votes:
    """The leaves, equal ones once, and the references to them."""

    by_tree: int
    targets: Array
    last: Array
    """Whether each vote is the last one of its leaf."""
    weights: Array
    children: Array
    roots: Array
    target_bits: int = 0
    """If not 0, the targets have the position of the weight in the bits above."""

    def stored(self, suffix: str) -> Array:
        """Return the table ``targets``."""
        if self.by_tree:
            return self.targets
        last = self.last.astype(np.int64) << (8 * np.dtype(suffix).itemsize - 1)
        return np.asarray(self.targets | last)

    def packed(self) -> _Votes:
        """Return the votes with equal weights stored once, if they then fit in 16 bits and take much less memory."""
        bits = int(self.targets.max()).bit_length()
        weights, positions = np.unique(self.weights.view(np.int32), return_inverse=True)
        targets = self.targets | positions.reshape(-1) << bits
        votes = len(self.targets)
        # To find the weight takes 4 instructions of a vote.
        # Per vote 2 bytes, and each weight once, instead of 1 byte and a weight of 4.
        if not bits or targets.max() >= _WORD or 2 * votes + 4 * len(weights) > 5 * votes - _WORTH:
            return self
        return replace(self, targets=targets, weights=weights.view(np.float32), target_bits=bits)


def _votes(leaves: Array, targets: Array, weights: Array, roots: Array, children: Array) -> _Votes:
    counts = np.diff(leaves)
    of_trees = _targets_of_trees(targets[leaves[:-1]], roots, children) if (counts == 1).all() else None
    if of_trees is not None:
        # By their bits, because -0 and 0 are equal numbers, and NaN is none.
        bits, positions = np.unique(weights.view(np.int32), return_inverse=True)
        starts = positions.reshape(-1)
        by_tree = _TREES if of_trees.any() else _ONE_TARGET
        last = np.ones(len(bits), np.bool_)
        return _Votes(by_tree, of_trees, last, bits.view(np.float32), _moved(children, starts), _moved(roots, starts))
    places: dict[tuple[bytes, bytes], int] = {}
    kept: list[int] = []
    starts = np.zeros(len(counts), np.int64)
    for leaf, (begin, end) in enumerate(zip(leaves[:-1].tolist(), leaves[1:].tolist(), strict=True)):
        key = targets[begin:end].tobytes(), weights[begin:end].tobytes()
        if key not in places:
            places[key] = len(kept)
            kept.extend(range(begin, end))
        starts[leaf] = places[key]
    ends = np.zeros(len(weights), np.bool_)
    ends[leaves[1:] - 1] = True
    votes = _Votes(_VOTES, targets[kept], ends[kept], weights[kept], _moved(children, starts), _moved(roots, starts))
    return votes.packed()


def _moved(references: Array, starts: Array) -> Array:
    """Return ``references`` with the first vote of each leaf instead of its number."""
    found: Array = np.where(references < 0, -1 - starts[np.clip(-1 - references, 0, len(starts) - 1)], references)
    return found


def _targets_of_trees(targets: Array, roots: Array, children: Array) -> Array | None:
    """Return the target of each tree; ``None`` if the leaves of a tree, whose ``targets`` these are, have several."""
    found: list[int] = []
    for root in roots.tolist():
        seen: set[int] = set()
        pending: list[int] = [root]
        reached: set[int] = set()
        while pending:
            at = pending.pop()
            if at < 0:
                reached.add(int(targets[-1 - at]))
            elif at not in seen:
                seen.add(at)
                pending.extend(children[at].tolist())
        if len(reached) > 1:
            return None
        found.extend(reached)
    return np.array(found)
