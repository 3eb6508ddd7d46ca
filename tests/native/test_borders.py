"""Tensors at the border of an NPU are in its working memory at the offsets of its command streams, or are copied."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.library.cgen.alignment import ALIGNMENT, CACHE_LINE
from mlfbuild.library.keys import ArenaMemory
from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import Add, Concatenation, EthosU, Reshape
from mlfbuild.native.lowering import KernelCall, lower
from mlfbuild.native.memory import better_order
from mlfbuild.native.memory.plan import Plan, Planning, plan_memory
from mlfbuild.native.memory.storages import Location, StorageKind
from mlfbuild.native.planned import without_copies
from mlfbuild.native.settings import CodegenSettings
from mlfbuild.targets import CPUS
from support.examples import examples
from support.sketch import Sketch

SIZE = 32
"""Bytes of every tensor."""
MEMORY = 160
Byte = tuple[object, int]


def npu_call(inputs: Sequence[int], outputs: Sequence[int], stores: Sequence[tuple[int, int]] = ()) -> EthosU:
    """Return a call with tensors at these offsets, which writes its outputs and ``stores``."""
    written = {(start, start + SIZE) for start in outputs} | {*stores}
    return EthosU(0, 1, b"", b"", None, MEMORY, 0, tuple(inputs), tuple(outputs), tuple(sorted(written)))


def add_call(s: Sketch, inputs: Sequence[str], outputs: Sequence[str], operator: EthosU) -> None:
    for name in outputs:
        s.tensor(name, 1, 4, 4, 2)
    s.nodes.append(Node(f"call {outputs[0]}", operator, tuple(inputs), tuple(outputs)))


def lowered(graph: Graph) -> list[KernelCall]:
    return [lower(graph, node, CodegenSettings(CPUS["cortex-m55"])) for node in graph.nodes]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Draw up to 10 nodes; Vela's offset of a tensor is the same for all calls, and may be that of another tensor."""
    s = Sketch()
    known = [s.tensor(name, 1, 4, 4, 2) for name in ("x", "z")]
    places = st.integers(0, (MEMORY - SIZE) // 8).map(
        lambda number: number * 8 if number % 5 == 0 else number // 2 * 16
    )
    offsets = {name: draw(places) for name in known}

    def apart(names: Sequence[str]) -> list[str]:
        found: list[str] = []
        for name in names:
            if all(abs(offsets[name] - offsets[each]) >= SIZE for each in found):
                found.append(name)
        return found

    for index in range(draw(st.integers(1, 10))):
        new = [f"t{index}", f"u{index}"]
        offsets |= {name: draw(places) for name in new}
        sources = draw(st.lists(st.sampled_from(known[-5:]), min_size=2, max_size=2))
        kind = draw(st.sampled_from(["call", "call", "add", "reshape"]))
        if kind == "call":
            reads, writes = apart(sources), apart(new)
            start = draw(places)
            stores = [(start, draw(st.integers(start + 1, MEMORY)))] if draw(st.booleans()) else []
            call = npu_call([offsets[name] for name in reads], [offsets[name] for name in writes], stores)
            add_call(s, reads, writes, call)
            known += writes
        else:
            s.tensor(new[0], 1, 4, 4, 2)
            s.node(Add(), *sources, new[0]) if kind == "add" else s.node(Reshape(), sources[0], new[0])
            known.append(new[0])
    return s.graph(["x", "z"], draw(st.lists(st.sampled_from(known[2:]), min_size=1, max_size=3)))


