"""Layers of ONNX networks with int16 activations, whose factors have 32 bits after the point, in C."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.native.graph import DType, Graph, Node, Operator, Quantization, Tensor, ops
from mlfbuild.native.graph.nodes import evaluate
from support.board_cases import wrong_networks
from support.examples import first_on_push
from support.host_c import run_on_host
from support.native import compile_network, generated

Array = npt.NDArray[Any]
SAME = ((1, 1), (1, 1))
LAYERS: dict[str, tuple[Operator, tuple[int, ...], tuple[int, ...], int]] = {
    "CONV_2D": (ops.Conv2D(padding=SAME, fine=True), (6, 3, 3, 8), (1, 4, 5, 6), 0),
    "DEPTHWISE_CONV_2D": (ops.DepthwiseConv2D(padding=SAME, fine=True), (1, 3, 3, 8), (1, 4, 5, 8), 3),
    "FULLY_CONNECTED": (ops.FullyConnected(keep_num_dims=True, fine=True), (6, 8), (1, 4, 5, 6), 0),
}


def case(name: str) -> tuple[Graph, Array, Array]:
    """Return a network of one layer, its input and its output in numpy."""
    operator, weights_shape, shape, axis = LAYERS[name]
    random = np.random.default_rng(4)
    channels = weights_shape[axis]
    scales = Quantization(tuple(random.uniform(0.001, 0.02, channels).tolist()), (0,) * channels, axis)
    weights = random.integers(-127, 128, weights_shape).astype(np.int8)
    tensors = [
        Tensor("x", (1, 4, 5, 8), DType.INT16, Quantization((0.001,), (0,))),
        Tensor("w", weights_shape, DType.INT8, scales, weights),
        Tensor("b", (channels,), DType.INT64, None, random.integers(-90_000, 90_000, channels)),
        Tensor("y", shape, DType.INT16, Quantization((0.0037,), (0,))),
    ]
    graph = Graph("net", tensors, [Node("y", operator, ("x", "w", "b"), ("y",))], ["x"], ["y"])
    x = random.integers(-32768, 32768, tensors[0].shape).astype(np.int16)
    return graph, x, evaluate(graph, {"x": x})["y"]


@pytest.mark.parametrize("cpu", ["cortex-m0", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("name", LAYERS)
def test_c_equals_numpy(name: str, cpu: str) -> None:
    graph, x, wanted = case(name)
    library = compile_network(graph, cpu)
    assert ("_int16_fine(" in generated(library)) == (cpu == "cortex-m0")
    np.testing.assert_array_equal(run_on_host(library, [x])[0].reshape(wanted.shape), wanted)


@pytest.mark.parametrize("cpu", first_on_push(["cortex-m55", "cortex-m4"]))
def test_assembly_equals_numpy(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    jobs = []
    for index, name in enumerate(LAYERS):
        graph, x, wanted = case(name)
        renamed = Graph(f"net{index}", list(graph.tensors.values()), graph.nodes, graph.inputs, graph.outputs)
        jobs.append((compile_network(renamed, cpu), [x], [wanted]))
    assert wrong_networks(jobs, cpu, tmp_path, tool) == []
