"""Valid TFLite files: attributes, names, constants."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.core.errors import InputFileError
from mlfbuild.native.frontends import read_model
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import Activation, DType, Graph, Operator, ops
from support.errors import raises
from support.tflite_builder import Network

WEIGHTS = np.ones((4, 3, 3, 2), np.int8)
DEPTHWISE = np.ones((1, 3, 3, 4), np.int8)


def parse(network: Network) -> Graph:
    return parse_tflite(network.build(), "model", "model.tflite")


def operator_of(build: Callable[[Network, int], object], *, scale: float | None = 0.5) -> Operator:
    """Return the operator that ``build`` adds after an input of shape [1, 7, 8, 2]."""
    network = Network()
    build(network, network.input((1, 7, 8, 2), scale, 3))
    (node,) = parse(network).nodes
    return node.operator


def test_conv2d() -> None:
    operator = operator_of(
        lambda net, x: net.conv2d(
            x, WEIGHTS, weight_scales=[0.1], scale=1, stride=(2, 1), dilation=(1, 2), padding="SAME", activation="RELU6"
        )
    )
    # 7 rows, stride 2: 4 positions, (4 - 1) * 2 + 3 - 7 = 2 rows short; 8 columns, a filter dilated to 5: 4 short.
    assert operator == ops.Conv2D((2, 1), (1, 2), ((1, 1), (2, 2)), Activation.RELU6)


def test_same_padding_puts_the_odd_row_after() -> None:
    operator = operator_of(lambda net, x: net.pool2d("MAX", x, (3, 3), stride=(1, 2), padding="SAME"))
    assert operator == ops.MaxPool2D((3, 3), (1, 2), ((1, 1), (0, 1)))


def test_depthwise_conv2d() -> None:
    operator = operator_of(lambda net, x: net.depthwise_conv2d(x, DEPTHWISE, weight_scales=[0.1] * 4, scale=1))
    assert operator == ops.DepthwiseConv2D(depth_multiplier=2)


def test_absent_depth_multiplier_follows_from_the_weights() -> None:
    def build(net: Network, x: int) -> None:
        net.depthwise_conv2d(x, DEPTHWISE, weight_scales=[0.1] * 4, scale=1)
        del net.operators[0].options["DepthMultiplier"]

    assert operator_of(build) == ops.DepthwiseConv2D(depth_multiplier=2)


def test_fully_connected() -> None:
    weights = np.ones((5, 2), np.float32)
    operator = operator_of(
        lambda net, x: net.fully_connected(x, weights, activation="RELU", keep_num_dims=True), scale=None
    )
    assert operator == ops.FullyConnected(Activation.RELU, keep_num_dims=True)


def test_attributes_from_constant_inputs() -> None:
    assert operator_of(lambda net, x: net.mean(x, [-1, 1, 1], scale=1)) == ops.Mean((1, 3), keep_dims=False)
    pads = [(0, 0), (1, 2), (0, 3), (0, 0)]
    assert operator_of(lambda net, x: net.pad(x, pads)) == ops.Pad(tuple(pads))


def test_attributes_are_not_inputs_of_the_node() -> None:
    network = Network()
    network.reshape(network.pad(network.input((2, 2), name="in"), [(0, 0), (1, 1)]), (8,))
    graph = parse(network)
    assert [node.inputs for node in graph.nodes] == [("in",), (graph.nodes[0].outputs[0],)]
    assert graph.constants == ()
    assert len(graph.tensors) == 3


def test_quantisation_per_channel() -> None:
    network = Network()
    image = network.input((1, 3, 3, 2), 0.5, 3)
    network.depthwise_conv2d(image, DEPTHWISE, np.ones(4, np.int32), weight_scales=[0.1, 0.2, 0.3, 0.4], scale=1)
    graph = parse(network)
    source, weights, bias = graph.inputs_of(graph.nodes[0])
    assert source.quantization is not None
    assert (source.dtype, source.quantization.scale, source.quantization.zero_point) == (DType.INT8, 0.5, 3)
    assert weights.quantization is not None
    assert weights.quantization.axis == 3
    assert weights.quantization.scales == tuple(np.array([0.1, 0.2, 0.3, 0.4], np.float32).tolist())
    assert bias is not None and bias.dtype is DType.INT32


def test_biases_have_scales_along_their_only_dimension() -> None:
    """The dimension in the file is ignored, because converters write that of the weights."""
    network = Network()
    image = network.input((1, 3, 3, 2), 0.5, 3)
    network.depthwise_conv2d(image, DEPTHWISE, np.ones(4, np.int32), weight_scales=[0.1] * 4, scale=1)
    network.tensors[2].axis = 3
    bias = parse(network).tensor("t2")
    assert bias.quantization is not None and bias.quantization.axis == 0


def test_one_zero_point_applies_to_all_channels() -> None:
    network = Network()
    network.conv2d(network.input((1, 3, 3, 2), 0.5), WEIGHTS, weight_scales=[0.1] * 4, scale=1)
    network.tensors[1].zero_points = [0]
    quantization = parse(network).constants[0].quantization
    assert quantization is not None and quantization.zero_points == (0, 0, 0, 0)


def test_constants_are_views_of_the_file() -> None:
    network = Network()
    network.conv2d(network.input((1, 3, 3, 2), 0.5), WEIGHTS, weight_scales=[0.1], scale=1)
    data = network.build()
    (weights,) = parse_tflite(data, "model", "model.tflite").constants
    assert weights.data is not None
    np.testing.assert_array_equal(weights.data, WEIGHTS)
    assert np.shares_memory(weights.data, np.frombuffer(data, np.uint8))
    assert not weights.data.flags.writeable


def test_content_after_the_flatbuffer_is_read() -> None:
    network = Network()
    network.add(network.input((4,)), network.constant(np.arange(4, dtype=np.float32)))
    content = np.arange(4, dtype=np.float32)
    network.tensors[1].content = b""
    size = len(network.build())
    network.tensors[1].external = (size + 100, content.nbytes)  # room for the two fields
    data = network.build().ljust(size + 100) + content.tobytes()
    (constant,) = parse_tflite(data, "model", "model.tflite").constants
    assert constant.data is not None
    np.testing.assert_array_equal(constant.data, content)


def test_names_are_kept_and_made_unique() -> None:
    network = Network()
    x = network.input((2,), name="a/b:0;c")
    x = network.reshape(x, (1, 2), with_shape_tensor=False)
    x = network.reshape(x, (2, 1), with_shape_tensor=False)
    network.reshape(x, (2,), with_shape_tensor=False)
    network.tensors[1].name = "twice"
    network.tensors[2].name = "twice"
    network.tensors[3].name = ""
    assert list(parse(network).tensors) == ["a/b:0;c", "twice", "twice_2", "tensor_3"]


def test_generated_names_do_not_collide() -> None:
    network = Network()
    x = network.input((2,), name="x")
    x = network.reshape(x, (1, 2), with_shape_tensor=False)
    network.reshape(x, (2, 1), with_shape_tensor=False)
    network.tensors[1].name = "x"
    network.tensors[2].name = "x_1"
    assert list(parse(network).tensors) == ["x", "x_1_", "x_1"]


def test_a_name_that_is_not_utf8_is_escaped() -> None:
    network = Network()
    network.reshape(network.input((2,)), (1, 2))
    network.tensors[0].name = b"caf\xe9"
    assert parse(network).inputs == ("caf\\xe9",)


def test_a_free_batch_is_the_batch_of_the_shape() -> None:
    network = Network()
    network.reshape(network.input((1, 4)), (4, 1))
    network.tensors[0].signature = [-1, 4]
    graph = parse(network)
    assert graph.tensor(graph.inputs[0]).shape == (1, 4)


def test_unused_tensors_may_have_any_type() -> None:
    network = Network()
    network.softmax(network.input((4,)))
    network.tensor((2, 0), "string")
    assert len(parse(network).tensors) == 2


def test_network_without_operators() -> None:
    network = Network()
    network.input((4,), name="through")
    graph = parse_tflite(network.build(outputs=[0]), "model", "model.tflite")
    assert (graph.inputs, graph.outputs, graph.nodes) == (("through",), ("through",), ())


def test_read_model_reads_a_file(tmp_path: Path) -> None:
    network = Network()
    network.softmax(network.input((4,)))
    path = tmp_path / "model.tflite"
    path.write_bytes(network.build())
    assert read_model(path, "net").name == "net"


@pytest.mark.parametrize(("name", "code"), [("missing.tflite", "no-such-input"), ("folder", "input-is-folder")])
def test_missing_files_are_refused(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "folder").mkdir()
    with raises(InputFileError, code, at=str(tmp_path / name)):
        read_model(tmp_path / name, "net")


@pytest.mark.parametrize(
    ("name", "code"),
    [("net.onnx", "onnx-malformed"), ("NET.ONNX", "onnx-malformed"), ("net.tflite", "tflite-malformed")],
)
def test_the_suffix_selects_the_format(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with raises(InputFileError, code):
        read_model(tmp_path / name, "net")
