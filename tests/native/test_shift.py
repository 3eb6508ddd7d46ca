"""Ring buffers are advanced in place: the remaining rows are copied once, and none to the arena."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.native.graph import DType, Graph, Node, Operator, State, Tensor, ops
from mlfbuild.native.graph.nodes import evaluate_in_turn
from mlfbuild.native.graph.ops.movement.shift import Shift
from mlfbuild.native.graph.ops.movement.views import Steps
from mlfbuild.native.passes.shift_states import shift_states
from support.board_cases import wrong_networks
from support.host_c import run_cases_on_host, run_many_on_host
from support.native import compile_network, generated

SHAPES = {
    "samples": ((7,), 0, 1), "frames": ((1, 6, 1, 5), 1, 1), "three frames": ((1, 7, 3), 1, 3),
    "all but one": ((1, 4, 4), 1, 3), "two channels of samples": ((2, 9), 1, 2), "columns": ((2, 3, 5, 2), 2, 1),
}  # fmt: skip
"""Shape, axis and how many rows are new."""


def ring_buffer(
    shape: tuple[int, ...], axis: int, new: int, *, slice_first: bool, dtype: DType = DType.FLOAT32
) -> Graph:
    """Return a ring buffer, written in either of two ways, and its double."""
    count = shape[axis]
    stay = count - new

    def sized(name: str, size: int) -> Tensor:
        return Tensor(name, tuple(size if at == axis else all_ for at, all_ in enumerate(shape)), dtype)

    steps = [Steps(0, 1, size) for size in shape]
    if slice_first:
        steps[axis] = Steps(new, 1, stay)
        between = sized("between", stay)
        nodes = [
            Node("drop", ops.StridedSlice(tuple(steps)), ("kept",), ("between",)),
            Node("join", ops.Concatenation(axis), ("between", "x"), ("buffer",)),
        ]
    else:
        steps[axis] = Steps(new, 1, count)
        between = sized("between", count + new)
        nodes = [
            Node("join", ops.Concatenation(axis), ("kept", "x"), ("between",)),
            Node("drop", ops.StridedSlice(tuple(steps)), ("between",), ("buffer",)),
        ]
    nodes.append(Node("double", ops.Concatenation(axis), ("buffer", "buffer"), ("y",)))
    tensors = [sized("kept", count), sized("x", new), between, sized("buffer", count), sized("y", 2 * count)]
    initial = np.arange(np.prod(shape)).reshape(shape).astype(dtype.numpy)
    return Graph("net", tensors, nodes, ["x"], ["y"], [State("kept", "buffer", initial)])


def named(name: str, graph: Graph) -> Graph:
    return Graph(name, graph.tensors.values(), graph.nodes, graph.inputs, graph.outputs, graph.states)


def operators(graph: Graph) -> list[type[Operator]]:
    return [type(node.operator) for node in graph.nodes]


@pytest.mark.parametrize("slice_first", [True, False])
@pytest.mark.parametrize("name", SHAPES)
def test_both_forms_become_one_operator(name: str, slice_first: bool) -> None:
    before = ring_buffer(*SHAPES[name], slice_first=slice_first)
    after = shift_states(before)
    assert operators(after) == [Shift, ops.Concatenation]
    assert "between" not in after.tensors
    runs = [{"x": np.full(before.tensor("x").shape, 100 + step, np.float32)} for step in range(4)]
    for expected, got in zip(evaluate_in_turn(before, runs), evaluate_in_turn(after, runs), strict=True):
        np.testing.assert_array_equal(got["y"], expected["y"])


@pytest.mark.parametrize("dtype", [DType.INT8, DType.INT16, DType.FLOAT32, DType.INT64])
def test_c_code_moves_in_place(dtype: DType) -> None:
    jobs, expected = [], []
    for at, shape in enumerate(SHAPES.values()):
        graph = named(f"net{at}", ring_buffer(*shape, slice_first=True, dtype=dtype))
        library = compile_network(graph)
        runs = [np.full(graph.tensor("x").shape, 100 + step, dtype.numpy) for step in range(4)]
        jobs += [(library, library.modules[0], [value]) for value in runs]
        expected += [values["y"] for values in evaluate_in_turn(graph, [{"x": value} for value in runs])]
        text = generated(library).split(f"mlf_net{at}_run", 1)[1]
        assert "(const uint8_t *)&state[0], (const uint8_t *)inputs->x, (uint8_t *)&state[0]);" in text
        assert "arena" not in text
    for (output,), right in zip(run_many_on_host(jobs), expected, strict=True):
        np.testing.assert_array_equal(output, right)


def test_buffer_that_is_read_before_and_after_is_not_moved_in_place() -> None:
    """The state stays in the arena until the end of the run, because the sum needs both values."""
    graph = ring_buffer((1, 6), 1, 1, slice_first=True)
    both = Node("both", ops.Concatenation(1), ("kept", "buffer"), ("y",))
    graph = Graph("net", graph.tensors.values(), [*graph.nodes[:2], both], ["x"], ["y"], graph.states)
    runs = [np.full((1, 1), 100 + step, np.float32) for step in range(4)]
    got = run_cases_on_host(compile_network(graph), [[value] for value in runs])
    expected = evaluate_in_turn(graph, [{"x": value} for value in runs])
    for (output,), values in zip(got, expected, strict=True):
        np.testing.assert_array_equal(output, values["y"])


def stateless(graph: Graph) -> Graph:
    return Graph("net", graph.tensors.values(), graph.nodes, ["x", "kept"], ["y"])


def returned(graph: Graph) -> Graph:
    return Graph("net", graph.tensors.values(), graph.nodes, ["x"], ["y", "between"], graph.states)


def read_twice(graph: Graph) -> Graph:
    tensors = [*graph.tensors.values(), replace(graph.tensor("between"), name="z")]
    nodes = [*graph.nodes, Node("again", ops.Relu(), ("between",), ("z",))]
    return Graph("net", tensors, nodes, ["x"], ["y", "z"], graph.states)


def other_steps(graph: Graph) -> Graph:
    """Return a graph that drops the latest rows, so that the newest would be lost or the oldest kept."""
    at = next(at for at, node in enumerate(graph.nodes) if node.name == "drop")
    node = graph.nodes[at]
    assert isinstance(node.operator, ops.Slice)
    steps = (node.operator.steps[0], replace(node.operator.steps[1], start=0))
    nodes = list(graph.nodes)
    nodes[at] = replace(node, operator=replace(node.operator, steps=steps))
    return Graph("net", graph.tensors.values(), nodes, ["x"], ["y"], graph.states)


@pytest.mark.parametrize("slice_first", [True, False])
@pytest.mark.parametrize("edit", [stateless, returned, read_twice, other_steps])
def test_other_operators_are_not_joined(edit: Callable[[Graph], Graph], slice_first: bool) -> None:
    graph = edit(ring_buffer((1, 6), 1, 2, slice_first=slice_first))
    assert operators(shift_states(graph)) == operators(graph)


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_on_the_board(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    jobs = []
    for at, (name, dtype) in enumerate(
        [("samples", DType.INT8), ("columns", DType.INT16), ("all but one", DType.INT8)]
    ):
        graph = named(f"net{at}", ring_buffer(*SHAPES[name], slice_first=at % 2 == 0, dtype=dtype))
        runs = [np.full(graph.tensor("x").shape, 100 + step, dtype.numpy) for step in range(4)]
        library = compile_network(graph)
        expected = evaluate_in_turn(graph, [{"x": value} for value in runs])
        jobs += [(library, [value], [values["y"]]) for value, values in zip(runs, expected, strict=True)]
    assert wrong_networks(jobs, cpu, tmp_path, tool) == []
