"""TreeEnsemble, TreeEnsembleClassifier and TreeEnsembleRegressor.

Every comparison becomes "at most": ``x < t`` is ``x <= u`` for the float u before t; ``x > t`` and ``x >= t`` exchange
the children; equality is two nodes, and membership of a set two nodes per member. NaN then goes to the first child or
not, node by node.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.classification import (
    both_classes,
    check_not_transformed,
    class_labels,
    greatest_class,
    labelled,
    numbers,
    post_transformed,
    rows,
    texts,
)
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import Array, GraphError, Tensor, ops

_MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
"""The comparisons; the operator TreeEnsemble writes them as numbers."""

Key = tuple[int, int]
"""A node or leaf: its tree and its number; in a TreeEnsemble 0 and a node's or 1 and a leaf's number."""


@dataclass
class _Split:
    """A node of the file."""

    mode: str
    feature: int
    value: float
    true: Key
    false: Key
    nan_true: bool
    members: tuple[float, ...] = ()


@dataclass
class _Tables:
    """The tables of the operator under construction; nodes are added after their children."""

    width: int
    place: str
    features: list[int] = field(default_factory=list)
    thresholds: list[np.float32] = field(default_factory=list)
    children: list[tuple[int, int]] = field(default_factory=list)
    nan: list[bool] = field(default_factory=list)
    leaves: list[Key] = field(default_factory=list)

    def at_most(self, feature: int, value: np.float32, first: int, second: int, *, nan_first: bool) -> int:
        """Add the node that goes to ``first`` if the feature is at most ``value``; return its number."""
        if not 0 <= feature < self.width:
            raise GraphError(self.place, f"compares feature {feature} of {self.width}")
        self.features.append(feature)
        self.thresholds.append(value)
        self.children.append((first, second))
        self.nan.append(nan_first)
        return len(self.features) - 1

    def equal(self, split: _Split, value: np.float32, true: int, false: int, *, nan_first: bool) -> int:
        """Add the two nodes that go to ``true`` if the feature equals ``value``."""
        # First above the value, then below it: equality is what neither excludes.
        below = self.at_most(split.feature, _before(value), false, true, nan_first=False)
        return self.at_most(split.feature, value, below, false, nan_first=nan_first)


def _before(value: np.float32) -> np.float32:
    """Return the greatest float below ``value``: NaN, which no number is at most, below -infinity."""
    # x < value is x <= the float before it, as there is none between them: one kind of comparison is enough for all
    # modes.
    before: np.float32 = np.float32(np.nan if value == -np.inf else np.nextafter(value, np.float32(-np.inf)))
    return before


def _add(tables: _Tables, split: _Split, true: int, false: int) -> int:
    """Add the nodes of ``split``, whose children have been added; return the number of the first one."""
    value, nan = np.float32(split.value), split.nan_true
    if np.isnan(value):
        raise GraphError(tables.place, "compares with a threshold that is not a number")
    if split.mode in {"LEQ", "LT"}:
        limit = value if split.mode == "LEQ" else _before(value)
        return tables.at_most(split.feature, limit, true, false, nan_first=nan)
    if split.mode in {"GT", "GTE"}:
        limit = value if split.mode == "GT" else _before(value)
        return tables.at_most(split.feature, limit, false, true, nan_first=not nan)
    if split.mode == "EQ":
        return tables.equal(split, value, true, false, nan_first=nan)
    if split.mode == "NEQ":  # the second of the two nodes sends NaN to the "true" of equality
        return tables.equal(split, value, false, true, nan_first=not nan)
    found = false
    for member in sorted({float(np.float32(member)) for member in split.members}, reverse=True):
        below = tables.at_most(split.feature, _before(np.float32(member)), false, true, nan_first=False)
        found = tables.at_most(split.feature, np.float32(member), below, found, nan_first=nan)
    return found


@dataclass
class _Forest:
    """The nodes of a file, the root of each tree, and the votes (target, weight) of each leaf."""

    splits: Mapping[Key, _Split]
    roots: Sequence[Key]
    votes: Mapping[Key, Sequence[tuple[int, float]]]


def _aggregated(op: OpContext, forest: _Forest, base: Array, aggregate: str = "SUM") -> Tensor:
    """Return the votes [rows, targets] of ``forest``, added to ``base``."""
    source = rows(op)
    tables = _Tables(source.shape[1], op.node.place)
    numbered: dict[Key, int] = {}
    roots = np.array([_number(forest, root, tables, numbered) for root in forest.roots])
    votes = [_counting(op, forest.votes.get(leaf, ()), aggregate) for leaf in tables.leaves]
    # The kernel needs an element in each table, even if all trees are leaves.
    if not tables.features:
        tables.at_most(0, np.float32(0), -1, -1, nan_first=False)
    targets = np.array([target for leaf in votes for target, _ in leaf])
    if targets.min() < 0 or targets.max() >= len(base):
        raise GraphError(op.node.place, f"votes for a class or target that is not among {len(base)}")
    children, last = np.array(tables.children), len(tables.features) - 1
    constants = {  # in reverse order, so that nodes precede their children
        "features": np.array(tables.features[::-1], np.int32),
        "thresholds": np.array(tables.thresholds[::-1], np.float32),
        "children": np.where(children < 0, children, last - children)[::-1].astype(np.int32),
        "nan": np.array(tables.nan[::-1], np.bool_),
        "roots": np.where(roots < 0, roots, last - roots).astype(np.int32),
        "leaves": np.cumsum([0, *map(len, votes)]).astype(np.int32),
        "targets": targets.astype(np.int32),
        "weights": np.array([weight for leaf in votes for _, weight in leaf], np.float32),
        "base": base.astype(np.float32),
    }
    tensors = [op.weights(word, np.ascontiguousarray(data)) for word, data in constants.items()]
    return op.emit(ops.TreeEnsemble(aggregate), [source, *tensors], (source.shape[0], len(base)))


def _counting(op: OpContext, votes: Sequence[tuple[int, float]], aggregate: str) -> Sequence[tuple[int, float]]:
    """Return at least one vote of a leaf, without those that change no sum; exporters write one for each class."""
    if aggregate == "SUM":
        return [vote for vote in votes if vote[1] != 0] or votes[:1] or [(0, 0.0)]
    if not votes:
        raise op.unsupported(f"a leaf without weights is not supported with {aggregate}")
    return votes


def _number(forest: _Forest, root: Key, tables: _Tables, numbered: dict[Key, int]) -> int:
    """Add the nodes below ``root``, children first, and return its number; a leaf's is -1 - its position."""
    # Without recursion: a damaged file may have a tree deeper than Python's stack.
    pending, opened = [root], set()
    while pending:
        key = pending[-1]
        split = forest.splits.get(key)
        if key in numbered:
            pending.pop()
        elif split is None:
            numbered[key] = -1 - len(tables.leaves)
            tables.leaves.append(key)
        elif split.true in numbered and split.false in numbered:
            numbered[key] = _add(tables, split, numbered[split.true], numbered[split.false])
        elif key in opened:
            raise GraphError(tables.place, f"node {key[1]} of tree {key[0]} is below itself")
        else:
            opened.add(key)
            pending += [child for child in (split.false, split.true) if child not in numbered]
    return numbered[root]


