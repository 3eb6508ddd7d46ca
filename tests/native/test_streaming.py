"""The C of networks with state, run repeatedly with sanitizers, equals TensorFlow Lite Micro."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate_in_turn
from support.board_cases import wrong_networks
from support.host_c import run_cases_on_host, run_many_on_host
from support.native import compile_bytes, generated
from support.oracle import assert_equal, tflite_micro_cases
from support.streaming_networks import STREAMING, StreamingCase, drawn_streams
from support.wake_word import CHANNELS, FEATURES, FRAMES, HIDDEN, frames, wake_word

STREAMS = 4
SWEEP_STREAMS = 100


def check(streams: list[StreamingCase], optimise: str = "-O0") -> None:
    libraries = [compile_bytes(stream.model, f"net{at}") for at, stream in enumerate(streams)]
    jobs = [
        (library, library.modules[0], inputs)
        for library, stream in zip(libraries, streams, strict=True)
        for inputs in stream.runs
    ]
    expected = [outputs for stream in streams for outputs in tflite_micro_cases(stream.model, stream.runs)]
    for (library, _, _), got, wanted in zip(jobs, run_many_on_host(jobs, optimise=optimise), expected, strict=True):
        for value, right in zip(got, wanted, strict=True):
            assert_equal(value, right, generated(library), operands=1)


def test_runs_equal_tensorflow_lite_micro() -> None:
    """One program has the networks of all kinds, which share headers."""
    check([stream for kind in STREAMING for stream in drawn_streams(kind, STREAMS)])


@pytest.mark.sweep
@pytest.mark.parametrize("kind", STREAMING)
def test_runs_equal_tensorflow_lite_micro_for_many_cases(kind: str) -> None:
    check(drawn_streams(kind, SWEEP_STREAMS), "-O1")


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_runs_on_the_board(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    jobs = []
    for at, kind in enumerate(STREAMING):
        stream = drawn_streams(kind, 3)[-1]
        library = compile_bytes(stream.model, f"net{at}", cpu)
        outputs = tflite_micro_cases(stream.model, stream.runs)
        jobs += [(library, run, wanted) for run, wanted in zip(stream.runs, outputs, strict=True)]
    assert wrong_networks(jobs, cpu, tmp_path, tool) == []


# A streaming network with ring buffers and convolutions on them: ten frames in order, and again after a reset.

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
