"""The nodes of decision trees as comparisons of integers, which the tables and the code of the trees share."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mlfbuild.native.graph import Array, DType, integer_range

INFINITY = 0x7F800000
"""The bits of INFINITY; those of -INFINITY, inverted, are 1 less than the negative of it."""
_BELOW = -INFINITY - 2
NEVER = -(1 << 31) - 1
"""A limit that no value is at most, because it is below int32."""
_TO_SECOND, _TO_FIRST = -0x7FFFFF, 0x7FFFFF
"""What ``mlf_tree_value`` adds to the bits of floats if NaN goes to the second child, and to the first one."""


@dataclass(frozen=True, eq=False)
class Splits:
    """The nodes: a row goes to the first child if its feature, as an integer, is at most the limit.

    The integer of a float is its bits, with all but the sign inverted if that is set, so that the order is that of the
    numbers. ``children`` [nodes, 2] are positions of nodes, or -1 - a number that stands for a leaf.
    """

    floats: bool
    features: Array
    limits: Array
    """int64: one less than the least int32 if no value is at most the limit."""
    nan: Array
    """Whether NaN goes to the first child."""
    children: Array
    thresholds: Array
    """The thresholds in the model."""

    @property
    def nan_mode(self) -> str:
        """``FIRST``, ``SECOND`` or ``MIXED``: where NaN goes in all nodes."""
        return "SECOND" if not self.nan.any() else "FIRST" if self.nan.all() else "MIXED"

    def stored_limits(self, nodes: Array) -> Array:
        """Return the thresholds of ``nodes`` as the kernels have them, int32: a value is less than that, or not."""
        # One more than the limit. The kernel moves the order of floats, so that NaN is at one of its ends.
        moved = np.where(self.nan, _TO_FIRST, _TO_SECOND) if self.floats else 0
        found = np.where(self.limits == NEVER, NEVER + 1, self.limits + 1 + moved)[nodes]
        return np.asarray(found, np.int32)


def splits_of(
    dtype: DType, features: Array, thresholds: Array, nan: Array, children: Array, roots: Array
) -> tuple[Splits, Array]:
    """Return the nodes of trees over features of ``dtype``, and the roots.

    ``thresholds`` are float32 for features of float32, otherwise int32. Nodes that every value leaves by the same child
    are not in any tree of the result.
    """
    if dtype is DType.FLOAT32:
        bits = (thresholds + np.float32(0)).view(np.int32)  # the sum turns -0 to 0
        limits = np.where(bits < 0, bits ^ np.int32((1 << 31) - 1), bits).astype(np.int64)
        # Below -INFINITY: no number is at most NaN.
        limits[np.isnan(thresholds)] = _BELOW
        always, never = nan & (limits == INFINITY), ~nan & (limits == _BELOW)
    else:
        least, greatest = integer_range(dtype)
        limits, nan = thresholds.astype(np.int64), np.zeros(len(thresholds), np.bool_)
        always, never = limits >= greatest, limits < least
    ends = np.arange(len(limits))
    # Children follow their parents, so that the end of a child is known before that of its parent.
    for at in np.flatnonzero(always | never)[::-1].tolist():
        child = int(children[at, 0 if always[at] else 1])
        ends[at] = ends[child] if child >= 0 else child
    children, roots = (np.where(each >= 0, ends[np.clip(each, 0, None)], each) for each in (children, roots))
    splits = Splits(dtype is DType.FLOAT32, features, limits, nan, children, thresholds)
    # The nodes that are left out decide no more about the ends to which NaN goes.
    kept = np.array(reachable(splits, roots), np.int64)
    moved = np.zeros(len(limits), np.int64)
    moved[kept] = np.arange(len(kept))
    children, roots = (np.where(each >= 0, moved[np.clip(each, 0, None)], each) for each in (children[kept], roots))
    return Splits(splits.floats, features[kept], limits[kept], nan[kept], children, thresholds[kept]), roots


def reachable(splits: Splits, roots: Array) -> list[int]:
    """Return the nodes of the trees with ``roots``, parents before children.

    The first child of a node is directly behind it, unless other nodes share it, or it is a leaf.
    """
    found: list[int] = []
    done, opened = set(), set()
    children = splits.children.tolist()
    # Backwards, children before parents and the second ones before the first ones.
    for root in roots[::-1].tolist():
        pending = [root]
        while pending:
            at = pending[-1]
            if at < 0 or at in done:
                pending.pop()
            elif at in opened:
                done.add(pending.pop())
                found.append(at)
            else:
                opened.add(at)
                pending.extend(children[at])
    return found[::-1]


_NEAR = 8000
"""The most items between a node and the leaf that is its second child, so that the distance fits in 16 bits."""


@dataclass(frozen=True, eq=False)
class Stream:
    """The order of nodes and leaves in the tables."""

    items: Array
    """Positions of nodes in ``splits``, and leaves, which are below 0; a leaf may be there several times."""
    seconds: Array
    """For each item that is a node, the position of its second child among the items."""
    roots: Array
    """The position of each root among the items."""
    splits: Splits


def in_stream_order(splits: Splits, roots: Array, near: int = _NEAR) -> Stream:
    """Return the stream in which the first child of a node is the item behind it.

    If other nodes share that child, a node that is never left by its first child is there instead, and leads to it. A
    leaf that is a second child is stored behind the next leaf, unless the same leaf is among the ``near`` items before.
    """
    children, order = splits.children.tolist(), reachable(splits, roots)
    items: list[int] = []
    seconds: dict[int, int] = {}
    """The item of the second child of each node item; that of a node is only known at the end: its position here."""
    latest: dict[int, int] = {}
    waiting: dict[int, list[int]] = {}
    jumps: list[int] = []

    def add_leaf(leaf: int) -> None:
        latest[leaf] = len(items)
        items.append(leaf)
        for node in waiting.pop(leaf, ()):
            seconds[node] = latest[leaf]

    for root in sorted({root for root in roots.tolist() if root < 0}):
        add_leaf(root)
    for at, behind in pairwise([*order, len(splits.features)]):
        first, second = children[at]
        if second < 0 and len(items) - latest.get(second, -near) < near:
            seconds[len(items)] = latest[second]
        elif second < 0:
            waiting.setdefault(second, []).append(len(items))
        items.append(at)
        if first == behind:
            continue
        if first < 0:
            add_leaf(first)
        else:
            items.append(len(children))
            children.append([first, first])
            jumps.append(first)
        for leaf in sorted(waiting):
            add_leaf(leaf)
    places = {item: place for place, item in enumerate(items) if item >= 0}
    ends = [seconds[place] if place in seconds else places[children[item][1]]
            for place, item in enumerate(items) if item >= 0]  # fmt: skip
    starts = [places[root] if root >= 0 else latest[root] for root in roots.tolist()]
    return Stream(np.array(items), np.array(ends, np.int64), np.array(starts), _with_jumps(splits, jumps))


def _with_jumps(splits: Splits, jumps: list[int]) -> Splits:
    """Return ``splits`` and, at the end, a node for each of the nodes ``jumps``, which it always leads to."""
    more = len(jumps)
    return Splits(
        splits.floats,
        np.append(splits.features, np.zeros(more, np.int64)),
        np.append(splits.limits, np.full(more, NEVER)),
        np.append(splits.nan, np.full(more, more > 0 and splits.nan.all())),
        np.append(splits.children, np.array([jumps, jumps], np.int64).T, axis=0),
        np.append(splits.thresholds, np.zeros(more, splits.thresholds.dtype)),
    )
