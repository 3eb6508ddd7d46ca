"""Decide which tensors of an executor graph have the same bytes, and which share a storage id.

TVM's executors allocate one buffer for each storage id, as large as the largest tensor with that id, and do not support
offsets. So this problem differs from packing an arena: tensors are coloured, and the cost of a colour is its largest
member. The rules:

1. A RESHAPE costs nothing if one tensor can be both its input and its output (its root). The shape of the root must be
   that of the port if the tensor is an input, an output or a constant; a RESHAPE between two ports is a copy.
2. Two tensors may share an id if they are not in use at the same time, or if the later one overwrites the other and its
   kernel permits it, as in the arena of the AOT executor.
3. Tensors that are parts of others are copied, because a part would need an offset.
4. Each tensor in turn takes the storage that must grow least; of several, the smallest one.
5. The order of the tensors decides the result. The largest first, and the order of the graph, are tried; then, up to
   100 tensors, single tensors are moved to the front as long as the sum becomes smaller.

For example, with float32 tensors, of which ``d`` is a CONCATENATION of ``b`` and ``c``::

    node 0   SOFTMAX        x -> a          256 bytes    storage 0
    node 1   ABS            a -> b          256          storage 1, because a is read again
    node 2   SOFTMAX        a -> c          256          storage 2
    node 3   CONCATENATION  b, c -> d       512          storage 0, which grows to 512
    node 4   SOFTMAX        d -> y          512          storage 0: SOFTMAX may overwrite its input

The sum is 1024 bytes with the output, which is a buffer of the executor here. The AOT plan of the same network needs an
arena of 768 bytes, and ``y`` is in the buffer of the caller (``memory/plan.py``).

The scratch memory of calls is not part of a storage. TVM's allocator provides it, and the largest one counts in
``size``. The result is not proven to be the smallest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import Reshape
from mlfbuild.native.lowering import KernelCall
from mlfbuild.native.printing import runtime_shape

_MOST_IMPROVED = 100
"""In networks with more tensors, the order in which they take storages is not improved."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class StoragePlan:
    """The storages of the tensors that calls write."""

    roots: Mapping[str, str]
    """Tensor -> the tensor that has its bytes: itself, or the source of a RESHAPE."""
    shapes: Mapping[str, Shape]
    """Root -> its shape in the graph."""
    calls: tuple[int, ...]
    """Indices of the nodes that are calls: all but RESHAPEs whose input and output have the same bytes."""
    groups: Mapping[str, int]
    """Tensor that a call writes -> number of its storage, from 0."""
    sizes: tuple[int, ...]
    """Bytes of each storage."""
    scratch: int
    """Bytes of scratch memory of the call that needs most."""

    @property
    def size(self) -> int:
        """Bytes that a run needs in addition to inputs and parameters."""
        return sum(self.sizes) + self.scratch


def plan_storage(graph: Graph, calls: Sequence[KernelCall]) -> StoragePlan:
    """Return the plan of ``graph``, whose nodes are lowered to ``calls``.

    Nodes that only reshape become aliases of their input. Tensors whose lives do not meet share a storage, or a call's
    output the storage of an input that its kernel may overwrite.
    """
    roots, shapes = _same_bytes(graph)
    made = tuple(index for index, node in enumerate(graph.nodes) if not _is_alias(node, roots))
    lives = _lives(graph, roots, made)
    groups, sizes = _Sharing(lives, _written_over(graph, calls, roots, lives)).best()
    return StoragePlan(roots, shapes, made, groups, sizes, max((calls[index].scratch for index in made), default=0))


# Views ---------------------------------------------------------------------------------------------------------------


def _same_bytes(graph: Graph) -> tuple[dict[str, str], dict[str, Shape]]:
    """Return the root of each tensor and the shape of each root; an output of another shape is copied."""
    # Grows until no output clashes; each round copies one more.
    copied: set[str] = set()
    # A clash is found only after the roots are chosen, so that they are chosen again with one more copy.
    while True:
        roots = _roots(graph, copied)
        shapes = {name: runtime_shape(graph.tensor(name)) for name in roots.values() if _has_shape(graph, name)}
        clash = next((name for name in graph.outputs if not _agrees(graph, name, roots, shapes)), None)
        if clash is None:
            return roots, {**{name: runtime_shape(graph.tensor(name)) for name in roots.values()}, **shapes}
        copied.add(clash)


def _has_shape(graph: Graph, root: str) -> bool:
    """Return whether ``root`` is an input, output or constant, so that its shape is fixed."""
    return root in graph.inputs or root in graph.outputs or graph.tensor(root).constant


def _agrees(graph: Graph, output: str, roots: Mapping[str, str], shapes: dict[str, Shape]) -> bool:
    """Return whether ``output`` has the shape of its root; if the root has none yet, it gets that of ``output``."""
    shape = runtime_shape(graph.tensor(output))
    return shapes.setdefault(roots[output], shape) == shape


