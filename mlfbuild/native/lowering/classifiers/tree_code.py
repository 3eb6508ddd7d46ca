"""Decision trees as C code: a comparison with a constant for each node, and the votes of each leaf.

Integer features are compared in place. Floats become integers first (``mlf_tree_positions``), those that a node
compares: about 10 instructions each, and then a comparison is as fast and short as that of integers. If there are few
comparisons for each feature and the CPU has a floating-point unit, they are compared as floats, which takes 2
instructions and 9 bytes more for each. Votes are added in the order of the trees, to variables of the C function if
there are few targets::

    /* tree 0 */
    if (positions[2] <= 1056964608) { /* feature 7 at most 0.5 */
        leaf = 0;
    } else if (positions[0] <= -1065353217) { /* feature 1 at most -1 */
        leaf = 1;
    } else {
        leaf = 0;
    }
    switch (leaf) {
    case 0:
        sum0 += weights[1];
        break;
    default:
        sum1 += weights[0];
        sum2 += weights[3];
        break;
    }

If all votes of a forest have one weight, as those of pure leaves, they are counted: ``votes`` is a word with the counts
of all targets, to which a leaf adds ``0x10u`` for target 1 if counts have 4 bits, and a table has the float sum of each
count. The order of the trees is then free, and one that lets C compilers leave out comparisons.

If the leaves of a tree have one vote for the same target, ``leaf`` is the position of its weight instead. GCC makes
jumps from comparisons to cases of it: the code of 30 trees with 3,477 nodes takes 72 kB on a Cortex-M4, instead of
81 kB with the votes in the branches, for the same instructions. That is three times the flash of the tables, and for
integers a quarter of their instructions.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library.cgen import floating, integer
from mlfbuild.native.graph import Array, Node, Tensor
from mlfbuild.native.graph.ops import TreeEnsemble
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, ScratchBuffer
from mlfbuild.native.lowering.classifiers.tree_splits import INFINITY, Splits
from mlfbuild.native.lowering.common.parameters import array, input_and_output

_HEADER = "tree_ensemble.h"
_MOST_COMPARISONS = 1 << 14
_DEEPEST = 100
"""C compilers accept 127 nested blocks (C99, 5.2.4.1)."""
_VARIABLES = 16
"""The most targets whose sums are variables, which a floating-point unit of 32 registers can hold."""
_WORD = 32
"""The bits of the word that counts the votes for all targets."""
_LEAF = re.compile(r"leaf = (\d+);")
_Votes = tuple[tuple[int, int], ...]
"""The target and the position of the weight of each vote of a leaf."""
LeafVotes = Sequence[Sequence[tuple[int, np.float32]]]
"""The target and the weight of each vote of each leaf."""


def branch_code(
    node: Node, ends: tuple[Tensor, Tensor], splits: Splits, roots: Array, leaves: LeafVotes, base: Array, *, fpu: bool
) -> KernelCall:
    """Return the call whose body has the trees with ``roots``; ``ends`` are its input and output.

    ``fpu`` is whether the CPU compares floats in hardware.

    Raises ``UnsupportedModelError`` if that would be too much or too deeply nested code.
    """
    assert isinstance(node.operator, TreeEnsemble)
    (source, output), used = ends, np.unique(splits.features)
    steps = _check_size(node, splits, roots)
    in_place = not splits.floats or (fpu and 3 * steps < 10 * len(used))
    # The most frequent weights first: instructions reach only the beginning of a table from one register.
    weights = Counter(weight.tobytes() for leaf in leaves for _, weight in leaf)
    places = {weight: at for at, (weight, _) in enumerate(weights.most_common())}
    table = np.frombuffer(b"".join(places), np.float32)
    most = len(roots) * max(map(len, leaves))
    bits = most.bit_length() if _are_counted(node.operator, table, base, most) else 0
    printer = _Printer(
        splits, leaves, places, [] if in_place else used.tolist(), len(base), node.operator.aggregate, bits
    )
    lines = [
        *([f"mlf_tree_positions(input, features, {len(used)}, {int(splits.nan_mode == 'FIRST')}, positions);"]
          if printer.used else []),
        *printer.sums(),
        *(["uint32_t leaf;"] if roots.max() >= 0 and not bits else []),
        *(line for number, root in (_alike(splits, roots) if bits else enumerate(roots.tolist()))
          for line in printer.tree(number, root)),
        *printer.results(),
    ]  # fmt: skip
    if bits:
        # Sums of equal weights depend on the number of votes alone, so all of them are added here.
        sums = np.cumsum(np.append(base[:1], np.repeat(table, most)), dtype=np.float32)
        tables = [array("sums", "float", sums)]
    else:
        tables = [array("weights", "float", table), array("base", "float", base)]
    return KernelCall("tree_ensemble", _HEADER, (
        *([Parameter("const uint16_t *", "features", Constant.array("features", "uint16_t", used.astype(np.uint16))),
           Parameter("int32_t *", "positions", ScratchBuffer(4 * len(used)))]
          if printer.used else []),
        *tables,
        *input_and_output(source, output),
    ), _for_each_row(lines, source, output))  # fmt: skip


def _alike(splits: Splits, roots: Array) -> list[tuple[int, int]]:
    """Return the number and the root of each tree; trees that begin with the same feature follow each other.

    The most frequent features are first, and the greatest limits. C compilers then find more comparisons that a tree
    before has decided: on the M4, forests of 10 trees take 4 to 7 % fewer instructions.
    """
    tops = [(int(splits.features[at]), -int(splits.limits[at])) if at >= 0 else (-1, 0) for at in roots.tolist()]
    frequent = Counter(feature for feature, _ in tops)
    return sorted(enumerate(roots.tolist()), key=lambda tree: (-frequent[tops[tree[0]][0]], *tops[tree[0]]))


def _are_counted(operator: TreeEnsemble, weights: Array, base: Array, most: int) -> bool:
    """Return whether all votes have one weight and all sums one base, and a word holds ``most`` votes per target."""
    equal = len(weights) == 1 and len(np.unique(base.view(np.int32))) == 1
    return operator.aggregate == "SUM" and equal and len(base) * most.bit_length() <= _WORD


def _for_each_row(lines: Sequence[str], source: Tensor, output: Tensor) -> tuple[str, ...]:
    if source.shape[0] == 1:
        return tuple(lines)
    return (
        f"for (int32_t row = 0; row < {source.shape[0]}; row++) {{",
        *(f"    {line}" for line in lines),
        f"    input += {source.shape[1]};",
        f"    output += {output.shape[1]};",
        "}",
    )


def _check_size(node: Node, splits: Splits, roots: Array) -> float:
    """Return the comparisons of a row if it leaves all nodes by either child equally often.

    Raises ``UnsupportedModelError`` if the trees with ``roots`` are too large for code.
    """
    sizes, depths, steps = ([0.0] * len(splits.features) for _ in range(3))
    # Children follow their parents. What several nodes share is printed for each of them.
    for at in reversed(range(len(sizes))):
        ends = [child for child in splits.children[at].tolist() if child >= 0]
        sizes[at] = 1 + sum(sizes[end] for end in ends)
        depths[at] = 1 + max((depths[end] for end in ends), default=0)
        steps[at] = 1 + sum(steps[end] for end in ends) / 2
    tops = [root for root in roots.tolist() if root >= 0]
    size, depth = sum(sizes[top] for top in tops), max((depths[top] for top in tops), default=0)
    wide = splits.floats and splits.features.max(initial=0) >= 1 << 16
    if size > _MOST_COMPARISONS or depth > _DEEPEST or wide:
        limits = f"at most {_MOST_COMPARISONS:,} comparisons, {_DEEPEST} levels and {1 << 16:,} features become code"
        raise UnsupportedModelError(
            "trees-too-large-for-code",
            place=node.place,
            reason=f"has {size:,.0f} comparisons in trees of {depth:.0f} levels; {limits}",
            hint="remove the option trees: code",
        )
    return float(sum(steps[top] for top in tops))


@dataclass(frozen=True, eq=False)
class _Printer:
    """Prints trees."""

    splits: Splits
    leaves: LeafVotes
    weights: dict[bytes, int]
    """The position of each weight in the table, by its bytes."""
    used: list[int]
    """The features that are converted to integers; none if they are compared in place."""
    targets: int
    aggregate: str
    bits: int
    """Of the count of votes for a target, all of which are in ``votes``; 0 if weights are added."""

    @property
    def in_variables(self) -> bool:
        """Whether the sums are variables; otherwise they are elements of the output."""
        return self.targets <= _VARIABLES

    def sums(self) -> Iterator[str]:
        """Yield the lines before the trees, which begin the sums."""
        if self.bits:
            yield "uint32_t votes = 0;"
        elif self.in_variables:
            yield from (f"float sum{target} = base[{target}];" for target in range(self.targets))
        else:
            yield f"memcpy(output, base, {4 * self.targets});"

    def results(self) -> Iterator[str]:
        """Yield the lines behind the trees, which store the sums."""
        for target in range(self.targets):
            if self.bits:
                # As bytes, which GCC loads from the table by one instruction, a float by two.
                count = f"(votes >> {target * self.bits}) & {(1 << self.bits) - 1}u"
                yield f"memcpy(&output[{target}], &sums[{count}], sizeof *output);"
            elif self.in_variables:
                yield f"output[{target}] = sum{target};"

    def tree(self, number: int, root: int) -> Iterator[str]:
        """Yield the lines of a tree: the search of the leaf, and its votes."""
        yield f"/* tree {number} */"
        if self.bits:
            yield from self._branches(root, 0, {})
            return
        if root < 0:
            yield from self._votes(self._leaf(root))
            return
        reached: dict[_Votes, int] = {}
        search = list(self._branches(root, 0, reached))
        targets = {target for leaf in reached for target, _ in leaf}
        if len(targets) == 1 and all(len(leaf) == 1 for leaf in reached):
            # Each leaf has its number, which is replaced by the position of its weight.
            positions = [weight for ((_, weight),) in reached]
            yield from (_LEAF.sub(lambda found: f"leaf = {positions[int(found[1])]};", line) for line in search)
            yield self._vote(targets.pop(), "leaf")
            return
        yield from search
        if len(reached) == 1:
            yield from self._votes(next(iter(reached)))
            return
        yield "switch (leaf) {"
        for votes, at in reached.items():
            yield f"case {at}:" if at < len(reached) - 1 else "default:"
            yield from (f"    {line}" for line in (*self._votes(votes), "break;"))
        yield "}"

    def _leaf(self, at: int) -> _Votes:
        return tuple((target, self.weights[weight.tobytes()]) for target, weight in self.leaves[-1 - at])

    def _branches(self, at: int, level: int, reached: dict[_Votes, int]) -> Iterator[str]:
        """Yield the comparisons below ``at``, a node or a leaf; leaves are numbered in ``reached``."""
        indent = level * "    "
        if at < 0 and self.bits:
            counts = sum(1 << target * self.bits for target, _ in self._leaf(at))
            yield f"{indent}votes += 0x{counts:x}u;"
            return
        if at < 0:
            yield f"{indent}leaf = {reached.setdefault(self._leaf(at), len(reached))};"
            return
        word = "if"
        # The second children are in one chain of "else if", so that only the first ones are nested.
        while at >= 0:
            first, second = self.splits.children[at].tolist()
            yield f"{indent}{word} ({self._condition(at)}) {{{self._comment(at)}"
            yield from self._branches(first, level + 1, reached)
            word, at = "} else if", second
        yield f"{indent}}} else {{"
        yield from self._branches(at, level + 1, reached)
        yield f"{indent}}}"

    def _condition(self, at: int) -> str:
        splits = self.splits
        feature, limit, nan = int(splits.features[at]), integer(int(splits.limits[at])), splits.nan[at]
        if not splits.floats:
            return f"input[{feature}] <= {limit}"
        if not self.used:
            return self._of_floats(f"input[{feature}]", float(splits.thresholds[at]), nan_first=bool(nan))
        value = f"positions[{bisect_left(self.used, feature)}]"
        # NaN is above infinity, also in nodes that treat it as a small number.
        missing = f" || ({value} > {INFINITY})" if nan and splits.nan_mode == "MIXED" else ""
        return f"({value} <= {limit}){missing}" if missing else f"{value} <= {limit}"

    @staticmethod
    def _of_floats(value: str, threshold: float, *, nan_first: bool) -> str:
        # Every comparison with NaN is false.
        if np.isnan(threshold):
            return f"!({value} >= -INFINITY)"
        return f"!({value} > {floating(threshold)})" if nan_first else f"{value} <= {floating(threshold)}"

    def _comment(self, at: int) -> str:
        if not self.used:
            return ""
        missing = " or NaN" if self.splits.nan[at] else ""
        return f" /* feature {self.splits.features[at]} at most {self.splits.thresholds[at]:.9g}{missing} */"

    def _votes(self, votes: _Votes) -> Iterator[str]:
        yield from (self._vote(target, str(weight)) for target, weight in votes)

    def _vote(self, target: int, weight: str) -> str:
        total = f"sum{target}" if self.in_variables else f"output[{target}]"
        if self.aggregate == "SUM":
            return f"{total} += weights[{weight}];"
        sign = "<" if self.aggregate == "MIN" else ">"
        return f"{total} = (weights[{weight}] {sign} {total}) ? weights[{weight}] : {total};"
