"""WHILE and IF become the operators of their subgraphs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tflite.TensorType import TensorType

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.frontends.tflite import parse_tflite
from support.host_c import run_on_host
from support.native import compile_bytes, generated
from support.oracle import assert_equal, litert_run, tflite_micro_run
from support.tflite_builder import Array, Network

STEPS = 4
ROWS = np.random.default_rng(2).normal(0, 1, (STEPS, 3)).astype(np.float32)


def condition(limit: int = STEPS) -> Network:
    net = Network()
    i, *_ = net.input((), dtype="int32"), net.input((1, 3)), net.input((STEPS, 3))
    answer = net.activation((), dtype="bool")
    net.outputs = [net.operator("LESS", [i, net.integers(limit)], answer, "LessOptions")]
    return net


def step(step_size: int = 1, operator: str = "TANH") -> Network:
    """Return the body of a recurrent layer: its hidden row is a function of the sum with a row of the sequence."""
    net = Network()
    i, hidden, rows = net.input((), dtype="int32"), net.input((1, 3)), net.input((STEPS, 3))
    row = net.move("GATHER", rows, (1, 3), net.move("RESHAPE", i, (1,)), kind="GatherOptions", Axis=0)
    weights = net.constant(np.arange(9, dtype=np.float32).reshape(3, 3) / 10)
    total = net.add(row, net.operator("FULLY_CONNECTED", [hidden, weights, -1], net.activation((1, 3)),
                                      "FullyConnectedOptions"))  # fmt: skip
    after = net.operator(operator, [total], net.activation((1, 3), name="hidden"))
    following = net.activation((), dtype="int32")
    net.operator("ADD", [i, net.integers(step_size)], following, "AddOptions")
    net.outputs = [following, after, rows]
    return net


def loop(*subgraphs: Network, start: int | None = 0, body: int = 2) -> Network:
    net = Network()
    rows = net.input((STEPS, 3))
    first = net.input((), dtype="int32") if start is None else net.integers(start)
    hidden = net.constant(np.zeros((1, 3), np.float32))
    outputs = [net.activation((), dtype="int32"), net.activation((1, 3), name="last"), net.activation((STEPS, 3))]
    net.many("WHILE", [first, hidden, rows], outputs, "WhileOptions", CondSubgraphIndex=1, BodySubgraphIndex=body)
    net.outputs = outputs
    net.others = list(subgraphs)
    return net


def assert_runs(net: Network, *inputs: Array) -> None:
    model = net.build()
    assert parse_tflite(model, "net", "net").notes == ()
    got = run_on_host(compile_bytes(model), inputs)
    for run in (tflite_micro_run, litert_run):
        for value, right in zip(got, run(model, inputs), strict=True):
            assert_equal(value, right, run.__name__)


@pytest.mark.parametrize(("start", "limit"), [(0, STEPS), (2, 3), (STEPS, STEPS)])
def test_a_loop_with_a_known_number_of_runs_is_unrolled(start: int, limit: int) -> None:
    assert_runs(loop(condition(limit), step(), start=start), ROWS)


def test_the_weights_of_a_loop_are_stored_once() -> None:
    graph = parse_tflite(loop(condition(), step()).build(), "net", "net")
    assert len([node for node in graph.nodes if node.operator.name == "FULLY_CONNECTED"]) == STEPS
    text = generated(compile_bytes(loop(condition(), step()).build()))
    assert text.count("0.0f, 0.1f, 0.2f, 0.3f") == 1


def test_hybrid_layers_in_a_loop() -> None:
    body = step()
    weights = body.tensors[next(each for each in body.operators if len(each.inputs) == 3).inputs[1]]
    weights.type, weights.scales, weights.zero_points = TensorType.INT8, [0.1], [0]
    weights.content = np.arange(9, dtype=np.int8).tobytes()
    model = loop(condition(), body).build()
    got = run_on_host(compile_bytes(model), [ROWS])
    for value, right in zip(got, litert_run(model, [ROWS]), strict=True):
        assert_equal(value, right, "net")


def branch(condition: bool | None, operator: str = "MUL") -> Network:
    """Return an IF that adds or multiplies."""
    net = Network()
    x = net.input((1, 3))
    chosen = net.input((), dtype="bool") if condition is None else net.constant(np.array(condition))
    y = net.constant(np.array([[3, 4, 5]], np.float32))
    for kind in ("ADD", operator):
        other = Network()
        inputs = [other.input((1, 3)), other.input((1, 3))]
        other.outputs = [other.binary(kind, *inputs)]
        net.others.append(other)
    net.operator("IF", [chosen, x, y], net.activation((1, 3)), "IfOptions", ThenSubgraphIndex=1, ElseSubgraphIndex=2)
    return net


@pytest.mark.parametrize("condition", [True, False])
def test_a_known_branch_is_taken(condition: bool) -> None:
    net = branch(condition)
    model, x = net.build(), ROWS[:1]
    graph = parse_tflite(model, "net", "net")
    assert next(node.operator.name for node in graph.nodes) == ("ADD" if condition else "MUL")
    (got,) = run_on_host(compile_bytes(model), [x])
    assert_equal(got, litert_run(model, [x])[0], "net")


@pytest.mark.parametrize("condition", [True, False])
def test_a_computed_condition_selects(condition: bool) -> None:
    assert_runs(branch(None), ROWS[:1], np.array(condition))


@pytest.mark.parametrize(
    ("net", "code", "words"),
    [
        (lambda: loop(condition(), step(), start=None), "input-not-constant", "number of runs"),
        pytest.param(
            lambda: loop(condition(), step(step_size=0)),
            "operator-variant-unsupported",
            "16384 operators or tensors",
            marks=pytest.mark.sweep,
        ),
        (lambda: loop(condition(), step(), body=3), "operator-invalid", "subgraph 3 of 3"),
        (lambda: loop(condition(), step(), body=0), "operator-invalid", "subgraph 0"),
        (lambda: loop(condition(), step(operator="RFFT2D")), "operator-unsupported", "RFFT2D"),
        (lambda: branch(None, "RFFT2D"), "operator-unsupported", "RFFT2D"),
    ],
    ids=["unknown", "endless", "missing", "its own", "operator in the body", "operator in a branch"],
)
def test_control_flow_that_is_refused(net: Callable[[], Network], code: str, words: str) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(net().build(), "net", "net")
    assert (caught.value.code, caught.value.problems) == (code, ())
    assert words in caught.value.reason
