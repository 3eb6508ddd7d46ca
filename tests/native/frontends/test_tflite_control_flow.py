"""WHILE and IF become the operators of their subgraphs."""

from collections.abc import Callable

import numpy as np
import pytest
from tflite.TensorType import TensorType

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.native.frontends.tflite import parse_tflite
from support.host_c import run_on_host
from support.native import compile_bytes, generated
from support.oracle import assert_equal, litert_run, tflite_micro_run
from support.subgraph_networks import ROWS, STEPS, branch, condition, loop, step
from support.tflite_builder import Array, Network


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


def difference() -> Network:
    """Return the condition of a loop that is an integer."""
    net = Network()
    i, *_ = net.input((), dtype="int32"), net.input((1, 3)), net.input((STEPS, 3))
    answer = net.activation((), dtype="int32")
    net.outputs = [net.operator("SUB", [net.integers(STEPS), i], answer, "SubOptions")]
    return net


@pytest.mark.parametrize(
    ("net", "code", "words"),
    [
        (lambda: loop(condition(), step(), start=None), "input-not-constant", "number of runs"),
        pytest.param(lambda: loop(condition(), step(step_size=0)), "expansion-too-large", "16384 nodes",
         marks=pytest.mark.sweep),
        (lambda: loop(difference(), step()), "operator-invalid", "one bool"),
        (lambda: loop(condition(), step(), body=3), "operator-invalid", "subgraph 3 of 3"),
        (lambda: loop(condition(), step(), body=0), "operator-invalid", "subgraph 0"),
        (lambda: loop(condition(), step(operator="MULTINOMIAL")), "operator-unsupported", "MULTINOMIAL"),
        (lambda: branch(None, "MULTINOMIAL"), "operator-unsupported", "MULTINOMIAL"),
    ],
    ids=["unknown", "endless", "not a bool", "missing", "its own", "operator in the body", "operator in a branch"],
)  # fmt: skip
def test_control_flow_that_is_refused(net: Callable[[], Network], code: str, words: str) -> None:
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(net().build(), "net", "net")
    assert (caught.value.code, caught.value.problems) == (code, ())
    assert words in caught.value.reason
