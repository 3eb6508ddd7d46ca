"""Choose the weights that are worth fast memory: copied there once, or in each run before they are needed.

A convolution reads each of its weights for every tile of pixels, so that a few hundred bytes of a hot layer wait more
often than a whole fully connected layer, which reads each of its weights once. ``accesses.weight_loads`` estimates how
often. What a copy gains is the difference of the waits of these loads in both memories.

- *Copied* weights stay in memory of their own. The most gain per byte comes first, until the declared bytes are spent.
- *Streamed* weights pass through the reserved end of an arena. A block has the weights of one operator; operators with
  more than the whole room are left out (``passes/layer_parts`` makes smaller ones of some). A block is copied while
  the operators before it run: if there is room beside the block that is in use, from the moment that this one has
  arrived, otherwise after its operator. At most one block is on its way at a time, so that a single channel of a DMA is
  enough.

For example, with 8 KiB to stream through, the blocks of operators 0, 2 and 3::

    operator   bytes   offset   copied at
           0   2,048        0   before operator 0
           2   4,096    2,048   before operator 0, when the block of operator 0 has arrived
           3   6,144        0   after operator 2, whose block is in the way

Everything follows from sizes and estimates, never from the values of weights: other weights get the same places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mlfbuild.library.cgen import aligned
from mlfbuild.library.keys import ArenaMemory, FastWeights
from mlfbuild.native.graph import Graph
from mlfbuild.native.lowering import Constant, KernelCall
from mlfbuild.native.memory.accesses import weight_loads

_WORD = 4
_CYCLE = 1_000
"""A cycle in the unit of waits."""


@dataclass(frozen=True)
class WeightUse:
    """Weights that an operator reads."""

    step: int
    constant: Constant
    loads: int
    """In one run, each of up to a word."""


@dataclass(frozen=True)
class WeightBlock:
    """The weights of an operator that are copied in each run."""

    step: int
    parts: tuple[tuple[Constant, int], ...]
    """Each with its offset in the reserved memory."""
    size: int
    starts: int
    """The operator before which copying begins; before it, the operator's own block must have arrived."""


@dataclass(frozen=True)
class WeightPlan:
    """Weights in fast memory; gains are thousandths of cycles in a run by estimate."""

    memory: ArenaMemory
    copies: bool
    """Whether there is memory for copied weights."""
    copied: tuple[tuple[Constant, int], ...]
    """Each with its offset."""
    size: int
    """Bytes of the copied weights."""
    blocks: tuple[WeightBlock, ...]
    of: int
    """Bytes of all weights."""
    gain: int
    """Of the copied weights."""
    streamed_gain: int
    """Of the streamed weights, if copying takes no time of the core."""
    copying: int
    """The cost of copying by the core."""

    def place(self, step: int, constant: Constant) -> int | None:
        """Return the offset of ``constant`` in the reserved memory while the operator ``step`` runs."""
        return next(
            (at for block in self.blocks if block.step == step for part, at in block.parts if part == constant), None
        )


def weight_uses(
    graph: Graph, calls: Sequence[KernelCall], lowered: Sequence[KernelCall], is_weight: Callable[[Constant], bool]
) -> list[WeightUse]:
    """Return the weights that the operators of ``graph`` read, in their order.

    ``lowered`` are its ``calls`` without additional scratch memory, into which kernels copy weights themselves.
    """
    found = []
    for step, (node, call, before) in enumerate(zip(graph.nodes, calls, lowered, strict=True)):
        loads = weight_loads(graph, node, call)
        for parameter in call.parameters:
            constant = parameter.argument
            if isinstance(constant, Constant) and constant.length is not None and is_weight(constant):
                # The weights of the operators of a chain have its number.
                number = constant.name[len(constant.name.rstrip("0123456789")) :]
                its = loads[int(number)] if number and int(number) < len(loads) else loads[0]
                # A kernel that copies its filter to the scratch memory that it got in addition reads flash only once.
                once = its < 0 or call.scratch - before.scratch >= constant.size
                found.append(WeightUse(step, constant, -(-constant.size // _WORD) if once else its))
    return found


def plan_weights(uses: Sequence[WeightUse], wanted: FastWeights, memory: ArenaMemory) -> WeightPlan:
    """Return the places of the weights of ``uses`` in ``memory``, as far as they are worth it."""
    saved = wanted.source_wait - memory.load_wait
    loads: dict[Constant, int] = {}
    for use in uses:
        loads[use.constant] = loads.get(use.constant, 0) + use.loads
    copied: dict[Constant, int] = {}
    size = 0
    # Sorting keeps the order of equal ones, so that the result is always the same.
    for constant in sorted(loads, key=lambda each: -loads[each] / max(1, each.size)) if saved > 0 else ():
        if size + aligned(constant.size) <= wanted.copy:
            copied[constant] = size
            size += aligned(constant.size)
    rest = [use for use in uses if use.constant not in copied] if saved > 0 else []
    blocks = _blocks(rest, wanted.stream)
    streamed = {block.step for block in blocks}
    # The core moves words: a load that waits, a store that waits, and a cycle for each of the two.
    words = sum(-(-part.size // _WORD) for block in blocks for part, _ in block.parts)
    return WeightPlan(
        memory, wanted.copy > 0, tuple(copied.items()), size, blocks, sum(each.size for each in loads),
        gain=saved * sum(loads[each] for each in copied),
        streamed_gain=saved * sum(use.loads for use in rest if use.step in streamed),
        copying=words * (wanted.source_wait + memory.store_wait + 2 * _CYCLE),
    )  # fmt: skip


def _blocks(uses: Sequence[WeightUse], room: int) -> tuple[WeightBlock, ...]:
    by_step: dict[int, dict[Constant, int]] = {}
    sizes: dict[int, int] = {}
    for use in uses:
        parts = by_step.setdefault(use.step, {})
        if use.constant not in parts:
            parts[use.constant] = sizes.get(use.step, 0)
            sizes[use.step] = parts[use.constant] + aligned(use.constant.size)
    blocks: list[WeightBlock] = []
    start = end = 0  # of the block before
    for step, parts in by_step.items():
        size = sizes[step]
        if size > room:
            continue
        before = blocks[-1].step if blocks else -1
        # Before or after the block that is in use: there are never more than two in the room.
        beside = not blocks or size <= start or end + size <= room
        at = 0 if not blocks or not beside or size <= start else end
        block = WeightBlock(step, tuple(parts.items()), size, max(before, 0) if beside else before + 1)
        blocks.append(replace(block, parts=tuple((part, at + offset) for part, offset in parts.items())))
        start, end = at, at + size
    return tuple(blocks)
