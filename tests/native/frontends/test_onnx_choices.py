"""The user's choices for reading a model: sizes of free dimensions, and tensors that become its state."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mlfbuild.core.errors import UnsupportedModelError, UsageError
from mlfbuild.native.frontends import Choices, NetworkFiles, parse_files
from mlfbuild.native.graph import Graph
from mlfbuild.native.graph.nodes import evaluate
from support.errors import raises
from support.host_c import run_cases_on_host
from support.native import compile_network
from support.onnx_models import QuantizedNetwork, Scale, model
from support.tflite_builder import Network

FLOATS = np.random.default_rng(3)


def parsed(data: bytes, name: str = "net.onnx", **choices: dict[str, int] | dict[str, str]) -> Graph:
    return parse_files(NetworkFiles(Path(name), data), "net", choices=Choices(**choices))  # type: ignore[arg-type]


def ports(*shapes: tuple[int | str | None, ...]) -> bytes:
    """Return a network of one Tanh for each input."""
    nodes = [helper.make_node("Tanh", [f"x{index}"], [f"y{index}"]) for index, _ in enumerate(shapes)]
    inputs = [(f"x{index}", shape) for index, shape in enumerate(shapes)]
    return model(nodes, inputs, [(f"y{index}", [None] * len(shape)) for index, shape in enumerate(shapes)])


def shapes(graph: Graph) -> list[tuple[int, ...]]:
    return [graph.tensor(name).shape for name in graph.inputs]


def test_dimensions_are_chosen_by_name_or_index() -> None:
    data = ports(("batch", "time"), ("time", 4, None))
    graph = parsed(data, dims={"time": 16, "x1.2": 5, "batch": 2})
    assert shapes(graph) == [(2, 16), (16, 4, 5)]
    assert graph.notes == ()


def test_an_index_takes_precedence_over_a_name() -> None:
    assert shapes(parsed(ports(("n", "n")), dims={"n": 3, "x0.1": 5})) == [(3, 5)]


def test_free_batch_becomes_one_and_is_reported() -> None:
    """The dimension of the same name in another place is also the batch, as in the state of recurrent networks."""
    graph = parsed(ports(("batch", 3), (2, "batch", 4), (None, 7)))
    assert shapes(graph) == [(1, 3), (2, 1, 4), (1, 7)]
    assert [("'x0'" in note, "'batch'" in note) for note in graph.notes] == [(True, True), (False, False)]
    assert "'x2.0'" in graph.notes[1]


def test_other_free_dimensions_must_be_chosen() -> None:
    with raises(UnsupportedModelError, "shape-dynamic") as raised:
        parsed(ports(("batch", "time")))
    assert "dim.time=" in raised.value.hint


@pytest.mark.parametrize(
    ("dims", "near"), [({"tine": 3}, "time"), ({"rows": 3}, "x0.0"), ({"x0.2": 3}, "x0.1"), ({"x1": 1}, "")]
)
def test_unknown_dimensions_are_refused(dims: dict[str, int], near: str) -> None:
    with raises(UsageError, "dimension-unknown") as raised:
        parsed(ports(("batch", "time", 3)), dims=dims)
    assert raised.value.place == f"net: dims.{next(iter(dims))}"
    assert near in raised.value.reason


def test_choices_are_options_of_the_compiler() -> None:
    found = Choices.of({"dim.time": 16, "state.h_in": "h_out", "state.5": 6, "memory": "smallest", "constant.sr": 8})
    assert found == Choices({"time": 16}, {"h_in": "h_out", "5": "6"}, constants={"sr": 8})


# Constant inputs -----------------------------------------------------------------------------------------------------


def branches() -> bytes:
    """Return a network that multiplies ``x`` by 2 if ``rate`` is 16000, else by 3 and, with ``loud``, adds 1."""

    def branch(name: str, factor: float) -> onnx.GraphProto:
        weights = numpy_helper.from_array(np.full((1, 4), factor, np.float32), f"{name} factor")
        node = helper.make_node("Mul", ["x", f"{name} factor"], [f"{name} y"])
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(f"{name} y", 1, [1, 4])], [weights])

    nodes = [
        helper.make_node("Equal", ["rate", "wide"], ["is wide"]),
        helper.make_node("If", ["is wide"], ["scaled"], then_branch=branch("then", 2), else_branch=branch("else", 3)),
        helper.make_node("Where", ["loud", "one", "zero"], ["more"]),
        helper.make_node("Add", ["scaled", "more"], ["y"]),
    ]
    inputs = [("x", (1, 4)), ("rate", ()), ("loud", (1,))]
    constants = {"wide": np.array(16000), "one": np.array([1], np.float32), "zero": np.array([0], np.float32)}
    types = {"rate": TensorProto.INT64, "loud": TensorProto.BOOL}
    return model(nodes, inputs, [("y", (1, 4))], constants, types=types)


@pytest.mark.parametrize(("rate", "loud", "factor", "more"), [(16000, True, 2, 1), (8000, False, 3, 0)])
def test_a_constant_input_selects_its_branch(rate: int, loud: bool, factor: int, more: int) -> None:
    graph = parsed(branches(), constants={"rate": rate, "loud": loud})
    assert (graph.inputs, [node.operator.name for node in graph.nodes]) == (("x",), ["MUL", "ADD"])
    x = np.array([[1, 2, 3, 4]], np.float32)
    np.testing.assert_array_equal(evaluate(graph, {"x": x})["y"], x * factor + more)


@pytest.mark.parametrize(
    ("constants", "code"),
    [
        ({"rat": 1}, "constant-without-input"),
        ({"rate": 0.5}, "constant-of-another-type"),
        ({"rate": True}, "constant-of-another-type"),
        ({"rate": 10**30}, "constant-of-another-type"),
        ({"loud": 1}, "constant-of-another-type"),
        ({"x": 1e300}, "constant-of-another-type"),
    ],
)
def test_constants_that_do_not_fit_are_refused(constants: dict[str, int], code: str) -> None:
    with raises(UsageError, code, at=f"net: constants.{next(iter(constants))}"):
        parsed(branches(), constants=constants)


def test_inputs_of_tflite_cannot_be_constant() -> None:
    with raises(UsageError, "constants-of-tflite"):
        parsed(b"", "net.tflite", constants={"x": 1})


# State ---------------------------------------------------------------------------------------------------------------


def recurrent() -> bytes:
    """Return h' = tanh(x + h), y = 2 h'."""
    nodes = [
        helper.make_node("Add", ["x", "h_in"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["h_out"]),
        helper.make_node("Mul", ["h_out", "two"], ["y"]),
    ]
    row = ("batch", 5)
    constants = {"two": np.array(2, np.float32)}
    return model(nodes, [("x", row), ("h_in", row)], [("h_out", row), ("y", row)], constants)


def test_state_is_kept_between_runs_and_reset() -> None:
    graph = parsed(recurrent(), state={"h_in": "h_out"})
    assert (graph.inputs, graph.outputs) == (("x",), ("y",))
    cases = FLOATS.standard_normal((4, 1, 5)).astype(np.float32)
    made = run_cases_on_host(compile_network(graph), [[case] for case in cases], anew=[3])
    state = np.zeros((1, 5), np.float32)
    for index, case in enumerate(cases):
        state = np.tanh(case + (0 if index == 3 else state))
        np.testing.assert_allclose(made[index][0], 2 * state, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_quantised_state_begins_with_the_number_zero(dtype: str) -> None:
    network, scale = QuantizedNetwork(), Scale(0.25, 7, dtype)
    x, h = network.input("x", (1, 4), scale), network.input("h", (1, 4), scale)
    network.quantized(network.add("Add", [x, h], "sum"), scale)
    network.output("sum_q", 2, dtype)
    network.quantized(network.add("Relu", ["sum"], "y"), scale)
    network.output("y_q", 2, dtype)
    graph = parsed(network.bytes(), state={"h": "sum_q"})
    (state,) = graph.states
    np.testing.assert_array_equal(state.initial, np.full((1, 4), 7, dtype))
    cases = [np.full((1, 4), 9, dtype), np.full((1, 4), 8, dtype), np.full((1, 4), 1, dtype)]
    made = run_cases_on_host(compile_network(graph), [[case] for case in cases])
    assert [int(outputs[0][0, 0]) for outputs in made] == [9, 10, 7]


def test_state_of_a_tflite_model() -> None:
    net = Network()
    x, h = (net.input((1, 3)) for _ in range(2))
    total = net.add(x, h)
    data = net.build([total, net.add(total, total)])
    whole = parsed(data, "net.tflite")
    graph = parsed(data, "net.tflite", state={whole.inputs[1]: whole.outputs[0]})
    made = run_cases_on_host(compile_network(graph), [[np.ones((1, 3), np.float32)]] * 3)
    assert [float(outputs[0][0, 0]) for outputs in made] == [2, 4, 6]


MISTAKES: dict[str, tuple[dict[str, str], str, str]] = {
    "no such input": ({"h": "h_out"}, "state-unknown", "h_in"),
    "no such output": ({"h_in": "h"}, "state-unknown", "h_out"),
    "an inner tensor": ({"h_in": "sum"}, "state-unknown", "outputs are"),
    "twice": ({"h_in": "h_out", "x": "h_out"}, "state-twice", "h_out"),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_tensors_that_cannot_be_a_state_are_refused(kind: str) -> None:
    state, code, fact = MISTAKES[kind]
    with raises(UsageError, code, at=f"net: state.{next(iter(state))}") as raised:
        parsed(recurrent(), state=state)
    assert fact in raised.value.reason


def test_state_of_another_shape_is_refused() -> None:
    made = onnx.load_from_string(recurrent())
    made.graph.node.append(helper.make_node("ReduceMax", ["y"], ["top"]))
    made.graph.output.append(helper.make_tensor_value_info("top", TensorProto.FLOAT, [None, None]))
    with raises(UsageError, "state-mismatch") as raised:
        parsed(made.SerializeToString(), state={"h_in": "top"})
    assert "[1, 5]" in raised.value.reason
    assert "[1, 1]" in raised.value.reason


def test_dims_of_a_tflite_model_are_refused() -> None:
    with raises(UsageError, "dims-of-tflite"):
        parsed(b"", "net.tflite", dims={"batch": 2})
