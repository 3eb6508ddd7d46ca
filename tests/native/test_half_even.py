"""Means of quantised ONNX networks in C, which are rounded once: on this machine and on boards."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.native.graph import Activation, DType, Graph, Node, Quantization, Tensor, ops
from mlfbuild.native.graph.nodes import evaluate
from support.board_cases import wrong_networks
from support.examples import first_on_push
from support.host_c import run_on_host
from support.native import compile_network, generated

POOLS = (
    ops.AveragePool2D((2, 2), (2, 2), half_even=True),
    ops.AveragePool2D((3, 3), (1, 2), ((1, 1), (0, 1)), half_even=True),
    ops.AveragePool2D((9, 8), half_even=True, activation=Activation.RELU),
    ops.Mean((1, 2), keep_dims=True, half_even=True),
    ops.Sum((2,), keep_dims=True, half_even=True),
)


def network(dtype: DType, channels: int, ratio: float) -> Graph:
    """Return all ``POOLS`` of one image."""
    zero_points = (17, -9) if dtype is DType.INT8 else (0, 0)
    scales = [Quantization((0.1 * factor,), (point,)) for factor, point in zip((1, ratio), zero_points, strict=True)]
    source = Tensor("x", (1, 9, 8, channels), dtype, scales[0])
    tensors, nodes = [source], []
    for index, operator in enumerate(POOLS):
        if isinstance(operator, ops.AveragePool2D):
            pairs = zip(source.shape[1:3], operator.filter, operator.stride, operator.padding, strict=True)
            size = [(pixels + sum(pad) - wide) // stride + 1 for pixels, wide, stride, pad in pairs]
            shape: Sequence[int] = (1, *size, channels)
        else:
            shape = operator.output_shape(source.shape)
        tensors.append(Tensor(f"y{index}", tuple(shape), dtype, scales[1]))
        nodes.append(Node(f"y{index}", operator, ("x",), (f"y{index}",)))
    return Graph(f"net{channels}", tensors, nodes, ["x"], [tensor.name for tensor in tensors[1:]])


def case(dtype: DType, channels: int, ratio: float) -> tuple[Graph, np.ndarray, list[np.ndarray]]:
    """Return a network, its input and its outputs in numpy."""
    limits = np.iinfo(dtype.numpy)
    x = np.random.default_rng(channels).integers(limits.min, limits.max + 1, (1, 9, 8, channels)).astype(dtype.numpy)
    graph = network(dtype, channels, ratio)
    values = evaluate(graph, {"x": x})
    return graph, x, [values[name] for name in graph.outputs]


@pytest.mark.parametrize("ratio", [0.6, 1.0, 1.7])
@pytest.mark.parametrize(("dtype", "channels", "cpu"), [
    (DType.INT8, 3, "cortex-m4"), (DType.INT8, 11, "cortex-m4"), (DType.INT8, 11, "cortex-m0"),
    (DType.INT16, 5, "cortex-m4"),
])  # fmt: skip
def test_c_equals_numpy(dtype: DType, channels: int, cpu: str, ratio: float) -> None:
    graph, x, wanted = case(dtype, channels, ratio)
    library = compile_network(graph, cpu)
    fast = dtype is DType.INT8 and channels > 4 and cpu == "cortex-m4"
    assert ("half_even_int8_dsp(" in generated(library)) == fast
    for made, value in zip(run_on_host(library, [x]), wanted, strict=True):
        np.testing.assert_array_equal(made.reshape(value.shape), value)


@pytest.mark.parametrize("cpu", first_on_push(["cortex-m55", "cortex-m4", "cortex-m0"]))
def test_assembly_equals_numpy(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    jobs = []
    for channels, ratio in ((3, 1.0), (8, 1.7), (21, 0.6)):
        graph, x, wanted = case(DType.INT8, channels, ratio)
        jobs.append((compile_network(graph, cpu), [x], wanted))
    assert wrong_networks(jobs, cpu, tmp_path, tool) == []
