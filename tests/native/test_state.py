"""Networks with state: C code and graph agree over several runs, and after a reset."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.core.files import sha256
from mlfbuild.library import Library
from mlfbuild.library.keys import Placement
from mlfbuild.native.build import compile_graph
from mlfbuild.native.graph import DType, Graph, Node, State, Tensor, ops
from mlfbuild.native.graph.nodes import evaluate_in_turn
from mlfbuild.native.graph.ops.movement.views import Steps
from support.errors import raises
from support.host_c import build, run, run_cases_on_host, write_tree
from support.native import compile_network, generated, request

Array = npt.NDArray[np.float32]

ZEROS = np.zeros((1, 4), np.float32)
RAMP = np.arange(4, dtype=np.float32).reshape(1, 4)


def network(
    nodes: Sequence[Node], states: Sequence[tuple[str, str, Array]], outputs: Sequence[str] = ("y",), **shapes: int
) -> Graph:
    """Return a graph of float32 tensors of shape (1, 4), or (1, n) as in ``shapes``; ``x`` is the input."""
    names = {name for node in nodes for name in (*node.inputs, *node.outputs) if name is not None}
    names.update(("x", *outputs), *((before, after) for before, after, _ in states))
    tensors = [Tensor(name, (1, shapes.get(name, 4)), DType.FLOAT32) for name in sorted(names)]
    return Graph("net", tensors, nodes, ["x"], outputs, [State(*state) for state in states])


def add(x: str, y: str, output: str) -> Node:
    return Node(f"add {output}", ops.Add(), (x, y), (output,))


def ring_buffer(initial: Array = ZEROS) -> Graph:
    """Return the last four values of a stream, and their sums with the previous ones."""
    newest = Node("drop", ops.Slice((Steps(0, 1, 1), Steps(1, 1, 3))), ("kept",), ("recent",))
    joined = Node("join", ops.Concatenation(1), ("recent", "x"), ("window",))
    nodes = [newest, joined, add("window", "kept", "y")]
    return network(nodes, [("kept", "window", initial)], ["y", "window"], x=1, recent=3)


NETWORKS = {
    "counter": network([add("x", "kept", "y")], [("kept", "y", ZEROS)]),
    "counter from a ramp": network([add("x", "kept", "y")], [("kept", "y", RAMP)]),
    "nothing returned but the sum": network([add("x", "kept", "t"), add("t", "t", "y")], [("kept", "t", RAMP)]),
    "read after it is written": network([add("x", "x", "t"), add("t", "kept", "y")], [("kept", "t", RAMP)]),
    "the input is kept": network([add("x", "kept", "y")], [("kept", "x", RAMP)]),
    "a line of delays": network(
        [add("third", "x", "y")], [("third", "second", RAMP), ("second", "first", ZEROS), ("first", "x", RAMP + 1)]
    ),
    "what was kept is returned": network([add("x", "kept", "t")], [("kept", "t", RAMP)], ["kept"]),
    "never read": network([add("x", "x", "y")], [("kept", "y", RAMP)]),
    "ring buffer": ring_buffer(),
    "ring buffer from a ramp": ring_buffer(RAMP),
}


def stream(graph: Graph, length: int = 5) -> list[Array]:
    shape = graph.tensor("x").shape
    random = np.random.default_rng(1)
    return [random.integers(-9, 10, shape).astype(np.float32) for _ in range(length)]


@pytest.mark.parametrize("io", ["caller", "arena"])
@pytest.mark.parametrize("name", NETWORKS)
def test_c_equals_the_graph_over_several_runs(name: str, io: str) -> None:
    graph = NETWORKS[name]
    runs = stream(graph)
    got = run_cases_on_host(compile_network(graph, options={"io": io}), [[value] for value in runs])
    expected = evaluate_in_turn(graph, [{"x": value} for value in runs])
    for outputs, values in zip(got, expected, strict=True):
        for output, tensor in zip(outputs, graph.outputs, strict=True):
            np.testing.assert_array_equal(output, values[tensor])


def test_state_that_is_updated_in_place_needs_no_copy() -> None:
    text = generated(compile_network(NETWORKS["nothing returned but the sum"]))
    assert "memcpy(&state" not in text.split("mlf_net_run", 1)[1]
    assert compile_network(NETWORKS["nothing returned but the sum"]).modules[0].state_size == 16


_BEGIN_ANEW = r"""
#include <stdio.h>
#include "tvmgen_net.h"

