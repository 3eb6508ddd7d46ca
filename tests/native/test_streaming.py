"""The C of networks with state, run repeatedly with sanitizers, equals TensorFlow Lite Micro."""

from collections.abc import Callable
from pathlib import Path

import pytest

from support.board_cases import wrong_networks
from support.host_c import run_many_on_host
from support.native import compile_bytes, generated
from support.oracle import assert_equal, tflite_micro_cases
from support.streaming_networks import STREAMING, StreamingCase, drawn_streams

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
