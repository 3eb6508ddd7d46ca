"""Decide which operators are executed row by row, together or in place, so that the arena is small.

The list of nodes is cut into pieces: single nodes and chains (``lowering/chains.py``). A piece needs memory while it
runs, and a chain executes more instructions than its operators one after the other. The arena is about as large as the
piece that needs most. So the question is: which cut has the smallest worst piece, for at most so many instructions
more?

1. All chains are collected that need less memory than the worst of their nodes alone: up to 16 nodes, with several
   numbers of rows per step, in place of their input or not, aligned to whole steps or not.
2. For a given limit on the memory of each piece, dynamic programming over the nodes finds the cheapest cut: the best
   cut of the first n nodes is the best one of the first m, plus a piece from m to n.
3. Bisection over the memory needs of all pieces finds the lowest limit whose cut is cheap enough. So the cut is optimal
   with respect to the estimates.
4. How much scratch memory kernels need is known only after lowering, which takes time. So a chain is lowered only when
   it is part of the best cut. Until then it counts as if its kernels needed none, which never overestimates its memory.
   If the new number changes the cut, steps 2 and 3 are repeated; they end, because each round lowers another chain.
5. A chain of the best cut gives way to a variant with other rows within the limit, if that is clearly faster because
   more memory is left for copies of filters.

``MOST_EXTRA`` limits the extra instructions: 1 % with ``memory: balanced``, so that the default is not noticed, and 25
% with ``smallest``. On Cortex-M without SIMD the limit is 2 %, because the fast kernels need scratch memory that the
portable ones do not, and chains are to compensate for it. Other cores without SIMD (RISC-V, host) keep 1 %.

For example, two 3x3 convolutions of an int8 image of 32x32 with 8 channels, and a MAX_POOL_2D, on the Cortex-M4. In
bytes while a piece runs, and estimated instructions of a total of 1,139,917::

    each alone       8608, 16672 and 8192     worst 16672
    all three        2560 without the scratch memory of its kernels, 2976 with it, for 87,196 more (7.6 %)
      aligned        2816 and 3232, for 58,765 more (5.2 %)

``balanced`` keeps them apart, ``smallest`` takes the chain of 2976 bytes. On the Cortex-M0+ the aligned chain costs
33,754 of 3,733,504 instructions (0.9 %), so that ``balanced`` takes it. Both cores move the same bytes (30,874
instructions), but the M0+ needs 3 instructions for a product instead of 0.85, so that the same number is a smaller
share. And a chain costs its kernels less: a call takes 60 instructions instead of 220, and the estimate has no blocks
of pixels for it, while kernels with DSP compute three at a time and waste some at the end of two rows (``costs``).

The image between the convolutions needs 8192 bytes alone; in the chains it has a line buffer of four rows, 1024 bytes,
or of five if the steps are aligned.

What is not known here: offsets, views and states. The arena may be larger than the worst piece, so the caller plans the
memory with and without the chains, and takes the smaller arena (``build.py``). With ``trace`` there are no chains,
because a chain never has a complete intermediate tensor in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, product

from mlfbuild.library import NetworkRows
from mlfbuild.native.graph import Graph, Node, Tensor
from mlfbuild.native.graph.ops import Fused, Reshape
from mlfbuild.native.lowering import (
    Chain,
    KernelCall,
    Lower,
    LoweredChain,
    Stage,
    follows,
    is_closed,
    lower_chain,
    lower_stage,
    plan_chain,
    rows_to_try,
    stages_of,
    whole_images,
)
from mlfbuild.native.passes.costs import Costs
from mlfbuild.native.passes.rewrite import rebuild
from mlfbuild.native.settings import CodegenSettings

MOST_EXTRA = {"balanced": 0.01, "smallest": 0.25}
"""Value of the option ``memory`` -> extra instructions of chains, relative to the instructions without chains."""
_EXTRA_OF_THUMB = 0.02
"""At least this much on Cortex-M without SIMD, whose fast kernels need scratch memory that the portable ones do not."""
# Longer chains gain little: each further operator adds a line buffer and saves only one more image.
_LONGEST = 16
"""The most operators of a chain."""
# So that networks of hundreds of operators compile in seconds.
_SOUGHT = 1200
"""The approximate number of sequences of operators that are tried as chains."""
# How much memory is free is an estimate: the plan may leave it in several pieces.
_FASTER = 0.9
"""The share of a chain's time that another variant may take at most to be used instead."""


