"""Exported networks, run in numpy, as C on this machine, and as C on an emulated Cortex-M4."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph import Graph
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.native.graph.ops import Transpose
from support.board_cases import Job, wrong_networks
from support.host_c import run_many_on_host
from support.native import compile_network
from support.onnx_models import reference
from support.onnx_networks import EXPORTED, quantized_network

Array = npt.NDArray[Any]


def case(data: bytes, name: str) -> tuple[Graph, Array]:
    """Return the graph and a random input."""
    graph = parse_onnx(data, name, f"{name}.onnx")
    (tensor,) = (graph.tensor(name) for name in graph.inputs)
    random = np.random.default_rng(6)
    if tensor.dtype.value == "uint8":
        return graph, random.integers(0, 256, tensor.shape).astype(np.uint8)
    return graph, random.standard_normal(tensor.shape).astype(np.float32)


def assert_close(made: Array, wanted: Array) -> None:
    assert made.shape == wanted.shape
    np.testing.assert_allclose(made, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())


def test_networks_in_numpy_and_as_c() -> None:
    jobs, expected = [], []
    for name, make in EXPORTED.items():
        data = make()
        graph, value = case(data, name)
        (source,), (output,) = graph.inputs, graph.outputs
        wanted = reference(data, {source: value})[0]
        assert_close(evaluate(graph, {source: value})[output], wanted)
        library = compile_network(graph)
        jobs.append((library, library.modules[0], [value]))
        expected.append(wanted)
    for (made,), wanted in zip(run_many_on_host(jobs), expected, strict=True):
        assert_close(made.reshape(wanted.shape), wanted)


@pytest.mark.parametrize(("name", "transposes"), [("keras", 0), ("segmentation", 2), ("mobile", 3)])
def test_number_of_transposes(name: str, transposes: int) -> None:
    """Transposes from Keras are removed; only an input or output image with several channels is transposed.

    Shuffling channels is a transpose; its result is flattened in ONNX's order.
    """
    graph = case(EXPORTED[name](), name)[0]
    assert sum(isinstance(node.operator, Transpose) for node in graph.nodes) == transposes


def test_networks_on_a_board(tmp_path: Path, tool: Callable[[str], str]) -> None:
    jobs: list[Job] = []
    for name, data in (("mobile", EXPORTED["mobile"]()), ("quantized", quantized_network().bytes())):
        graph, value = case(data, name)
        (source,), (output,) = graph.inputs, graph.outputs
        jobs.append((compile_network(graph), [value], [evaluate(graph, {source: value})[output]]))
    assert wrong_networks(jobs, "cortex-m4", tmp_path, tool) == []


def test_arithmetic_on_shapes_needs_no_evaluator(tmp_path: Path) -> None:
    """Importing ONNX's evaluator takes longer than compiling a small network."""
    for name, make in EXPORTED.items():
        (tmp_path / f"{name}.onnx").write_bytes(make())
    script = (
        "import pathlib, sys\n"
        "from mlfbuild.native.frontends.onnx import parse_onnx\n"
        "for path in pathlib.Path(sys.argv[1]).iterdir():\n"
        "    print(path.name, len(parse_onnx(path.read_bytes(), 'net', path.name).nodes) > 0)\n"
        "print('onnx.reference' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.splitlines()) == ["False", *sorted(f"{name}.onnx True" for name in EXPORTED)]
