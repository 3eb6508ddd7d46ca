"""Find an order of the nodes of a network in which fewer bytes of the arena are in use at one time.

The order in a file is one of many that compute the same numbers. In a network of branches it decides how many tensors
wait for others: a branch whose result is small should run before the large tensor of another branch is computed. For
example, of float32 tensors, with the caller's input ``x`` and output ``y``::

    node 0   a = ABS(x)        1024 bytes        node 0   a
    node 1   b = ABS(x)        1024              node 2   s
    node 2   s = MEAN(a)         16              node 1   b
    node 3   t = MEAN(b)         16              node 3   t
    node 4   y = ADD(s, t)                       node 4   y

On the left, ``a``, ``b`` and ``s`` are in use during node 2, 2064 bytes; on the right, at most 1040.

The bytes in use depend only on the set of nodes that ran, not on their order. So the search goes from the sets of k
nodes to those of k + 1, and keeps for each set the order with the smallest peak. That is exact, unless there are more
sets than ``_TRIED`` allows: then those with the smallest peaks go on. The limit is a number, not a time: the same
network always has the same order.

- A node that all others precede or follow has one place in every order. The search runs between two such nodes, so that
  a long network of small blocks is also solved exactly, and one without branches costs nothing.
- Blocks whose peak does not determine that of the network keep their order.
- Storages are those of ``storages.py``: views are in use with the whole, and an output may overwrite an input that has
  no other reader left. Nodes that use the same state keep their order.

The peak is what ``Plan.lower_bound`` is for a plan, not the size of an arena, in which there may be gaps. Therefore the
caller makes the plan again, and uses the order only if the arena is smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlfbuild.library.cgen import aligned
from mlfbuild.native.graph import Graph
from mlfbuild.native.lowering import KernelCall
from mlfbuild.native.memory.storages import (
    Storage,
    StorageKind,
    leave_states,
    make_view,
    note_lifetimes,
    storages_of,
)

_TRIED = 100_000
"""Nodes that are tried for a network, in all steps together, apart from those of one order: about half a second."""
_CHOICES = 64
"""Nodes that are tried after a set, if more of them may run next."""


@dataclass(eq=False)
class _Piece:
    """A storage of the arena: its bytes, and the nodes that use it as a set of bits."""

    size: int
    users: int = 0
    begins: bool = False
    """It is in use before the first node."""
    stays: bool = False
    """It is in use after the last node."""


@dataclass
class _Step:
    """A node: what must run before it, and what it uses."""

    before: int = 0
    pieces: list[_Piece] = field(default_factory=list)
    scratch: int = 0
    overwrites: list[tuple[_Piece, _Piece]] = field(default_factory=list)
    """Inputs that the output may replace, with that output."""


@dataclass(frozen=True)
class _Way:
    """An order of a set of nodes: the peak, the bytes in use after it, the last node, and the order of those before."""

    peak: int
    live: int
    ready: tuple[int, ...] = ()
    """The nodes that may run next."""
    last: int = -1
    earlier: _Way | None = None


def better_order(
    graph: Graph, calls: Sequence[KernelCall], *, arena_io: bool = False
) -> tuple[Graph, list[KernelCall]] | None:
    """Return ``graph`` and ``calls`` in an order with a smaller peak, or ``None`` if none is found.

    ``calls`` are those of the nodes of ``graph``, and ``arena_io`` is as for ``plan_memory``. The result has the same
    tensors, nodes and calls, and computes the same bits.
    """
    steps = _steps(graph, calls, arena_io)
    order = _order(steps)
    if order == list(range(len(steps))):
        return None
    nodes = [graph.nodes[at] for at in order]
    other = Graph(graph.name, tuple(graph.tensors.values()), nodes, graph.inputs, graph.outputs, graph.states)
    return other.with_notes(graph.notes, litert=graph.litert), [calls[at] for at in order]


def _order(steps: Sequence[_Step]) -> list[int]:
    # Each step places one node, so that every step gets the same share.
    allowed = _TRIED // max(1, len(steps))
    blocks, done, live = [], 0, _live_before(steps)
    for nodes in _blocks(steps):
        there = _run(steps, nodes, done, live)
        blocks.append((nodes, done, live, there.peak))
        done, live = done | _bits(nodes), there.live
    least = max((_need(step) for step in steps), default=0)
    found = []
    # From the highest peak on: as soon as one cannot be lowered, those below it do not matter.
    for nodes, begun, used, peak in sorted(blocks, key=lambda block: -block[3]):
        way = _search(steps, nodes, begun, used, peak, allowed) if peak > least and len(nodes) > 1 else None
        least = max(least, peak if way is None else way.peak)
        if way is not None:
            found.append((nodes, _path(way)))
    changed = {nodes[0]: path for nodes, path in found}
    return [at for nodes, *_ in blocks for at in changed.get(nodes[0], nodes)]


def _search(
    steps: Sequence[_Step], nodes: Sequence[int], done: int, live: int, limit: int, allowed: int
) -> _Way | None:
    """Return the best way to run ``nodes`` after ``done``, or ``None`` if no peak is below ``limit``."""
    followers: dict[int, list[int]] = {at: [] for at in nodes}
    for at in nodes:
        for earlier in _members(steps[at].before & ~done):
            followers[earlier].append(at)
    ways = {done: _Way(0, live, tuple(at for at in nodes if not steps[at].before & ~done))}
    for _ in nodes:
        longer: dict[int, _Way] = {}
        for ran, way in ways.items():
            for at in way.ready[:_CHOICES]:
                used, left = _use(steps[at], at, ran, way.live)
                peak = max(way.peak, used)
                known = longer.get(ran | 1 << at)
                # The same tensors live after a set of nodes in any order, so that orders differ only in their peaks.
                if peak < limit and (known is None or peak < known.peak):
                    longer[ran | 1 << at] = _Way(peak, left, way.ready, at, way)
        # Of equal peaks, the set with fewer bytes in use leaves more room for the nodes that follow.
        best = sorted(longer.items(), key=lambda each: (each[1].peak, each[1].live))
        kept = best[: max(1, allowed // min(_CHOICES, len(best[0][1].ready)))] if best else []
        ways = {ran: _with_ready(way, steps, ran, followers[way.last]) for ran, way in kept}
    return next(iter(ways.values()), None)


def _with_ready(way: _Way, steps: Sequence[_Step], ran: int, followers: Iterable[int]) -> _Way:
    """Return ``way`` with the nodes that may run next: those for which its last node was missing come first."""
    new = [at for at in followers if not steps[at].before & ~ran]
    # First, because they read what has just been written, which is then in use no longer than necessary.
    return replace(way, ready=(*new, *(at for at in way.ready if at != way.last)))


def _path(way: _Way) -> list[int]:
    found = []
    while way.earlier is not None:
        found.append(way.last)
        way = way.earlier
    return found[::-1]


def _run(steps: Sequence[_Step], nodes: Iterable[int], done: int, live: int) -> _Way:
    """Run ``nodes`` in their order after ``done``."""
    peak = 0
    for at in nodes:
        used, live = _use(steps[at], at, done, live)
        peak, done = max(peak, used), done | 1 << at
    return _Way(peak, live)


def _use(step: _Step, at: int, done: int, live: int) -> tuple[int, int]:
    """Return the bytes in use during the node ``at``, which runs after the nodes ``done``, and after it."""
    after = done | 1 << at
    used = left = live
    for piece in step.pieces:
        if not piece.users & done and not piece.begins:
            used += piece.size
            left += piece.size
        if not piece.users & ~after and not piece.stays:
            left -= piece.size
    for source, output in step.overwrites:
        # As in ``storages.reuse_inputs``: the last use of the one, and the first of the other.
        if not (source.users & ~after or source.stays or output.users & done or output.begins):
            used -= min(source.size, output.size)
            break
    return used + step.scratch, left


def _need(step: _Step) -> int:
    """Return the bytes that a node uses in every order."""
    shared = max((min(source.size, output.size) for source, output in step.overwrites), default=0)
    return sum(piece.size for piece in step.pieces) + step.scratch - shared


def _live_before(steps: Sequence[_Step]) -> int:
    begun = {id(piece): piece for step in steps for piece in step.pieces if piece.begins}
    return sum(piece.size for piece in begun.values())


def _blocks(steps: Sequence[_Step]) -> list[list[int]]:
    """Return the nodes in the order of the file, cut where a node is before or after all others."""
    before = _closure(steps)
    after = [0] * len(steps)
    for at, ancestors in enumerate(before):
        for other in _members(ancestors):
            after[other] |= 1 << at
    blocks: list[list[int]] = [[]]
    for at in range(len(steps)):
        if (before[at] | after[at] | 1 << at) == (1 << len(steps)) - 1:
            blocks += [[at], []]
        else:
            blocks[-1].append(at)
    return [block for block in blocks if block]


def _closure(steps: Sequence[_Step]) -> list[int]:
    """Return all nodes that must run before each node; ``before`` has at least one on each path."""
    found: list[int] = []
    for step in steps:
        ancestors = step.before
        for other in _members(step.before):
            ancestors |= found[other]
        found.append(ancestors)
    return found


def _members(nodes: int) -> Iterator[int]:
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest


def _bits(nodes: Iterable[int]) -> int:
    return sum(1 << at for at in nodes)


def _steps(graph: Graph, calls: Sequence[KernelCall], arena_io: bool) -> list[_Step]:
    storages = storages_of(graph, arena_io=arena_io)
    for node in graph.nodes:
        make_view(graph, node, storages)
    note_lifetimes(graph, storages)
    leave_states(graph, calls, storages)
    steps = [_Step(scratch=aligned(call.scratch)) for call in calls]
    _put_in_order(graph, storages, steps)
    pieces: dict[int, _Piece] = {}
    for at, (node, call) in enumerate(zip(graph.nodes, calls, strict=True)):
        for name in dict.fromkeys((*node.inputs, *node.outputs)):
            piece = None if name is None else _piece(storages[name], pieces)
            if piece is not None:
                piece.users |= 1 << at
                if piece not in steps[at].pieces:
                    steps[at].pieces.append(piece)
        output = _piece(storages[node.outputs[0]], pieces)
        for position in call.overwrites:
            source = _piece(storages[str(node.inputs[position])], pieces)
            if source is not None and output is not None and source is not output:
                steps[at].overwrites.append((source, output))
    for names, flag in ((graph.inputs, "begins"), (graph.results, "stays")):
        for name in names:
            if id(storages[name]) in pieces:
                setattr(pieces[id(storages[name])], flag, True)
    return steps


def _piece(storage: Storage, pieces: dict[int, _Piece]) -> _Piece | None:
    """Return the piece of a storage; ``None`` if it is not in the arena."""
    if storage.area is not StorageKind.ARENA:
        return None
    return pieces.setdefault(id(storage), _Piece(aligned(max(span.size for span in storage.spans))))


def _put_in_order(graph: Graph, storages: Mapping[str, Storage], steps: Sequence[_Step]) -> None:
    """Let each node run after those that write its inputs, and after earlier nodes that use the same state."""
    writers = {name: at for at, node in enumerate(graph.nodes) for name in node.outputs}
    users: dict[int, int] = {}
    for at, node in enumerate(graph.nodes):
        names = [name for name in (*node.inputs, *node.outputs) if name is not None]
        steps[at].before |= _bits({writers[name] for name in names if writers.get(name, at) != at})
        for state in {id(storages[name]) for name in names if storages[name].area is StorageKind.STATE}:
            steps[at].before |= users.get(state, 0)
            users[state] = users.get(state, 0) | 1 << at