@dataclass(eq=False)
class _Piece:
    """Nodes ``first`` to ``end`` - 1: a chain, or a single node if ``chain`` is ``None``."""

    first: int
    end: int
    memory: int
    """Bytes in the arena while it runs, without the scratch memory of kernels if the chain is not lowered yet."""
    extra: float = 0.0
    """Instructions in addition to those of its operators one after the other."""
    chain: Chain | None = None
    lowered: LoweredChain | None = None


def fuse(
    graph: Graph, calls: Sequence[KernelCall], settings: CodegenSettings, lower: Lower, whole: Graph | None = None
) -> tuple[Graph, list[KernelCall]]:
    """Return ``graph`` with chains instead of their nodes, and the calls of the new nodes.

    ``calls`` are those of the nodes of ``graph``. Extra instructions are limited relative to those of ``whole``, the
    network with its dead channels, because fewer channels should not lead to a larger arena. With tracing there are no
    chains, because a chain never has a complete intermediate tensor in memory.

    Returns the arguments unchanged if no chain lowers the worst piece within the limit. ``lower`` makes the kernel call
    of one node on so many rows; it is asked only for operators of chains in the best cut.
    """
    # The option ``memory: fastest``, or any that is not in the table, means no chains.
    most = MOST_EXTRA.get(settings.memory)
    if most is not None and settings.is_plain_thumb:
        most = max(most, _EXTRA_OF_THUMB)
    if most is None or not calls or settings.trace:
        return graph, list(calls)
    # The whole network is the base: removing channels would otherwise lower the limit and forbid a chain.
    cutting = _Cutting(graph, calls, settings, lower)
    pieces = cutting.best(most * cutting.costs.total(whole or graph))
    return _rebuilt(cutting, pieces)


def _rebuilt(cutting: _Cutting, pieces: Sequence[_Piece]) -> tuple[Graph, list[KernelCall]]:
    graph, calls = cutting.graph, cutting.calls
    nodes: list[Node] = []
    new: list[KernelCall] = []
    for piece in pieces:
        if piece.lowered is None:
            nodes += graph.nodes[piece.first : piece.end]
            new += calls[piece.first : piece.end]
        else:
            nodes.append(_fused(graph, piece.lowered.chain))
            # For the report: what the worst of these operators would need on its own.
            alone = max(cutting.single[at].memory for at in range(piece.first, piece.end))
            new.append(
                replace(lower_chain(piece.lowered), by_rows=NetworkRows(round(piece.extra), piece.memory, alone))
            )
    # The very same graph if there is no chain, so that callers can see that nothing changed.
    return (rebuild(graph, nodes), new) if any(piece.lowered for piece in pieces) else (graph, new)


def _fused(graph: Graph, chain: Chain) -> Node:
    nodes = [stage.node for stage in chain.stages]
    # Inputs are the images that come from outside the chain; constants follow them, as ``Fused`` documents.
    images, output = whole_images(chain.stages), chain.stages[-1].output.name
    names = dict.fromkeys(name for node in nodes for name in (*node.inputs, *node.outputs) if name is not None)
    tensors = [graph.tensor(name) for name in names]
    constants = [tensor.name for tensor in tensors if tensor.constant]
    part = Graph(graph.name, tensors, nodes, images, [output])
    return Node(" + ".join(node.name for node in nodes), Fused(part), (*images, *constants), (output,))