def _column(op: OpContext, name: str, size: int, default: int | None = None) -> Sequence[int]:
    values = op.integers(name) or (() if default is None else (default,) * size)
    if len(values) != size:
        raise GraphError(op.node.place, f"attribute {name} has {len(values)} elements, not {size}")
    return values


def _reals(op: OpContext, name: str, size: int) -> Array:
    if f"{name}_as_tensor" in op.node.attributes:
        raise op.unsupported(
            "numbers of 64 bits are not supported", "export the model for inputs of float32", "type-unsupported"
        )
    values = numbers(op, name)
    if len(values) != size:
        raise GraphError(op.node.place, f"attribute {name} has {len(values)} elements, not {size}")
    return values


def _parallel(op: OpContext, target: str) -> _Forest:
    """Return the forest of parallel lists; ``target`` is the prefix of those of the votes."""
    modes = texts(op, "nodes_modes")
    size = len(modes)
    if not modes:
        raise GraphError(op.node.place, "has no nodes")
    values = _reals(op, "nodes_values", size)
    names = ("treeids", "nodeids", "featureids", "truenodeids", "falsenodeids")
    trees, nodes, features, true, false = (_column(op, f"nodes_{name}", size) for name in names)
    missing = _column(op, "nodes_missing_value_tracks_true", size, 0)
    keys = dict.fromkeys(zip(trees, nodes, strict=True))
    if len(keys) != size:
        raise GraphError(op.node.place, "has a node twice")
    splits = {}
    for at, key in enumerate(keys):
        mode = modes[at].removeprefix("BRANCH_")
        if mode == "LEAF":
            continue
        children = (key[0], true[at]), (key[0], false[at])
        if mode not in _MODES[:-1] or any(child not in keys for child in children):
            raise GraphError(op.node.place, f"node {key[1]} of tree {key[0]} has the mode {modes[at]!r} and children "
                             f"{true[at]} and {false[at]}, not all of which exist")  # fmt: skip
        # A missing value is NaN, and this flag decides its branch.
        splits[key] = _Split(mode, features[at], float(values[at]), *children, missing[at] >= 1)
    first: dict[int, Key] = {}
    for key in keys:
        # The first node in the file is the root of its tree.
        first.setdefault(key[0], key)
    found: dict[Key, list[tuple[int, float]]] = {}
    targets = op.integers(f"{target}_ids") or ()
    weights = _reals(op, f"{target}_weights", len(targets))
    for tree, node, to, weight in zip(
        _column(op, f"{target}_treeids", len(targets)), _column(op, f"{target}_nodeids", len(targets)), targets,
        weights.tolist(), strict=True,
    ):  # fmt: skip
        found.setdefault((tree, node), []).append((to, weight))
    return _Forest(splits, [first[tree] for tree in sorted(first)], found)