def _roots(graph: Graph, copied: Iterable[str]) -> dict[str, str]:
    roots = {name: name for name in graph.tensors}
    for node in graph.nodes:
        source = node.inputs[0] if node.inputs else None
        if source is None or not isinstance(node.operator, Reshape) or node.outputs[0] in copied:
            continue
        # A constant has a shape of its own in the file, and other readers may need it.
        if not graph.tensor(roots[source]).constant:
            roots[node.outputs[0]] = roots[source]
    return roots


def _is_alias(node: Node, roots: Mapping[str, str]) -> bool:
    return roots[node.outputs[0]] != node.outputs[0]


# Lifetimes -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Life:
    """A tensor in use from the call ``first`` to the call ``last``, both included."""

    size: int
    first: int
    last: int


def _lives(graph: Graph, roots: Mapping[str, str], calls: Sequence[int]) -> dict[str, _Life]:
    lives = {}
    for index in calls:
        for name in graph.nodes[index].outputs:
            lives[name] = _Life(graph.tensor(name).size, index, index)
    ends = [(name, index) for index in calls for name in graph.nodes[index].inputs if name is not None]
    # Outputs are read by the caller after the last call.
    ends += [(name, len(graph.nodes)) for name in graph.outputs]
    for name, end in ends:
        root = roots[name]
        if root in lives:
            lives[root] = _Life(lives[root].size, lives[root].first, max(lives[root].last, end))
    return lives


def _written_over(
    graph: Graph, calls: Sequence[KernelCall], roots: Mapping[str, str], lives: Mapping[str, _Life]
) -> Iterator[tuple[str, str]]:
    """Yield (input, output) of each call that may overwrite an input that no later call reads."""
    for index, (node, call) in enumerate(zip(graph.nodes, calls, strict=True)):
        for position in call.overwrites:
            source = roots[str(node.inputs[position])]
            # Overwriting is possible only at the moment when one ends and the other begins.
            if source in lives and lives[source].last == index and lives[node.outputs[0]].first == index:
                yield source, node.outputs[0]


# Sharing -------------------------------------------------------------------------------------------------------------


class _Sharing:
    """Assigns tensors to storages, and tries several orders to find a small total size."""

    def __init__(self, lives: Mapping[str, _Life], allowed: Iterable[tuple[str, str]]) -> None:
        self._lives = lives
        permitted = {frozenset(pair) for pair in allowed}
        self._apart: dict[str, set[str]] = {name: set() for name in lives}
        active: list[str] = []
        for name, life in sorted(lives.items(), key=lambda item: item[1].first):
            # Sorted by their beginning, so that only tensors that are still in use can be in use together.
            active = [other for other in active if lives[other].last >= life.first]
            for other in active:
                if frozenset((name, other)) not in permitted:
                    self._apart[name].add(other)
                    self._apart[other].add(name)
            active.append(name)

    def best(self) -> tuple[dict[str, int], tuple[int, ...]]:
        """Return the number of each tensor's storage and the bytes of each storage."""
        names = list(self._lives)
        orders = [sorted(names, key=lambda name: -self._lives[name].size), names]
        order = min(orders, key=self._total)
        if len(names) <= _MOST_IMPROVED:
            order = self._improved(order)
        groups, sizes = self._shared(order)
        # Numbered in the order of the graph, so that a change of the search does not rename all storages.
        numbers = {old: new for new, old in enumerate(dict.fromkeys(groups[name] for name in names))}
        by_number = {numbers[old]: size for old, size in enumerate(sizes)}
        return {name: numbers[groups[name]] for name in names}, tuple(by_number[at] for at in range(len(sizes)))

    def _improved(self, order: list[str]) -> list[str]:
        """Move single tensors to the front as long as this reduces the total size."""
        least = self._total(order)
        better = True
        while better:
            better = False
            for name in list(order):
                moved = [name, *(other for other in order if other != name)]
                total = self._total(moved)
                if total < least:
                    order, least, better = moved, total, True
        return order

    def _total(self, order: Iterable[str]) -> int:
        return sum(self._shared(order)[1])

    def _shared(self, order: Iterable[str]) -> tuple[dict[str, int], list[int]]:
        """Assign each tensor in turn to the storage that must grow least; if several are equal, to the smallest."""
        groups: dict[str, int] = {}
        sizes: list[int] = []
        for name in order:
            size = self._lives[name].size
            taken = {groups[other] for other in self._apart[name] if other in groups}
            free = [number for number in range(len(sizes)) if number not in taken]
            # The least growth, and of those without growth the smallest, which leaves the large ones for large tensors.
            chosen = min(free, key=lambda number: (max(size - sizes[number], 0), sizes[number]), default=None)
            if chosen is None:
                groups[name] = len(sizes)
                sizes.append(size)
            else:
                groups[name] = chosen
                sizes[chosen] = max(sizes[chosen], size)
        return groups, sizes
