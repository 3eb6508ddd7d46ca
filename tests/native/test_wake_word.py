"""A streaming network with ring buffers and convolutions on them: ten frames in order, and again after a reset."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate_in_turn
from support.board_cases import wrong_networks
from support.host_c import run_cases_on_host
from support.native import compile_bytes, generated
from support.oracle import assert_equal, tflite_micro_cases
from support.wake_word import CHANNELS, FEATURES, FRAMES, HIDDEN, frames, wake_word

TYPES = ("int8", "float32")
RUNS = 10


@pytest.mark.parametrize("dtype", TYPES)
def test_reference_equals_tflite_micro(dtype: str) -> None:
    model, runs = wake_word(dtype), frames(dtype, RUNS)
    graph = parse_tflite(model, "wake", "wake.tflite")
    expected = tflite_micro_cases(model, runs)
    assert len({score.tobytes() for (score,) in expected}) == RUNS, "every frame should be heard"
    for values, (score,) in zip(
        evaluate_in_turn(graph, [{"frame": frame} for (frame,) in runs]), expected, strict=True
    ):
        assert_equal(values[graph.outputs[0]], score, "scores")


@pytest.mark.parametrize("dtype", TYPES)
def test_c_equals_the_reference_and_can_be_reset(dtype: str) -> None:
    model, runs = wake_word(dtype), frames(dtype, RUNS)
    library = compile_bytes(model)
    # TensorFlow Lite Micro also resets values of CALL_ONCE to zeros, so a new interpreter is used as reference.
    expected = [*tflite_micro_cases(model, runs), *tflite_micro_cases(model, runs[5:])]
    got = run_cases_on_host(library, [*runs, *runs[5:]], anew=[RUNS])
    for (score,), (right,) in zip(got, expected, strict=True):
        assert_equal(score, right, generated(library))
    assert not np.array_equal(expected[RUNS][0], expected[5][0]), "what was heard before should count"


def test_state_has_only_the_ring_buffers() -> None:
    library = compile_bytes(wake_word("int8"))
    frames_size, hidden_size = FRAMES * FEATURES, HIDDEN * CHANNELS
    assert library.modules[0].state_size == frames_size + -(-hidden_size // 8) * 8
    assert "memcpy(&state" not in generated(library).split("mlf_net_run", 1)[1], "a state is written where it is made"


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_board_equals_the_reference(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    jobs = []
    for dtype in TYPES:
        model, runs = wake_word(dtype), frames(dtype, RUNS)
        library = compile_bytes(model, f"wake_{dtype}", cpu)
        jobs += [(library, run, wanted) for run, wanted in zip(runs, tflite_micro_cases(model, runs), strict=True)]
    assert wrong_networks(jobs, cpu, tmp_path, tool) == []
