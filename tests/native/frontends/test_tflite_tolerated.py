"""Files that look wrong and that TensorFlow Lite Micro and LiteRT run: scales without a meaning, no inputs."""

import numpy as np
import pytest

from mlfbuild.core.errors import InputFileError, UsageError
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate
from support.errors import raises
from support.host_c import run_on_host
from support.native import compile_bytes
from support.oracle import assert_equal, litert_run, tflite_micro_run
from support.refusals import assert_tflite_refused
from support.tflite_builder import Array, Network

RANDOM = np.random.default_rng(20)
IMAGE = RANDOM.integers(-128, 128, (1, 4, 4, 2), dtype=np.int8)


def random_weights(*shape: int) -> Array:
    return RANDOM.integers(-9, 9, shape, dtype=np.int8)


def assert_runs_as_both(net: Network, inputs: list[Array]) -> Array:
    model = net.build()
    (got,) = run_on_host(compile_bytes(model), inputs)
    for run in (tflite_micro_run, litert_run):
        assert_equal(got, run(model, inputs)[0], run.__name__)
    return got


@pytest.mark.parametrize("scale", [7.0, 0.0])
def test_scale_of_zero_biases_is_ignored(scale: float) -> None:
    net = Network()
    x = net.conv2d(net.input((1, 4, 4, 2), 0.5, 3), random_weights(3, 2, 2, 2), np.zeros(3, np.int32),
                   weight_scales=[0.01] * 3, scale=0.2)  # fmt: skip
    net.tensors[2].scales = [scale]
    net.tensors[2].zero_points = [0]
    net.depthwise_conv2d(x, random_weights(1, 2, 2, 3), weight_scales=[0.01] * 3, scale=0.005)
    net.operators[1].inputs.append(2)  # layers share the bias
    assert len(np.unique(assert_runs_as_both(net, [IMAGE]))) > 3


def test_scale_of_other_biases_is_checked() -> None:
    net = Network()
    x = net.input((1, 4, 4, 2), 0.5, 3)
    net.conv2d(x, random_weights(3, 3, 3, 2), np.array([0, 1, 0], np.int32), weight_scales=[0.01] * 3, scale=0.2)
    net.tensors[2].scales = [7.0]
    net.tensors[2].zero_points = [0]
    assert_tflite_refused(net.build(), "operator-invalid", "CONV_2D 't3'", "'t2' int32[3]", "7")


def test_weights_of_zeros_may_have_the_scale_zero() -> None:
    weights = random_weights(3, 3, 3, 2)
    weights[1] = 0
    net = Network()
    x = net.input((1, 4, 4, 2), 0.5, 3)
    net.conv2d(x, weights, np.array([5, 0, 7], np.int32), weight_scales=[0.01, 0, 0.02], scale=0.2, zero_point=4)
    got = assert_runs_as_both(net, [IMAGE])
    assert np.all(got[..., 1] == 4)
    assert len(np.unique(got)) > 3


def test_zero_with_the_scale_zero_is_added() -> None:
    """The runtimes stop at it."""
    net = Network()
    net.add(net.input((1, 4, 4, 2), 0.5, 3), net.constant(np.zeros(2, np.int8), 0.0), scale=0.5, zero_point=3)
    (got,) = run_on_host(compile_bytes(net.build()), [IMAGE])
    np.testing.assert_array_equal(got, IMAGE)


@pytest.mark.parametrize("data", [np.array([0, 1], np.int8), None])
def test_other_tensors_need_a_scale(data: Array | None) -> None:
    net = Network()
    x = net.input((1, 4, 4, 2), 0.5, 3)
    other = net.input((2,), 0.0) if data is None else net.constant(data, 0.0)
    net.add(x, other, scale=0.5)
    assert_tflite_refused(net.build(), "operator-invalid", "operator 0 (ADD) writing 't2': tensor 1 't1'", "positive")


def test_output_shape_of_transpose_conv_may_be_an_input() -> None:
    net = Network()
    x = net.input((1, 4, 4, 2))
    net.transpose_conv(x, (9, 9), RANDOM.normal(size=(3, 3, 3, 2)).astype(np.float32), stride=(2, 2))
    shape = net.operators[0].inputs[0]
    net.tensors[shape].content = b""
    net.inputs.append(shape)
    assert_runs_as_both(net, [IMAGE.astype(np.float32), np.array([1, 9, 9, 3], np.int32)])


def test_network_without_inputs() -> None:
    net = Network()
    net.add(net.constant(np.array([1.5, -2], np.float32)), net.constant(np.array([0.25, 9], np.float32)))
    assert assert_runs_as_both(net, []).tolist() == [1.75, 7.0]


def with_signatures() -> Network:
    """Return a file with two networks; the signature of the second one is "scale"."""
    net, other = Network(), Network()
    net.add(net.input((2,)), net.constant(np.array([0.25, 9], np.float32)))
    x = other.input((2,))
    other.outputs = [other.binary("MUL", x, other.constant(np.array([3, 4], np.float32)))]
    net.others.append(other)
    net.signatures = {"shift": 0, "scale": 1, "again": 1}
    return net


def test_a_signature_selects_a_subgraph() -> None:
    model = with_signatures().build()
    (note,) = parse_tflite(model, "net", "net").notes
    assert "'scale', 'again'" in note
    for signature, expected in (("shift", [1.25, 11]), ("scale", [3, 8]), ("again", [3, 8])):
        graph = parse_tflite(model, "net", "net", signature=signature)
        assert graph.notes == ()
        values = evaluate(graph, {graph.inputs[0]: np.array([1, 2], np.float32)})
        assert values[graph.outputs[0]].tolist() == expected


def test_an_unknown_signature_is_refused() -> None:
    net = with_signatures()
    for signatures, words in ((net.signatures, "shift, scale, again"), ({}, "no signatures")):
        net.signatures = signatures
        with raises(UsageError, "signature-unknown", at="net: signature") as caught:
            parse_tflite(net.build(), "net", "net", signature="decode")
        assert words in caught.value.reason


def test_a_signature_of_no_subgraph_is_malformed() -> None:
    net = with_signatures()
    net.signatures["other"] = 7
    with raises(InputFileError, "tflite-malformed", at="net: signatures"):
        parse_tflite(net.build(), "net", "net")


@pytest.mark.parametrize(("others", "named"), [(1, "subgraph 1 is"), (2, "subgraphs 1, 2 are")])
def test_first_of_several_subgraphs_is_compiled(others: int, named: str) -> None:
    net = Network()
    net.add(net.input((2,)), net.constant(np.array([0.25, 9], np.float32)))
    for _ in range(others):
        other = Network()
        other.softmax(other.input((3, 4)))
        other.outputs = [1]
        net.others.append(other)
    (note,) = parse_tflite(net.build(), "net", "net").notes
    assert named in note
    assert assert_runs_as_both(net, [np.array([1, 2], np.float32)]).tolist() == [1.25, 11]
