"""TREE_ENSEMBLE: the trees as the smallest tables that ``tree_ensemble.h`` reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from mlfbuild.native.graph import Array, Graph, Node
from mlfbuild.native.graph.ops import TreeEnsemble
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, struct_lines
from mlfbuild.native.lowering.common.parameters import input_and_output
from mlfbuild.native.settings import CodegenSettings

_HEADER = "tree_ensemble.h"
_FIRST, _SECOND = np.uint32(0x7F800001), np.uint32(0x807FFFFF)
"""What ``mlf_tree_order`` subtracts if NaN goes to the first child of a node, and if it goes to the second one."""
_INT16 = 1 << 15


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_tree_ensemble_<width of tables>_<type of targets>``."""
    operator, (output,) = node.operator, graph.outputs_of(node)
    assert isinstance(operator, TreeEnsemble)
    source, *tensors = graph.inputs_of(node).present
    features, thresholds, children, nan, roots, leaves, targets, weights, base = (
        np.asarray(tensor.data) for tensor in tensors
    )
    always = nan & (thresholds == np.inf)  # has no position that is beyond all others
    children = np.where(always[:, np.newaxis], children[:, :1], children)
    votes = _votes(leaves, targets, weights, roots, children)
    nodes = _nodes(features, thresholds, nan)
    word = "word" if max(len(features), len(votes.weights)) >= _INT16 else nodes.word
    child_type = "int32_t" if word == "word" else "int16_t"
    suffix = "uint8" if len(base) <= 1 << 7 else "uint16"
    parameters = [
        *_features(word, nodes.features),
        *_thresholds(word, nodes),
        _table("children", child_type, votes.children),
        _table("roots", child_type, votes.roots),
        *([] if votes.by_tree == _ONE_TARGET else [_table("targets", f"{suffix}_t", votes.stored(suffix))]),
        _table("weights", "float", votes.weights),
        _table("base", "float", base),
    ]
    names = {parameter.name for parameter in parameters}
    arguments = [name if name in names else "0" for name in _ARGUMENTS]
    fields = {
        "rows": str(source.shape[0]),
        "width": str(source.shape[1]),
        "targets": str(len(base)),
        "trees": str(len(roots)),
        "nan": f"MLF_TREE_NAN_{nodes.nan}",
        "aggregate": f"MLF_TREE_{operator.aggregate}",
        "by_tree": str(votes.by_tree),
    }
    return KernelCall("tree_ensemble", _HEADER, (
        *parameters,
        *input_and_output(source, output),
    ), (
        *struct_lines("mlf_tree_ensemble", "shape", fields),
        f"mlf_tree_ensemble_{word}_{suffix}(&shape, {', '.join(arguments)}, input, output);",
    ))  # fmt: skip


_ARGUMENTS = ("features", "indices", "thresholds", "children", "roots", "targets", "weights", "base")


def _table(name: str, c_type: str, values: Array) -> Parameter:
    data = values.astype(c_type.removesuffix("_t") if c_type != "float" else np.float32)
    return Parameter(f"const {c_type} *", name, Constant.array(name, c_type, data, order=_HEADER))


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The comparisons of the nodes."""

    word: str
    """The narrowest kernel for them, regardless of the number of nodes."""
    features: Array
    orders: Array
    """The thresholds as the kernel compares them."""
    nan: str


def _nodes(features: Array, thresholds: Array, nan: Array) -> _Nodes:
    orders = _orders(thresholds, nan)
    mode = "MIXED" if nan.any() and not nan.all() else "FIRST" if nan.all() else "SECOND"
    stored = features * 2 + nan if mode == "MIXED" else features
    narrow = stored.max() < 1 << 8
    shared = len(np.unique(orders))
    # Shared thresholds take a byte a node and 4 bytes each, others 4 bytes a node.
    word = "half" if not narrow else "shared" if shared <= 1 << 8 and len(orders) > 4 * shared // 3 else "byte"
    return _Nodes("word" if stored.max() >= 1 << 16 else word, stored, orders, mode)


def _orders(thresholds: Array, nan: Array) -> Array:
    """Return the least position of ``mlf_tree_order`` beyond each threshold; no number is beyond NaN."""
    with np.errstate(invalid="ignore"):
        bits = (thresholds + np.float32(0)).view(np.uint32)  # the sum turns -0 to 0
    ordered = bits ^ np.where(bits >> 31, np.uint32(0x7FFFFFFF), np.uint32(0))
    beyond = np.where(np.isnan(thresholds), _SECOND, ordered + np.uint32(1))  # that of -INFINITY, or one further
    found: Array = (beyond - np.where(nan, _FIRST, _SECOND)).view(np.int32)
    return found


def _features(word: str, features: Array) -> Iterator[Parameter]:
    yield _table("features", {"half": "uint16_t", "word": "uint32_t"}.get(word, "uint8_t"), features)


def _thresholds(word: str, nodes: _Nodes) -> Iterator[Parameter]:
    orders = nodes.orders
    if word == "shared":
        orders, indices = np.unique(orders, return_inverse=True)
        yield _table("indices", "uint8_t", indices.reshape(-1))
    yield Parameter("const int32_t *", "thresholds", Constant.packed(orders, _HEADER))


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

    def stored(self, suffix: str) -> Array:
        """Return the table ``targets``."""
        if self.by_tree:
            return self.targets
        last = self.last.astype(np.int64) << (8 * np.dtype(suffix).itemsize - 1)
        return np.asarray(self.targets | last)


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
    return _Votes(_VOTES, targets[kept], ends[kept], weights[kept], _moved(children, starts), _moved(roots, starts))


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
