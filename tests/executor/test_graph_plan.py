"""Static plans of random executor graphs, simulated: every value that a call reads is still in memory."""

import itertools

import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.core.errors import InputFileError
from mlfbuild.executor.graph_plan import COPY, NO_CALL, Area, TensorPlace, plan_graph
from mlfbuild.library.graph_json import CALL, INPUT, ExecutorGraph, GraphNode, NodeEntry
from support.errors import raises
from support.examples import examples


def graph_of(nodes: list[tuple[GraphNode, list[tuple[int, ...]]]], heads: list[NodeEntry]) -> ExecutorGraph:
    """Return a graph of nodes with int8 outputs of these shapes; each entry has a separate storage id."""
    shapes = [shape for _, its in nodes for shape in its]
    rows = tuple(itertools.accumulate((len(its) for _, its in nodes), initial=0))
    return ExecutorGraph(
        nodes=tuple(node for node, _ in nodes),
        arg_nodes=tuple(index for index, (node, _) in enumerate(nodes) if node.op == INPUT),
        heads=tuple(heads),
        node_row_ptr=rows,
        shape=tuple(shapes),
        dltype=("int8",) * len(shapes),
        storage_id=tuple(range(len(shapes))),
    )


def call(name: str, *inputs: NodeEntry) -> GraphNode:
    return GraphNode(CALL, name, inputs, (("func_name", name),))


@st.composite
def graphs(draw: st.DrawFn) -> ExecutorGraph:
    """Draw two inputs, two parameters and up to 12 nodes, some ``__nop`` or ``__copy``; any entries are outputs."""
    sizes = st.sampled_from([(4,), (3, 20), (100,), ()])
    nodes = [(GraphNode(INPUT, name), [draw(sizes)]) for name in ("x", "p0", "y", "p1")]
    known = [(NodeEntry(at), its[0]) for at, (_, its) in enumerate(nodes)]
    for at in range(4, 4 + draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["call", "call", "call", NO_CALL, COPY]))
        read = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3 if kind == "call" else 1))
        shapes = draw(st.lists(sizes, min_size=1, max_size=2)) if kind == "call" else [read[0][1]]
        nodes.append((call(f"f{at}" if kind == "call" else kind, *(entry for entry, _ in read)), shapes))
        known += [(NodeEntry(at, index), shape) for index, shape in enumerate(shapes)]
    heads = draw(st.lists(st.sampled_from([entry for entry, _ in known]), min_size=1, max_size=4))
    return graph_of(nodes, heads)


def values_of(graph: ExecutorGraph) -> list[int]:
    """Return the entry whose value each entry has."""
    values = list(range(len(graph.shape)))
    for index, node in enumerate(graph.nodes):
        if node.function in {NO_CALL, COPY}:
            values[graph.node_row_ptr[index]] = values[graph.entry(node.inputs[0])]
    return values


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(graphs())
def test_values_are_in_memory_when_they_are_read(graph: ExecutorGraph) -> None:
    plan = plan_graph(graph, {"p0"}, "net", {"p1"})  # p1 has the position of an input after the others
    value = values_of(graph)
    memory: dict[tuple[Area, int], tuple[int, int]] = {}

    def put(place: TensorPlace, entry: int) -> None:
        for offset in range(graph.tensor(entry, "").size):
            memory[spot(place, offset)] = (value[entry], offset)

    def holds(place: TensorPlace, entry: int) -> bool:
        size = graph.tensor(entry, "").size
        return all(memory.get(spot(place, at)) == (value[entry], at) for at in range(size))

    def spot(place: TensorPlace, offset: int) -> tuple[Area, int]:
        return (place.area, place.position + offset if place.area is Area.STORAGE else place.position * 1000 + offset)

    put(TensorPlace(Area.INPUT, 0), 0)
    put(TensorPlace(Area.INPUT, 1), 2)
    put(TensorPlace(Area.CONSTANT, 1), 1)
    put(TensorPlace(Area.INPUT, 2), 3)
    assert plan.linked == (3,)
    functions = [node.function for node in graph.nodes if node.op == CALL and node.function != NO_CALL]
    assert [each.function for each in plan.calls][: len(functions)] == [
        None if name == COPY else name for name in functions
    ]
    nodes = (node for node in graph.nodes if node.op == CALL and node.function != NO_CALL)
    for each in plan.calls:
        node = next(nodes, None)
        read = len(node.inputs) if node is not None else 1
        for tensor in each.tensors[:read]:
            assert holds(tensor.place, tensor.entry)
        for tensor in each.tensors[read:]:
            assert tensor.place.area in {Area.STORAGE, Area.OUTPUT}
            if tensor.place.area is Area.STORAGE:
                assert tensor.place.position + graph.tensor(tensor.entry, "").size <= plan.storage_size
            put(tensor.place, tensor.entry)
    for index, head in enumerate(graph.heads):
        assert holds(TensorPlace(Area.OUTPUT, index), graph.entry(head))


