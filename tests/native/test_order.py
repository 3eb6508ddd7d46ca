"""Orders of nodes with fewer bytes in use: the smallest peak of small networks, and the same numbers."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from mlfbuild.library.cgen.alignment import aligned
from mlfbuild.native.graph import Graph, Node, State
from mlfbuild.native.graph.ops import AveragePool2D, Concatenation
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.lowering.dispatch import lower
from mlfbuild.native.memory import better_order, plan_memory
from mlfbuild.native.settings import CodegenSettings
from mlfbuild.targets import CPUS
from support.examples import examples
from support.host_c import run_on_host
from support.native import compile_bytes
from support.oracle import assert_equal, tflite_micro_run
from support.sketch import Sketch
from support.tflite_builder import Network


def calls_of(graph: Graph) -> list[KernelCall]:
    """Return the calls of ``graph``, of kernels that overwrite nothing."""
    settings = CodegenSettings(CPUS["cortex-m4"])
    return [replace(lower(graph, node, settings), overwrites=()) for node in graph.nodes]


def peak(graph: Graph, nodes: Sequence[Node]) -> int:
    """Return the most bytes in use at one time if ``nodes`` run in this order, with inputs and outputs elsewhere."""
    most, there = 0, set[str]()
    for at, node in enumerate(nodes):
        there |= {*node.outputs}
        most = max(most, sum(aligned(graph.tensor(name).size) for name in there - {*graph.outputs}))
        there &= {str(name) for later in nodes[at + 1 :] for name in later.inputs}
    return most


def runs(graph: Graph, nodes: Sequence[Node]) -> bool:
    """Return whether each of ``nodes`` reads only what is there."""
    known = {*graph.inputs}
    return all({*node.inputs} <= known and not known.update(node.outputs) for node in nodes)


@st.composite
def branches(draw: st.DrawFn) -> Graph:
    """Draw 2 to 6 nodes that each join one or two earlier tensors along their channels, where no part is contiguous."""
    s = Sketch()
    channels = {s.tensor("x", 1, 2, 2, 5): 5}
    for index in range(draw(st.integers(2, 6))):
        read = draw(st.lists(st.sampled_from(list(channels)), min_size=1, max_size=2, unique=True))
        name = f"t{index}"
        channels[name] = sum(channels[each] for each in read)
        s.tensor(name, 1, 2, 2, channels[name])
        if len(read) == 1:
            s.node(AveragePool2D((1, 1)), *read, name)
        else:
            s.node(Concatenation(3), *read, name)
    return s.graph(["x"], [name])


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(branches())
def test_no_order_of_a_small_network_has_a_smaller_peak(graph: Graph) -> None:
    found = better_order(graph, calls_of(graph))
    least = min(peak(graph, nodes) for nodes in permutations(graph.nodes) if runs(graph, nodes))
    if found is None:
        assert peak(graph, graph.nodes) == least
    else:
        other, calls = found
        assert sorted(other.nodes, key=graph.nodes.index) == list(graph.nodes)
        assert [call.function for call in calls] == [call.function for call in calls_of(other)]
        assert peak(graph, other.nodes) == least < peak(graph, graph.nodes)
        assert plan_memory(other, calls).lower_bound == least


def waiting(count: int) -> Graph:
    """Return ``count`` large tensors, of which each is only pooled to a small one, all before the first is pooled."""
    s = Sketch()
    s.tensor("x", 1, 8, 8, 4)
    for index in range(count):
        s.node(AveragePool2D((1, 1)), "x", s.tensor(f"large{index}", 1, 8, 8, 4))
    for index in range(count):
        s.node(AveragePool2D((8, 8), (8, 8)), f"large{index}", s.tensor(f"small{index}", 1, 1, 1, 4))
    s.node(Concatenation(3), *(f"small{index}" for index in range(count)), s.tensor("y", 1, 1, 1, 4 * count))
    return s.graph(["x"], ["y"])


@pytest.mark.parametrize("count", [3, 30, 300])
def test_a_large_tensor_is_read_before_the_next_one_is_written(count: int) -> None:
    graph = waiting(count)
    found = better_order(graph, calls_of(graph))
    assert found is not None
    assert peak(graph, graph.nodes) >= 256 * count
    assert peak(graph, found[0].nodes) <= 256 + 16 * count
    again = better_order(graph, calls_of(graph))
    assert again is not None
    assert again[0].nodes == found[0].nodes
    assert better_order(*found) is None  # nothing is gained


def test_nodes_of_a_state_keep_their_order() -> None:
    s = Sketch()
    s.tensor("x", 1, 8, 8, 4)
    s.tensor("before", 1, 8, 8, 4)
    s.node(AveragePool2D((1, 1)), "before", s.tensor("old", 1, 8, 8, 4))
    s.node(AveragePool2D((1, 1)), "x", s.tensor("after", 1, 8, 8, 4))
    for name in ("old", "after"):
        s.node(AveragePool2D((8, 8), (8, 8)), name, s.tensor(f"{name}_mean", 1, 1, 1, 4))
    drawn = s.graph(["x", "before"], ["old_mean", "after_mean"])
    state = State("before", "after", np.zeros((1, 8, 8, 4), np.int8))
    graph = Graph(drawn.name, list(drawn.tensors.values()), drawn.nodes, ["x"], drawn.outputs, [state])
    other, calls = better_order(graph, calls_of(graph)) or (graph, calls_of(graph))
    order = [node.outputs[0] for node in other.nodes]
    assert order.index("old") < order.index("after")
    plan = plan_memory(other, calls)
    assert plan.locations["after"] == plan.locations["before"]


def branched(order: str) -> bytes:
    """Return a network of two branches, a large tensor each, whose nodes are in the ``order`` a, b (large), s, t."""
    network = Network()
    image = network.input((1, 8, 8, 4), 0.05, 3)
    done = {}
    for letter in order:
        if letter in "ab":
            slope = {"Alpha": 0.25 if letter == "a" else 0.5}
            done[letter] = network.unary("LEAKY_RELU", image, "LeakyReluOptions", slope, scale=0.05, zero_point=3)
        else:
            done[letter] = network.pool2d("AVERAGE", done["a" if letter == "s" else "b"], (8, 8))
    return network.build([network.add(done["s"], done["t"], scale=0.1)])


@pytest.mark.parametrize("memory", ["fastest", "smallest"])
def test_the_code_computes_the_same_in_less_memory(memory: str) -> None:
    value = np.arange(256, dtype=np.int64).astype(np.int8).reshape(1, 8, 8, 4)
    sizes = []
    for order in ("abst", "asbt"):
        library = compile_bytes(branched(order), "branches", memory=memory)
        (output,) = run_on_host(library, [value])
        assert_equal(output, tflite_micro_run(branched(order), [value])[0], order)
        sizes.append(library.modules[0].main[0].workspace_size)
    assert sizes[0] == sizes[1] < 512