# ``memory/plan.py`` knows more (views, overwriting, packing), but a full plan for each chain would take minutes.
@dataclass
class _Lives:
    """The lifetimes of tensors in the arena, from the node that writes each to the last one that reads it."""

    graph: Graph
    arena_io: bool = False
    """Whether inputs and outputs are in the arena: from before the first node, and until after the last one."""
    roots: dict[str, str] = field(default_factory=dict)
    """Tensor -> the tensor that has its bytes: itself, or the source of a RESHAPE."""
    first: dict[str, int] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for index, node in enumerate(self.graph.nodes):
            for name in (*node.inputs, *node.outputs):
                if name is not None:
                    # Single assignment: the first node that mentions a tensor writes it, or it is an input.
                    root = self._root(node, name)
                    self.first.setdefault(root, index)
                    self.last[root] = index
        # The caller writes inputs before the first node, and reads outputs after the last one.
        for name in self.graph.inputs if self.arena_io else ():
            if name in self.roots:
                self.first[self.roots[name]] = -1
        for name in self.graph.outputs if self.arena_io else ():
            if name in self.roots:
                self.last[self.roots[name]] = len(self.graph.nodes)

    def _root(self, node: Node, name: str) -> str:
        # A RESHAPE costs no memory in the plan, so that both of its tensors live as one here.
        if isinstance(node.operator, Reshape) and name == node.outputs[0] and node.inputs[0] is not None:
            self.roots[name] = self.roots.get(node.inputs[0], node.inputs[0])
        return self.roots.setdefault(name, name)

    @cached_property
    def outside(self) -> frozenset[str]:
        """The tensors that are not in the arena: in the caller's buffers, in the state or in flash."""
        kept = {*self.graph.sources, *self.graph.results}
        if self.arena_io:
            kept -= {*self.graph.inputs, *self.graph.outputs}
        names = {name for name, tensor in self.graph.tensors.items() if tensor.constant or name in kept}
        return frozenset(self.roots.get(name, name) for name in names)

    def size(self, root: str) -> int:
        """Return the bytes of ``root`` in the arena."""
        return 0 if root in self.outside else self.graph.tensor(root).size

    @cached_property
    def before(self) -> tuple[int, ...]:
        """The bytes in the arena before each node, of tensors that it or a later node reads."""
        count = len(self.graph.nodes)
        # A difference array: hundreds of pieces ask for these sums, which are computed once in linear time.
        change = [0] * (count + 2)
        for root, first in self.first.items():
            # `before` does not count what the node itself writes: a piece adds that, minus what it overwrites.
            change[first + 1] += self.size(root)
            change[self.last[root] + 1] -= self.size(root)
        return tuple(accumulate(change[:count]))

    def dies(self, name: str, end: int) -> bool:
        """Return whether the tensor is in the arena, and no node from ``end`` on reads it."""
        root = self.roots[name]
        return root not in self.outside and self.last[root] < end

    def piece(self, first: int, node: Node, end: int, overwrites: Sequence[str], scratch: int) -> int:
        """Return the bytes in the arena while nodes ``first`` to ``end`` - 1 run; the last of them is ``node``.

        ``overwrites`` are tensors that the last node may overwrite; ``scratch`` is the scratch memory of its kernels.
        """
        # A tensor that an earlier piece began to write is already in ``before``, as are inputs in the arena.
        new = [self.roots[name] for name in node.outputs if self.first[self.roots[name]] >= first]
        size = sum(self.size(root) for root in new)
        shared = [name for name in overwrites if self.dies(name, end)]
        # With several new tensors it is not known which one would take the place of the input.
        if shared and len(new) == 1 and size:
            size = max(0, size - self.size(self.roots[shared[0]]))
        return self.before[first] + size + scratch


