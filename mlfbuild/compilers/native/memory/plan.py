"""The memory plan: where each tensor lies while the network runs, decided at compile time.

Inputs and outputs lie in the caller's buffers. An input is only read; an output buffer holds nothing but its output.
Constants lie in flash. All other tensors, and the scratch memory of kernels, share one arena, whose offsets
``arena.place`` chooses. RESHAPE costs nothing where both sides can be the same bytes, nor does an operator whose
tensors are views of each other (``views.py``); and an operator whose kernel permits it writes over an input that nobody
reads later. What is kept between runs lies in a block of its own, the state; a run that is through with what was kept
writes there what it leaves, otherwise that is copied at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.cgen import Buffer, Span, aligned, lower_bound, place
from mlfbuild.compilers.native.lowering import KernelCall
from mlfbuild.compilers.native.memory.storages import (
    Location,
    Storage,
    StorageKind,
    leave_states,
    make_view,
    note_lifetimes,
    reuse_inputs,
    state_size,
    storages_of,
)
from mlfbuild.core import UnsupportedModelError
from mlfbuild.graph import Graph

LARGEST_ARENA = (1 << 31) - 1

_TRIALS = 100
_TRIED_NODES = 20_000
"""Nodes of all trials together: fewer trials for networks of very many operators."""


@dataclass(frozen=True)
class Plan:
    """The location of every tensor that nodes read or write."""

    locations: Mapping[str, Location]
    arena_size: int
    lower_bound: int
    """Bytes that are in use at one time, so that no plan of these calls in this order is smaller."""
    scratch: tuple[int, ...]
    """The offset in the arena of each node's scratch memory; 0 for those that need none."""
    copies: tuple[tuple[str, Location], ...]
    """Outputs and states that no node writes in place, and where they have to be: in this order, after all nodes."""
    state_size: int = 0
    """Bytes that are kept between runs."""
    views: frozenset[int] = frozenset()
    """Indices of the nodes that have nothing to do, since their tensors are views of each other."""
    apart: frozenset[int] = frozenset()
    """Indices of the nodes that could write over an input or make views, and do not as the arena is smaller so."""


def plan_memory(graph: Graph, calls: Sequence[KernelCall]) -> Plan:
    """Return the memory plan of ``graph``, whose nodes are lowered to ``calls``.

    Raises ``UnsupportedModelError`` where the arena would be larger than 2 GiB, or where a state cannot be updated in
    place that a kernel only updates there.
    """
    plan = _plan(graph, calls, apart=frozenset())
    if plan.views:  # the whole of something is in memory as soon as its first part is
        plan = min(plan, _plan(graph, calls, plan.views), key=lambda plan: plan.arena_size)
    # To share an address can stand in the way of a good packing.
    for index in range(min(len(calls), _TRIALS, _TRIED_NODES // max(len(calls), 1))):
        if plan.arena_size <= plan.lower_bound:
            break
        if calls[index].overwrites or index in plan.views:
            plan = min(plan, _plan(graph, calls, plan.apart | {index}), key=lambda plan: plan.arena_size)
    if plan.arena_size > LARGEST_ARENA:
        raise UnsupportedModelError(
            f"{graph.name}: the intermediate tensors need an arena of {plan.arena_size} bytes, at most {LARGEST_ARENA} "
            f"are supported; use a smaller model"
        )
    _check_updates(graph, calls, plan.locations)
    return plan


def _check_updates(graph: Graph, calls: Sequence[KernelCall], locations: Mapping[str, Location]) -> None:
    for node, call in zip(graph.nodes, calls, strict=True):
        for read, written in call.updates:
            before, after = str(node.inputs[read]), node.outputs[written]
            if locations[before] != locations[after]:
                raise UnsupportedModelError(
                    f"{node.operator.name} {node.name!r}: its state {before!r} is used by another operator or is an "
                    f"output, which is not supported; give each operator a state of its own, and outputs a copy of it"
                )


def _plan(graph: Graph, calls: Sequence[KernelCall], apart: frozenset[int]) -> Plan:
    """Plan with the nodes ``apart`` neither writing over any input nor making views."""
    storages = storages_of(graph)
    views = frozenset(at for at, node in enumerate(graph.nodes) if at not in apart and make_view(graph, node, storages))
    note_lifetimes(graph, storages)
    leave_states(graph, calls, storages)
    reuse_inputs(graph, calls, storages, apart)
    scratch = [Storage(StorageKind.ARENA, 0, [Span(call.scratch, at, at)]) for at, call in enumerate(calls)]
    arena = _in_arena([*storages.values(), *(used for used, call in zip(scratch, calls, strict=True) if call.scratch)])
    buffers = [Buffer(tuple(Span(aligned(span.size), span.first, span.last) for span in storage.spans))
               for storage in arena]  # fmt: skip
    try:
        offsets, arena_size = place(buffers)
    except OverflowError as error:
        raise UnsupportedModelError(f"{graph.name}: {error}, which is not supported; use a smaller model") from None
    for storage, offset in zip(arena, offsets, strict=True):
        storage.position = offset
    locations = {
        name: Location(storage.area, storage.position + storage.offsets.get(name, 0))
        for name, storage in storages.items()
    }
    return Plan(
        locations,
        arena_size,
        lower_bound(buffers),
        tuple(storage.position for storage in scratch),
        (*_output_copies(graph, locations), *_state_copies(graph, locations)),
        state_size(graph),
        views,
        apart,
    )


def _output_copies(graph: Graph, locations: Mapping[str, Location]) -> Iterator[tuple[str, Location]]:
    for index, name in enumerate(graph.outputs):
        if locations[name] != Location(StorageKind.OUTPUT, index):
            yield name, Location(StorageKind.OUTPUT, index)


def _state_copies(graph: Graph, locations: Mapping[str, Location]) -> Iterator[tuple[str, Location]]:
    """Yield the states to be copied: each after those that still read what is there, as in a line of delays."""
    waiting = {
        locations[state.before]: state.after
        for state in graph.states
        if locations[state.before] != locations[state.after]
    }
    while waiting:
        read = {locations[name] for name in waiting.values()}
        free = [location for location in waiting if location not in read]
        if not free:
            raise UnsupportedModelError(
                f"{graph.name}: the states {', '.join(repr(name) for name in waiting.values())} change places with "
                f"each other, which is not supported; compute at least one of them"
            )
        for location in free:
            yield waiting.pop(location), location


def _in_arena(storages: Iterable[Storage]) -> list[Storage]:
    unique = {id(storage): storage for storage in storages if storage.area is StorageKind.ARENA and storage.spans}
    return list(unique.values())