def _base(op: OpContext, size: int) -> Array:
    """Return the initial value of each of ``size`` classes or targets."""
    _reals(op, "base_values", len(numbers(op, "base_values")))
    base = numbers(op, "base_values")
    if base.size not in {0, 1, size}:
        raise GraphError(op.node.place, f"{base.size} base values do not fit {size} classes or targets")
    return np.broadcast_to(base if base.size else np.float32(0), (size,))


def _classifier(op: OpContext) -> tuple[Value, ...]:
    labels = class_labels(op)
    transform = op.text("post_transform", "NONE")
    forest = _parallel(op, "class")
    # Exporters write classifiers of two classes with votes for one; the score of the other follows from it.
    classes = {target for votes in forest.votes.values() for target, _ in votes}
    if len(classes) == 1 and len(labels) <= 2:
        return _binary(op, forest, labels, transform, classes.pop())
    if len(classes) == 1 or len(labels) < 2:
        raise op.unsupported(f"votes for {len(classes)} of {len(labels)} classes are not supported")
    scores = _aggregated(op, forest, _base(op, len(labels)))
    made = post_transformed(op, scores, transform)
    return labelled(op, greatest_class(op, scores), labels), op.made(made)


def _binary(
    op: OpContext, forest: _Forest, labels: tuple[int, ...] | tuple[str, ...], transform: str, voted: int
) -> tuple[Value, ...]:
    """Return label and scores of two classes if the votes are the score of the second one."""
    # Only the forms whose meaning is certain: the votes are those of the second class.
    if voted != 0 or (len(labels) == 1 and labels[0] != 1):
        raise op.unsupported(f"votes for class {voted} only, with the labels {list(labels)}, are not supported")
    # A score that a transform follows is not a probability yet: that of the first class is its negative, not 1 minus
    # it.
    complement = transform == "NONE"
    score = _aggregated(op, forest, _base(op, len(labels) or 1)[:1])
    both = both_classes(op, score, complement=complement)
    positions = greatest_class(op, both)
    return labelled(op, positions, labels if len(labels) == 2 else (0, 1)), op.made(
        post_transformed(op, both, transform)
    )


def _regressor(op: OpContext) -> tuple[Value, ...]:
    check_not_transformed(op)
    targets = op.integer("n_targets", 1)
    aggregate = op.text("aggregate_function", "SUM")
    forest = _parallel(op, "target")
    made = _of_targets(op, forest, targets, aggregate)
    base = _base(op, targets)
    return (op.made(op.add(made, op.weights("base", base.astype(np.float32))) if base.any() else made),)


# Not infinity: a target that gets no vote keeps this value.
_EXTREME = float(np.finfo(np.float32).max)


