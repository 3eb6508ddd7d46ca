"""Plan the memory of a network, and decide which of its operators run row by row.

Why the arena is planned twice: operators that run row by row (chains) cost instructions, and are worth it only if the
arena becomes smaller. ``fuse`` estimates that by the bytes in use while each piece of the network runs. It does not
know offsets, views, or states that are updated in place, so the estimate is wrong in both directions. Therefore the
network is planned as it is, then with the chains that ``fuse`` selected, and the chains are used only if the real arena
is smaller. (Each plan is the best of several trials in itself, see ``memory/plan.py``.) In the same way, an order of
nodes in which fewer bytes are in use (``memory/order.py``) is planned and compared; it costs nothing. A later step,
``use_free_memory``, moves nothing: it gives kernels that copy weights the bytes that are free while they run. This step
is skipped on the Cortex-M7, whose data cache already has that effect.

For example, two 3x3 convolutions of an int8 image of 32x32 with 8 channels, and a MAX_POOL_2D to 16x16::

    cortex-m0plus, memory: balanced    3392 bytes as a chain instead of 16960, for 0.9 % more instructions
    cortex-m4, memory: balanced        16672 bytes: that chain would take 5.2 % more, and only 1 % is allowed
    cortex-m4, memory: smallest        2976 bytes as a chain, for 7.6 % more instructions

With several memories, the size of an arena is not what counts: chains are used if they save more cycles of waiting than
they cost instructions, or if the network fits only with them. ``memory: smallest`` still prefers the fewest bytes.
``fastest`` and ``balanced`` compare the network as it is with the chains of ``balanced`` and of ``smallest``. If
everything is in the fastest memory, no chain can save waits, and the result is that for this memory alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mlfbuild.library.cgen import WORKSPACE_SECTION
from mlfbuild.library.keys import ArenaMemory, Placement
from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import EthosU
from mlfbuild.native.lowering import KernelCall, lower, lower_all, lower_npu_call
from mlfbuild.native.memory import Location, Plan, StorageKind, better_order, check_fits, plan_memory
from mlfbuild.native.passes import fuse
from mlfbuild.native.settings import MEMORY, CodegenSettings

_INSTRUCTION = 1_000
"""The cost of an instruction of a chain, in the unit of waits: a cycle."""


@dataclass(frozen=True)
class PlannedNetwork:
    """A network, its calls and its memory plan."""

    graph: Graph
    calls: Sequence[KernelCall]
    plan: Plan

    @property
    def cycles(self) -> int:
        """Thousandths of cycles that the plan waits, and that chains cost."""
        rows = [call.by_rows for call in self.calls if call.by_rows is not None]
        return self.plan.waits + _INSTRUCTION * sum(each.instructions for each in rows)


def plan_network(
    graph: Graph, whole: Graph, settings: CodegenSettings, memories: tuple[ArenaMemory, ...] = ()
) -> tuple[PlannedNetwork, int | None]:
    """Lower ``graph`` and plan its memory; operators run row by row if this is better.

    ``whole`` is the network with its dead channels, and ``memories`` are those of the request. The second result is the
    arena in bytes that the default of the option ``memory`` would need, or ``None`` unless the option is ``smallest``.
    Raises ``UnsupportedModelError`` if the network does not fit into ``memories``, and as ``plan_memory``.
    """
    calls = lower_all(graph, settings)
    plan = plan_memory(graph, calls, arena_io=settings.arena_io, memories=memories)
    given = _Choosing(whole, settings, memories, PlannedNetwork(graph, calls, plan))
    choosing = replace(given, plain=given.reordered(given.plain))
    chosen = choosing.best()
    if choosing.plain is not given.plain:  # chains may be worth less in the new order
        chosen = min(chosen, given.best(), key=given.cost)
    check_fits(chosen.graph, chosen.calls, chosen.plan, memories)
    usual = None
    if settings.memory == MEMORY[0]:
        # Without chains, there is nothing that the default could leave out.
        other = choosing.plain if chosen is choosing.plain else choosing.with_chains(MEMORY[1])
        usual = other.plan.arena_size if other.plan.fits else None
    return chosen, usual


def without_copies(graph: Graph, calls: Sequence[KernelCall], plan: Plan) -> list[KernelCall]:
    """Return ``calls`` without the copies of tensors that ``plan`` has in the working memory of an NPU."""
    return [
        lower_npu_call(graph, node, _in_place(node, node.operator, plan, plan.scratch[at]))
        if isinstance(node.operator, EthosU)
        else call
        for at, (node, call) in enumerate(zip(graph.nodes, calls, strict=True))
    ]


def _in_place(node: Node, operator: EthosU, plan: Plan, base: int) -> frozenset[str]:
    offsets = zip((*node.inputs, *node.outputs), (*operator.input_offsets, *operator.output_offsets), strict=True)
    return frozenset(
        str(name) for name, offset in offsets if plan.locations[str(name)] == Location(StorageKind.ARENA, base + offset)
    )


def placed_in(placement: Placement, plan: Plan) -> Placement:
    """Return ``placement`` with the sections of a single arena and of the state, if ``plan`` has memories for them.

    A state in the usual RAM needs no section: start-up code initialises it there.
    """
    workspace = next((each.memory.section for each in plan.memories if each.size and not plan.arenas), None)
    state = next((each.memory.section for each in plan.memories if each.state), None)
    return replace(
        placement,
        workspace=placement.workspace if workspace in {None, WORKSPACE_SECTION} else workspace,
        state=placement.state if state in {None, WORKSPACE_SECTION} else state,
    )


@dataclass(frozen=True)
class _Choosing:
    """The alternatives of a network; ``plain`` is the one without chains."""

    whole: Graph
    settings: CodegenSettings
    memories: tuple[ArenaMemory, ...]
    plain: PlannedNetwork

    def best(self) -> PlannedNetwork:
        """Return the best alternative for the option ``memory`` of the settings."""
        if len(self.memories) > 1:
            return self._for_several()
        chosen = self.with_chains(self.settings.memory)
        return chosen if chosen.plan.fits else self.with_chains(MEMORY[0])

    def cost(self, network: PlannedNetwork) -> tuple[int, ...]:
        """Return what the best alternative has the least of."""
        if len(self.memories) < 2:
            return network.plan.rank
        # If none fits, the error is about the one that needs least.
        counted = network.plan.fits and self.settings.memory != MEMORY[0]
        return not network.plan.fits, network.cycles if counted else 0, network.plan.rank[-1]

    def reordered(self, network: PlannedNetwork) -> PlannedNetwork:
        """Return ``network`` in an order of its nodes with a better plan if one is found, otherwise this object."""
        arena_io = self.settings.arena_io
        other = better_order(network.graph, network.calls, arena_io=arena_io)
        if other is None:
            return network
        plan = plan_memory(*other, arena_io=arena_io, memories=self.memories)
        return PlannedNetwork(*other, plan) if plan.rank < network.plan.rank else network

    def with_chains(self, memory: str) -> PlannedNetwork:
        """Return the network with the chains of the option ``memory`` if its arena is smaller, otherwise ``plain``."""
        fused = self._fused(memory)
        # Not `<=`: chains cost instructions, so they must gain something.
        return self.plain if fused is None or self.plain.plan.rank <= fused.plan.rank else fused

    def _for_several(self) -> PlannedNetwork:
        if self.settings.memory == MEMORY[0]:
            return min([self.plain, *self._alternatives(MEMORY[0])], key=self.cost)
        if self.plain.plan.is_best:
            # As with this memory alone, whose chains make the arena smaller at hardly any cost.
            fused = self._fused(self.settings.memory)
            return fused if fused and fused.plan.is_best and fused.plan.rank < self.plain.plan.rank else self.plain
        return min([self.plain, *self._alternatives(*MEMORY[1::-1])], key=self.cost)

    def _alternatives(self, *options: str) -> Iterator[PlannedNetwork]:
        yield from (fused for option in options if (fused := self._fused(option)) is not None)

    def _fused(self, memory: str) -> PlannedNetwork | None:
        """Return the network with the chains of the option ``memory``; ``None`` without chains."""
        settings, plain = replace(self.settings, memory=memory), self.plain
        fused, calls = fuse(
            plain.graph, plain.calls, settings, lambda part, node: lower(part, node, settings), self.whole
        )
        if fused is plain.graph:
            return None
        plan = plan_memory(fused, calls, arena_io=settings.arena_io, memories=self.memories)
        return self.reordered(PlannedNetwork(fused, calls, plan))
