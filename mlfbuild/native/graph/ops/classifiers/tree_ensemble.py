"""TREE_ENSEMBLE: the sum of one leaf of each decision tree, such as a random forest.

The trees are tables. A node sends a row to its first child if its feature is at most its threshold, otherwise to its
second one; NaN goes to the first child only if the node says so. Readers of model files write other comparisons in
this form, and sort the nodes so that children follow their parents. A leaf is a run of votes: each adds a weight to a
target.

Rows are float32 or integers. ONNX has only rows of float32 and wide integers: the pass ``integer_trees`` makes rows of
narrow integers, and thresholds that give the same comparisons.

The format is mlfbuild's own; TFLite has no such operator, and ONNX has two.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

# In the order of the kernel's arguments; the checks go through both at once.
_TABLES = {
    "features": (DType.INT32, 1),
    "thresholds": (DType.FLOAT32, 1),
    "children": (DType.INT32, 2),
    "nan": (DType.BOOL, 1),
    "roots": (DType.INT32, 1),
    "leaves": (DType.INT32, 1),
    "targets": (DType.INT32, 1),
    "weights": (DType.FLOAT32, 1),
    "base": (DType.FLOAT32, 1),
}
"""The constant inputs behind the rows, in order, with type and rank."""


class TreeEnsemble(Operator):
    """Aggregates the votes of the trees: [rows, features] of float32 or integers to float32 [rows, targets].

    The constant inputs are ``features``, ``thresholds`` (float32, for rows of integers int32), ``children`` [nodes, 2]
    and ``nan`` (whether NaN goes to the first child) of each node; the root of each tree in ``roots``; in ``leaves``,
    the first vote of each leaf and, at the end, the number of votes; ``targets`` and ``weights`` of each vote;
    ``base``, the initial value of each target.
    A child or root of 0 or more is a node, and -1 - leaf a leaf.
    """

    aggregate: str = "SUM"
    """``SUM``, ``MIN`` or ``MAX``; votes are added in the order of the trees, in float32."""

    name = "TREE_ENSEMBLE"
    types = (DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.UINT16, DType.INT32)
    results = (DType.FLOAT32,)

    @rules.takes(1 + len(_TABLES))
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        source, *tables = inputs.present
        if self.aggregate not in _COMBINE:
            return f"aggregates with {self.aggregate}"
        return (
            (None if source.dtype in self.types else f"{source}: the type must be {rules.alternatives(self.types)}")
            or rules.typed(outputs[0], DType.FLOAT32)
            or rules.rank(source, 2)
            or rules.first(_check_table(*pair) for pair in zip(tables, _tables(source), strict=True))
            or rules.shape(outputs[0], (source.shape[0], tables[-1].elements))
            or _check_trees(source.shape[1], [table.known for table in tables])
        )

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        rows, *tables = values.present
        features, thresholds, children, nan, roots, leaves, targets, weights, base = tables
        result = np.broadcast_to(base, outputs[0].shape).copy()
        combine = _COMBINE[self.aggregate]
        for row, sums in zip(rows, result, strict=True):
            for root in roots.tolist():
                at = root
                while at >= 0:
                    value = row[features[at]]
                    # Comparison in float32, in which the thresholds of the file are stored.
                    first = nan[at] if np.isnan(value) else value <= thresholds[at]
                    at = int(children[at, 0 if first else 1])
                # A leaf's votes end where those of the next begin; the last entry of the table is their total.
                for vote in range(leaves[-1 - at], leaves[-at]):
                    sums[targets[vote]] = combine(sums[targets[vote]], weights[vote])
        return (result,)


_COMBINE: Mapping[str, Callable[[np.float32, np.float32], np.float32]] = {
    "SUM": operator.add,
    # Python's ``min`` and ``max`` keep their first argument if the numbers are equal, or one is NaN.
    "MIN": min,
    "MAX": max,
}


def _tables(source: Tensor) -> Iterator[tuple[str, tuple[DType, int]]]:
    """Yield the name, type and rank of each table of a forest with the rows ``source``."""
    for name, (dtype, rank) in _TABLES.items():
        exact = name == "thresholds" and source.dtype is not DType.FLOAT32
        yield name, (DType.INT32 if exact else dtype, rank)


def _check_table(table: Tensor, wanted: tuple[str, tuple[DType, int]]) -> str | None:
    name, (dtype, rank) = wanted
    if not table.constant:
        return f"the {name} {table} are not constant"
    return rules.arithmetic(table, types=(dtype,)) or rules.rank(table, rank)


def _check_trees(width: int, tables: Sequence[Array]) -> str | None:
    """Check that the tables fit together and that every path through them ends at a leaf."""
    features, thresholds, children, nan, roots, leaves, targets, weights, base = tables
    nodes, votes = len(features), len(weights)
    if children.shape != (nodes, 2) or not len(thresholds) == len(nan) == nodes or len(targets) != votes:
        return "the tables of nodes or of votes differ in length"
    if not 0 <= features.min() <= features.max() < width:
        return f"uses features that are not in rows of {width}"
    if not 0 <= targets.min() <= targets.max() < len(base):
        return f"votes for targets that are not among {len(base)}"
    # Each leaf has a vote, because the compiled tables refer to a leaf by the position of its first one.
    if leaves[0] != 0 or leaves[-1] != votes or (np.diff(leaves) < 1).any():
        return f"the leaves do not divide {votes} votes"
    # The kernel checks no index, so that all of them are checked here.
    references = np.concatenate([children.reshape(-1), roots])
    if references.max() >= nodes or references.min() < 1 - len(leaves):
        return "refers to a node or leaf that does not exist"
    # So no path has a cycle, and the kernel needs no limit of steps.
    if ((children >= 0) & (children <= np.arange(nodes)[:, np.newaxis])).any():
        return "a child does not follow its parent"
    return None