static float x[4] = {1, 2, 3, 4}, y[4];
static struct tvmgen_net_inputs inputs = {x};
static struct tvmgen_net_outputs outputs = {y};
static struct { uint8_t bytes[MLF_NET_STATE_SIZE + MLF_NET_STATE_ALIGNMENT]; } __attribute__((aligned(16))) one, two;

static void say(const char *who) { printf("%s %g %g\n", who, (double)y[0], (double)y[3]); }

int main(void) {
  tvmgen_net_run(&inputs, &outputs), say("own");
  tvmgen_net_run(&inputs, &outputs), say("own");
  printf("reset %d\n", (int)tvmgen_net_reset());
  tvmgen_net_run(&inputs, &outputs), say("own");
  mlf_net_reset(one.bytes), mlf_net_reset(two.bytes);
  mlf_net_run(&inputs, &outputs, 0, one.bytes);
  mlf_net_run(&inputs, &outputs, 0, one.bytes), say("one");
  mlf_net_run(&inputs, &outputs, 0, two.bytes), say("two");
  tvmgen_net_run(&inputs, &outputs), say("own");
  printf("%d %d ", (int)mlf_net_reset(0), (int)mlf_net_reset(one.bytes + 1));
  printf("%d %d\n", (int)mlf_net_run(&inputs, &outputs, 0, 0), (int)mlf_net_run(&inputs, &outputs, 0, one.bytes + 4));
  return 0;
}
"""


@pytest.mark.parametrize(("name", "first"), [("counter", 0), ("counter from a ramp", 3)])
def test_streams_are_separate_and_can_be_reset(tmp_path: Path, name: str, first: int) -> None:
    program = build(write_tree(compile_network(NETWORKS[name]), tmp_path), _BEGIN_ANEW, ["-O1"])
    last = [first + 4, first + 8]
    assert run([program]).splitlines() == [
        f"own 1 {last[0]}", f"own 2 {last[1]}", "reset 0", f"own 1 {last[0]}", f"one 2 {last[1]}", f"two 1 {last[0]}",
        f"own 2 {last[1]}", "-1 -3 -1 -3",
    ]  # fmt: skip


def test_swapped_states_are_rejected() -> None:
    graph = network([add("x", "a", "y")], [("a", "b", RAMP), ("b", "a", ZEROS)])
    with raises(UnsupportedModelError, "states-swapped", at="net"):
        compile_network(graph)


def shared_workspace(graph: Graph) -> Library:
    return compile_graph(graph, request(graph.name, Placement(shares_workspace=1)), sha256(b"net"))


def test_state_is_not_in_a_shared_workspace() -> None:
    library = shared_workspace(NETWORKS["nothing returned but the sum"])
    runs = stream(NETWORKS["nothing returned but the sum"])
    got = run_cases_on_host(library, [[value] for value in runs])
    expected = evaluate_in_turn(NETWORKS["nothing returned but the sum"], [{"x": value} for value in runs])
    for (output,), values in zip(got, expected, strict=True):
        np.testing.assert_array_equal(output, values["y"])


def test_source(golden: Callable[[str, str], None]) -> None:
    source = generated(compile_network(ring_buffer(RAMP)))
    golden(source, "net_lib0.c")
    golden(generated(compile_network(ring_buffer(RAMP)), "tvmgen_net.h"), "tvmgen_net.h")
