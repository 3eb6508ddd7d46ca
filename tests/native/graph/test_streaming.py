"""Several runs of networks with a state, in numpy against TensorFlow Lite Micro."""

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate_in_turn
from support.examples import examples
from support.oracle import assert_equal, tflite_micro_cases
from support.streaming_networks import STREAMING, streaming_cases


@pytest.mark.parametrize("kind", STREAMING)
@settings(max_examples=examples(60), deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_reference_equals_tflite_micro(kind: str, data: st.DataObject) -> None:
    case = data.draw(streaming_cases(kind))
    graph = parse_tflite(case.model, "network", "network.tflite")
    assert graph.states
    runs = [dict(zip(graph.inputs, inputs, strict=True)) for inputs in case.runs]
    expected = tflite_micro_cases(case.model, case.runs)
    for at, (values, right) in enumerate(zip(evaluate_in_turn(graph, runs), expected, strict=True)):
        for name, value in zip(graph.outputs, right, strict=True):
            assert_equal(values[name], value, f"run {at}", operands=1)