class Simulated:
    """Memory while a network runs; values are names of tensors."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        self.graph, self.plan = graph, plan
        self.same = {name: name for name in graph.tensors}
        for node in graph.nodes:
            if isinstance(node.operator, Reshape):
                self.same[node.outputs[0]] = self.same[str(node.inputs[0])]
        self.memory: dict[Byte, Byte] = {}

    def bytes_at(self, location: Location) -> list[Byte]:
        if location.area is StorageKind.ARENA:
            assert location.position % ALIGNMENT == 0 and location.position + SIZE <= self.plan.arena_size
            return [(StorageKind.ARENA, location.position + at) for at in range(SIZE)]
        return [((location.area, location.position), at) for at in range(SIZE)]

    def in_memory(self, offset: int) -> list[Byte]:
        return [(StorageKind.ARENA, offset + at) for at in range(SIZE)]

    def write(self, name: str, places: Sequence[Byte]) -> None:
        self.memory.update({place: (self.same[name], at) for at, place in enumerate(places)})

    def holds(self, name: str, places: Sequence[Byte]) -> bool:
        return [self.memory.get(place) for place in places] == [(self.same[name], at) for at in range(SIZE)]

    def run(self, index: int) -> int:
        """Run a node; return the number of tensors that a call copies."""
        node, base = self.graph.nodes[index], self.plan.scratch[index]
        operator, names, copied = node.operator, [str(name) for name in node.inputs], 0
        assert all(self.holds(name, self.bytes_at(self.plan.locations[name])) for name in names)
        if not isinstance(operator, EthosU):
            self.write(node.outputs[0], self.bytes_at(self.plan.locations[node.outputs[0]]))
            return 0
        assert base % ALIGNMENT == 0 and base + MEMORY <= self.plan.arena_size
        for name, offset in zip(names, operator.input_offsets, strict=True):
            places = self.bytes_at(self.plan.locations[name])
            if places != self.in_memory(base + offset):
                moved = [self.memory[place] for place in places]
                self.memory.update(zip(self.in_memory(base + offset), moved, strict=True))
                copied += 1
        for name, offset in zip(names, operator.input_offsets, strict=True):
            assert self.holds(name, self.in_memory(base + offset))
        for start, end in operator.stores:
            self.memory.update({(StorageKind.ARENA, base + at): ("of the NPU", at) for at in range(start, end)})
        for name, offset in zip(node.outputs, operator.output_offsets, strict=True):
            self.write(name, self.in_memory(base + offset))
        for name, offset in zip(node.outputs, operator.output_offsets, strict=True):
            places = self.bytes_at(self.plan.locations[name])
            if places != self.in_memory(base + offset):
                assert self.holds(name, self.in_memory(base + offset))
                self.write(name, places)
                copied += 1
        return copied


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(graphs(), st.booleans(), st.booleans())
def test_values_are_there_when_they_are_read(graph: Graph, arena_io: bool, reordered: bool) -> None:
    calls: Sequence[KernelCall] = lowered(graph)
    if reordered:
        graph, calls = better_order(graph, calls, arena_io=arena_io) or (graph, calls)
    plan = plan_memory(graph, calls, arena_io=arena_io)
    simulated = Simulated(graph, plan)
    for name, location in zip(graph.inputs, plan.inputs, strict=True):
        simulated.write(name, simulated.bytes_at(location))
    final = without_copies(graph, calls, plan)
    for index, call in enumerate(final):
        copies = sum(line.startswith("memcpy(") for line in call.body)
        assert simulated.run(index) == copies or not isinstance(graph.nodes[index].operator, EthosU)
    for name, location in plan.copies:
        assert simulated.holds(name, simulated.bytes_at(plan.locations[name]))
        simulated.write(name, simulated.bytes_at(location))
    for name, location in zip(graph.outputs, plan.outputs, strict=True):
        assert simulated.holds(name, simulated.bytes_at(location))


def memories(*limits: int) -> tuple[ArenaMemory, ...]:
    """Return memories, each slower than the one before it."""
    return tuple(ArenaMemory(f"m{at}", size, f".m{at}", 1000 * at, 1000 * at) for at, size in enumerate(limits))


def between(first: EthosU, second: EthosU, *, waits: bool = False) -> tuple[Plan, int]:
    """Return the plan of ``a = call(x); b = a + a; y = call(b)``, ``waits``: ``y = call(b, a)``, and its copies."""
    s = Sketch()
    s.tensor("x", 1, 4, 4, 2)
    add_call(s, ["x"], ["a"], first)
    s.node(Add(), "a", "a", s.tensor("b", 1, 4, 4, 2))
    add_call(s, ["b", "a"] if waits else ["b"], ["y"], second)
    graph = s.graph(["x"], ["y"])
    calls = lowered(graph)
    plan = plan_memory(graph, calls)
    final = without_copies(graph, calls, plan)
    return plan, sum(line.startswith("memcpy(") for call in final for line in call.body)


def test_borders_need_neither_memory_nor_copies() -> None:
    plan, copies = between(npu_call([0], [64]), npu_call([0], [64]))
    assert (plan.arena_size, plan.borders, copies) == (MEMORY, frozenset({0, 2}), 2)  # those of the caller's x and y
    base = plan.scratch[0]
    assert plan.scratch[2] == base
    assert [plan.locations[name].position - base for name in "ab"] == [64, 0]


def test_a_border_is_not_copied_to_a_faster_memory() -> None:
    """``a`` and ``b`` are read and written once, as the copies would be."""
    s = Sketch()
    s.tensor("x", 1, 4, 4, 2)
    add_call(s, ["x"], ["a"], npu_call([0], [64]))
    s.node(Add(), "a", "x", s.tensor("b", 1, 4, 4, 2))
    add_call(s, ["b"], ["y"], npu_call([0], [64]))
    graph = s.graph(["x"], ["y"])
    plan = plan_memory(graph, lowered(graph), memories=memories(2 * SIZE, 1 << 10))
    assert plan.borders == {0, 2} and [each.size for each in plan.memories] == [0, MEMORY]


@pytest.mark.parametrize(
    ("first", "second", "waits", "copies"),
    [
        (npu_call([0], [64]), npu_call([64], [0]), False, 3),  # ADD needs both a and b
        (npu_call([0], [64]), npu_call([0, 64], [64]), True, 2),  # the last reader may overwrite its input
        (npu_call([0], [64]), npu_call([0, 32], [96]), True, 4),  # a has two offsets, so that it is copied twice
        (npu_call([0], [72]), npu_call([0], [64]), False, 3),  # no multiple of 16
    ],
)
def test_a_tensor_whose_bytes_are_needed_otherwise_is_copied(
    first: EthosU, second: EthosU, waits: bool, copies: int
) -> None:
    plan, found = between(first, second, waits=waits)
    assert found == copies and plan.arena_size <= MEMORY + 2 * SIZE


@pytest.mark.parametrize(
    ("second", "copies"),
    [(npu_call([0], [128]), 2), (npu_call([0], [128], [(80, 81)]), 3), (npu_call([48], [128]), 3)],
)
def test_a_call_that_writes_the_bytes_of_a_waiting_tensor(second: EthosU, copies: int) -> None:
    """``a`` waits for ADD while another call runs: neither a command nor the copy of ``x`` may overwrite it."""
    s = Sketch()
    s.tensor("x", 1, 4, 4, 2)
    add_call(s, ["x"], ["a"], npu_call([0], [64]))
    add_call(s, ["x"], ["b"], second)
    s.node(Add(), "a", "b", s.tensor("y", 1, 4, 4, 2))
    graph = s.graph(["x"], ["y"])
    final = without_copies(graph, lowered(graph), plan_memory(graph, lowered(graph)))
    assert sum(line.startswith("memcpy(") for call in final for line in call.body) == copies


def test_a_part_of_another_tensor_is_copied() -> None:
    """Even if a plan without the view is smaller, which the planner then uses."""
    s = Sketch()
    s.tensor("x", 1, 4, 4, 2)
    add_call(s, ["x"], ["a"], npu_call([0], [64]))
    s.node(Add(), "x", "x", s.tensor("b", 1, 4, 4, 2))
    s.node(Concatenation(1), "a", "b", s.tensor("c", 1, 8, 4, 2))
    s.node(Add(), "c", "c", s.tensor("y", 1, 8, 4, 2))
    graph = s.graph(["x"], ["y"])
    plan = Planning(graph, lowered(graph), arena_io=False, arenas=None).plan(frozenset())
    assert plan.views == {2} and not plan.borders
    assert [plan.locations[name].position - plan.locations["c"].position for name in "ab"] == [0, SIZE]


@pytest.mark.parametrize("limits", [(), (200, 500), (48, 1000), (95, 1 << 20)])
def test_arenas_consist_of_whole_cache_lines(limits: tuple[int, ...]) -> None:
    s = Sketch()
    for name in "xzaby":
        s.tensor(name, 1, 4, 4, 3)
    s.node(Add(), "x", "x", "z")
    s.nodes.append(Node("call", npu_call([0], [64], [(64, 112)]), ("x",), ("a",)))
    for source, other, output in ("aab", "zby"):
        s.node(Add(), source, other, output)
    graph = s.graph(["x"], ["y"])
    plan = plan_memory(graph, lowered(graph), memories=memories(*limits))
    sizes = [each.size for each in plan.memories] or [plan.arena_size]
    assert plan.fits and sum(sizes) == plan.arena_size >= plan.lower_bound > 0
    assert all(size % CACHE_LINE == 0 and size <= limit for size, limit in zip(sizes, limits or sizes, strict=True))