def chain(ids: tuple[int, ...]) -> ExecutorGraph:
    """Return a graph with x of 100 bytes and four calls of 100 bytes in a chain, with these storage ids."""
    nodes: list[tuple[GraphNode, list[tuple[int, ...]]]] = [(GraphNode(INPUT, "x"), [(100,)])]
    nodes += [(call(f"f{at}", NodeEntry(at)), [(100,)]) for at in range(4)]
    graph = graph_of(nodes, [NodeEntry(4)])
    return ExecutorGraph(**(vars(graph) | {"storage_id": ids}))


def test_storage_is_shared_by_lifetime_regardless_of_ids() -> None:
    assert plan_graph(chain((0, 1, 2, 3, 4)), (), "net").storage_size == 2 * 112
    assert plan_graph(chain((0, 1, 2, 1, 2)), (), "net").storage_size == 2 * 112


def test_call_overwrites_its_input_if_the_ids_are_equal() -> None:
    nodes: list[tuple[GraphNode, list[tuple[int, ...]]]] = [(GraphNode(INPUT, "x"), [(100,)])]
    sizes = (100, 100, 60, 60, 60)  # of which the last one is the output
    nodes += [(call(f"f{at}", NodeEntry(at)), [(size,)]) for at, size in enumerate(sizes)]
    graph = graph_of(nodes, [NodeEntry(5)])
    assert plan_graph(graph, (), "net").storage_size == 2 * 112
    plan = plan_graph(ExecutorGraph(**(vars(graph) | {"storage_id": (0, 1, 1, 2, 3, 4)})), (), "net")
    assert plan.storage_size == 112 + 64
    first, second = (tensor.place for tensor in plan.calls[1].tensors)
    assert first == second


def test_first_argument_can_be_a_parameter() -> None:
    nodes: list[tuple[GraphNode, list[tuple[int, ...]]]] = [
        (GraphNode(INPUT, "p0"), [(4,)]),
        (GraphNode(INPUT, "x"), [(4,)]),
        (call("f", NodeEntry(0), NodeEntry(1)), [(4,)]),
    ]
    (only,) = plan_graph(graph_of(nodes, [NodeEntry(2)]), {"p0"}, "net").calls
    assert [tensor.place for tensor in only.tensors] == [
        TensorPlace(Area.CONSTANT, 0),
        TensorPlace(Area.INPUT, 0),
        TensorPlace(Area.OUTPUT, 0),
    ]


@pytest.mark.parametrize("name", [NO_CALL, COPY])
def test_copies_of_different_sizes_are_rejected(name: str) -> None:
    nodes: list[tuple[GraphNode, list[tuple[int, ...]]]] = [
        (GraphNode(INPUT, "x"), [(4,)]),
        (call(name, NodeEntry(0)), [(5,)]),
    ]
    with raises(InputFileError, "graph-node-invalid", at=f"net: node 1 '{name}'"):
        plan_graph(graph_of(nodes, [NodeEntry(1)]), (), "net")