class _Cutting:
    """All possible pieces of a graph, and the search for the best cut."""

    def __init__(self, graph: Graph, calls: Sequence[KernelCall], settings: CodegenSettings, lower: Lower) -> None:
        self.graph, self.calls, self.lower = graph, calls, lower
        self.costs = Costs(settings)
        self.lives = _Lives(graph, settings.arena_io)
        # Results of lowering by operator, source and rows: the same stage occurs in many chains.
        self._lowered: dict[tuple[int, str, int], KernelCall] = {}
        self.single = [self._plain(index) for index in range(len(calls))]
        self.chains: dict[int, list[_Piece]] = {}
        for piece in self._all_chains():
            self.chains.setdefault(piece.end, []).append(piece)

    def _plain(self, index: int) -> _Piece:
        node, call = self.graph.nodes[index], self.calls[index]
        overwrites = [str(node.inputs[position]) for position in call.overwrites]
        return _Piece(index, index + 1, self.lives.piece(index, node, index + 1, overwrites, call.scratch))

    def best(self, most: float) -> list[_Piece]:
        """Return the pieces of the cut with the least memory that costs at most ``most`` extra instructions."""
        while True:
            # The limit of an optimal cut is the need of one of its pieces, so that no other number has to be tried.
            limits = sorted({piece.memory for piece in self._pieces()})
            # The cost of the cheapest cut falls as the limit grows, so bisection finds the lowest limit.
            low, high = 0, len(limits) - 1
            while low < high:
                middle = (low + high) // 2
                cost = self._cheapest(limits[middle])[0]
                # ``cost <= most`` at the highest limit: all single nodes fit there and cost nothing extra.
                low, high = (low, middle) if cost <= most else (middle + 1, high)
            pieces = self._cheapest(limits[low])[1]
            # Their scratch memory is not known yet, and may change the cut.
            # A piece that turns out larger is compared again with its new number in the next round.
            waiting = [(piece, piece.chain) for piece in pieces if piece.chain is not None and piece.lowered is None]
            if not waiting:
                return [self._fastest(piece, limits[low]) for piece in pieces]
            for piece, chain in waiting:
                self._lower(piece, chain)

    def _fastest(self, piece: _Piece, limit: int) -> _Piece:
        """Return the variant of a chain within ``limit`` that takes the least time, with what it reads from flash.

        Line buffers of fewer rows leave more memory for copies of filters.
        """
        fastest, least = piece, _FASTER * self._time(piece, limit)
        for other in self.chains.get(piece.end, ()) if piece.chain else ():
            if other.first != piece.first or other.memory > limit or other.extra >= least:
                continue
            if other.lowered is None and other.chain is not None:
                self._lower(other, other.chain)
            time = self._time(other, limit)
            if other.memory <= limit and time < least:
                fastest, least = other, time
        return fastest

    def _time(self, piece: _Piece, limit: int) -> float:
        """Return the instructions that ``piece``, a lowered chain, adds, and the cycles of reading its filters."""
        if piece.lowered is None:
            return piece.extra
        return piece.extra + self.costs.reading(piece.lowered, limit - piece.memory + piece.lowered.scratch)

    def _pieces(self) -> Iterator[_Piece]:
        yield from self.single
        for pieces in self.chains.values():
            yield from pieces

    def _cheapest(self, limit: int) -> tuple[float, list[_Piece]]:
        """Return (extra instructions, pieces) of the cheapest cut whose pieces need at most ``limit`` bytes each.

        The cost is infinite, and the pieces are not a complete cut, if a node does not fit alone and in no chain.
        """
        costs = [0.0]
        taken: list[_Piece | None] = [None]
        for end in range(1, len(self.single) + 1):
            # Single nodes come first, and ``min`` keeps the first of equal ones, so that a chain without gain is not
            # taken.
            fitting = [piece for piece in (self.single[end - 1], *self.chains.get(end, ())) if piece.memory <= limit]
            best = min(fitting, key=lambda piece: costs[piece.first] + piece.extra, default=None)
            costs.append(float("inf") if best is None else costs[best.first] + best.extra)
            taken.append(best)
        pieces: list[_Piece] = []
        at = len(self.single)
        while at > 0 and (piece := taken[at]) is not None:
            pieces.append(piece)
            at = piece.first
        return costs[-1], pieces[::-1]

    def _all_chains(self) -> Iterator[_Piece]:
        """Yield the chains that need less memory than the largest of their nodes."""
        # Results count as readers: a tensor that the caller sees must be complete in memory.
        readers = Counter(name for node in self.graph.nodes for name in set(node.inputs) if name is not None)
        readers.update(self.graph.results)
        stages = stages_of(self.graph)
        # At least three: a residual block is two convolutions and an addition.
        longest = max(3, min(_LONGEST, _SOUGHT // len(stages)))
        # Their estimate is too low for ``balanced``: 2 % was 11 % in a residual network on the Cortex-M0+.
        branches = self.costs.settings.memory == "smallest"
        for first in range(len(stages)):
            chained: list[Stage] = []
            for index in range(first, min(len(stages), first + longest)):
                stage = stages[index]
                if stage is not None and chained:
                    stage = follows(stage, chained)
                if stage is None:
                    break
                chained.append(stage)
                if not is_closed(chained, readers):
                    # Another node reads an image between the stages. It may be one of the next stages.
                    if branches:
                        continue
                    break
                worst = max(piece.memory for piece in self.single[first : index + 1])
                # Others cannot lower the worst piece, whatever they cost.
                yield from (piece for piece in self._variants(tuple(chained)) if piece.memory < worst)

    def _variants(self, stages: tuple[Stage, ...]) -> Iterator[_Piece]:
        first, end = stages[0].index, stages[-1].index + 1
        dies = self.lives.dies(stages[0].source.name, end) and not self._outside(stages[-1].output)
        ways = product(
            rows_to_try(stages[-1].output, len(self.calls)), (False, True) if dies else (False,), (False, True)
        )
        # ``None`` is known from the start: settings for which there is no chain are skipped like duplicates.
        known: set[Chain | None] = {None}
        for rows, in_place, aligned in ways:
            # Different settings may lead to the same chain, for example if all rows fit into one step.
            chain = plan_chain(stages, rows, in_place=in_place, aligned=aligned)
            # A chain of one operator is useful only to overwrite its input, which the operator's own kernel may not
            # permit.
            if chain not in known and chain is not None and (in_place or len(stages) > 1):
                # Without any kernel's scratch memory: the line buffers alone, as long as it is not lowered (rule 4 of
                # the module).
                memory = self._memory(chain, LoweredChain(chain, ()).scratch)
                yield _Piece(first, end, memory, self.costs.added(chain), chain)
            known.add(chain)

    def _outside(self, tensor: Tensor) -> bool:
        return self.lives.roots[tensor.name] in self.lives.outside

    def _memory(self, chain: Chain, scratch: int) -> int:
        first, last = chain.stages[0], chain.stages[-1]
        overwrites = [first.source.name] if chain.in_place else []
        # The second operand of a last ADD can be overwritten row by row, if it is not the image that the chain reads.
        if last.operand is not None and last.operand.name in whole_images(chain.stages)[1:]:
            overwrites.append(last.operand.name)
        overwrites = [name for name in overwrites if self.lives.dies(name, last.index + 1)]
        return self.lives.piece(first.index, last.node, last.index + 1, overwrites, scratch)

    def _lower(self, piece: _Piece, chain: Chain) -> None:
        stages = zip(chain.stages, chain.lines[1:], strict=True)
        piece.lowered = LoweredChain(chain, tuple(self._lower_stage(stage, lines.count) for stage, lines in stages))
        piece.memory = self._memory(chain, piece.lowered.scratch)

    def _lower_stage(self, stage: Stage, rows: int) -> KernelCall:
        key = (stage.index, stage.source.name, rows)
        if key not in self._lowered:
            self._lowered[key] = lower_stage(self.graph, stage, rows, self.lower)
        return self._lowered[key]