def _of_targets(op: OpContext, forest: _Forest, targets: int, aggregate: str) -> Tensor:
    """Return the votes for each target, aggregated without base values."""
    if aggregate not in {"SUM", "AVERAGE", "MIN", "MAX"} or not 0 < targets <= _MOST_TARGETS:
        raise GraphError(op.node.place, f"aggregates {targets} targets with {aggregate}")
    start = {"MIN": _EXTREME, "MAX": -_EXTREME}.get(aggregate, 0.0)
    made = _aggregated(op, forest, np.full(targets, start, np.float32), "SUM" if aggregate == "AVERAGE" else aggregate)
    # The mean over trees, not over votes.
    return op.multiply(made, 1 / len(forest.roots)) if aggregate == "AVERAGE" else made


_MOST_TARGETS = 1 << 15
"""The most targets of the kernel."""


def _trees(op: OpContext) -> tuple[Value, ...]:
    """TreeEnsemble: nodes and leaves are numbered separately, and each leaf has one vote."""
    splits, members = _tensor(op, "nodes_splits"), _members(op)
    size = len(splits)
    modes = _tensor(op, "nodes_modes").astype(np.int64)
    features, true, false, true_leaf, false_leaf = (
        _column(op, f"nodes_{name}", size)
        for name in ("featureids", "truenodeids", "falsenodeids", "trueleafs", "falseleafs")
    )
    missing = _column(op, "nodes_missing_value_tracks_true", size, 0)
    weights = _tensor(op, "leaf_weights")
    targets = _column(op, "leaf_targetids", len(weights))
    if len(modes) != size or not all(0 <= mode < len(_MODES) for mode in modes):
        raise GraphError(op.node.place, "has nodes of an unknown mode")

    def child(number: int, is_leaf: int) -> Key:
        if not 0 <= number < (len(weights) if is_leaf else size):
            raise GraphError(op.node.place, f"there is no {'leaf' if is_leaf else 'node'} {number}")
        return (1 if is_leaf else 0), number

    nodes = {}
    for at in range(size):
        mode = _MODES[modes[at]]
        values = next(members, ()) if mode == "MEMBER" else ()
        nodes[0, at] = _Split(
            mode, features[at], 0.0 if mode == "MEMBER" else float(splits[at]), child(true[at], true_leaf[at]),
            child(false[at], false_leaf[at]), missing[at] >= 1 or mode == "NEQ", values,
        )  # fmt: skip
    roots = [child(root, 0) for root in op.integers("tree_roots") or ()]
    if not roots:
        raise GraphError(op.node.place, "has no trees")
    votes = {(1, at): [(target, float(weights[at]))] for at, target in enumerate(targets)}
    aggregate = _choice(op, "aggregate_function", 1, ("AVERAGE", "SUM", "MIN", "MAX"))
    made = _of_targets(op, _Forest(nodes, roots, votes), op.integer("n_targets", 1), aggregate)
    transform = _choice(op, "post_transform", 0, ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"))
    return (op.made(post_transformed(op, made, transform)),)


def _choice(op: OpContext, name: str, default: int, words: Sequence[str]) -> str:
    number = op.integer(name, default)
    if not 0 <= number < len(words):
        raise GraphError(op.node.place, f"attribute {name} is {number}")
    return words[number]


def _tensor(op: OpContext, name: str) -> Array:
    found = op.node.attributes.get(name)
    if not isinstance(found, np.ndarray) or found.ndim != 1:
        raise GraphError(op.node.place, f"attribute {name} is not a list in a tensor")
    if found.dtype == np.float64:
        raise op.unsupported(
            "numbers of 64 bits are not supported", "export the model for inputs of float32", "type-unsupported"
        )
    return found


def _members(op: OpContext) -> Iterator[tuple[float, ...]]:
    """Yield the members that each node of this mode compares with; NaN separates them in the file."""
    if "membership_values" not in op.node.attributes:
        return
    members: list[float] = []
    for value in _tensor(op, "membership_values").tolist():
        if math.isnan(value):
            yield tuple(members)
            members = []
        else:
            members.append(value)
    if members:
        yield tuple(members)


OPERATORS: Mapping[str, Converter] = {
    "TreeEnsemble": _trees,
    "TreeEnsembleClassifier": _classifier,
    "TreeEnsembleRegressor": _regressor,
}
