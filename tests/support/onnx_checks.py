"""Compare ONNX networks, in numpy and as C, with ONNX's evaluator."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import run_on_host
from support.native import compile_network
from support.onnx_models import model, reference

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float32]
RANDOM = np.random.default_rng(5)
START = RANDOM.bit_generator.state


def restart() -> None:
    """Reset the generator of random numbers."""
    RANDOM.bit_generator.state = START


def floats(*shape: int) -> Floats:
    """Return random numbers."""
    return RANDOM.standard_normal(shape).astype(np.float32)


def as_declared(data: bytes, wanted: Sequence[Array]) -> bytes:
    """Return the model with the shapes of ``wanted`` as those of its outputs."""
    made = onnx.load_from_string(data)
    for port, value in zip(made.graph.output, wanted, strict=True):
        port.CopyFrom(helper.make_tensor_value_info(port.name, port.type.tensor_type.elem_type, value.shape))
    return bytes(made.SerializeToString())


def assert_equal(data: bytes, *inputs: Floats, compiled: bool = True) -> None:
    """The graph in numpy, and perhaps as C, computes what ONNX's evaluator does, whose shapes the outputs declare."""
    made_by = onnx.load_from_string(data)
    stored = {tensor.name for tensor in made_by.graph.initializer}
    names = [port.name for port in made_by.graph.input if port.name not in stored]
    feeds = dict(zip(names, inputs, strict=True))
    wanted = reference(data, feeds)
    graph = parse_onnx(as_declared(data, wanted), "net", "net.onnx")
    values = evaluate(graph, feeds)
    made = [[values[name] for name in graph.outputs]]
    if compiled:
        outputs = run_on_host(compile_network(graph), inputs)
        made.append([value.reshape(other.shape) for value, other in zip(outputs, wanted, strict=True)])
    for results in made:
        for result, expected in zip(results, wanted, strict=True):
            assert result.shape == expected.shape
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())


def on_images(
    nodes: Sequence[onnx.NodeProto],
    constants: Mapping[str, Array],
    shape: Sequence[int],
    element: int = TensorProto.FLOAT,
) -> bytes:
    """Return a model that computes ``y`` of type ``element`` from ``p``, the pooled input.

    ``p`` is stored with its channels last; ``q`` is its transpose.
    """
    front = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[1, 1]),
        helper.make_node("Transpose", ["p"], ["q"], perm=[0, 1, 3, 2]),
    ]
    graph = helper.make_graph(
        [*front, *nodes], "graph", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", element, [None] * len(shape))],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8)
    return bytes(made.SerializeToString())


def small_network() -> bytes:
    """Return a network with convolution, normalisation, pool, a residual branch, and a dense layer."""
    node = helper.make_node
    return model(
        [
            node("Conv", ["x", "w1", "b1"], ["c1"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
            node("BatchNormalization", ["c1", "scale", "offset", "mean", "variance"], ["n1"]),
            node("MaxPool", ["n1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
            node("Conv", ["p1", "w2"], ["c2"], kernel_shape=[3, 3], auto_pad="SAME_UPPER", group=4),
            node("Add", ["c2", "p1"], ["a1"]),
            node("GlobalAveragePool", ["a1"], ["g1"]),
            node("Flatten", ["g1"], ["f1"]),
            node("Gemm", ["f1", "w3", "b3"], ["d1"], transB=1),
            node("Softmax", ["d1"], ["y"]),
        ],
        [("x", (1, 3, 8, 6))],
        [("y", (1, 5)), ("p1", (1, 4, 4, 3))],
        {
            "w1": floats(4, 3, 3, 3), "b1": floats(4), "scale": floats(4), "offset": floats(4), "mean": floats(4),
            "variance": np.abs(floats(4)) + 1, "w2": floats(4, 1, 3, 3), "w3": floats(5, 4), "b3": floats(5),
        },
    )  # fmt: skip


def changed(change: Callable[[onnx.ModelProto], object]) -> bytes:
    """Return the small network after ``change``."""
    made = onnx.load_from_string(small_network())
    change(made)
    return bytes(made.SerializeToString())
