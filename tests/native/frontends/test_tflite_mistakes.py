"""Errors for invalid TFLite files, and for operators that break their rules."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from tflite.BuiltinOperator import BuiltinOperator
from tflite.BuiltinOptions import BuiltinOptions

from mlfbuild.core.errors import InputFileError
from mlfbuild.native.frontends.tflite import parse_tflite, reader
from support.oracle import tflite_micro_run
from support.refusals import Refusal, assert_tflite_refused, invalid, malformed
from support.tflite_builder import Network
from support.tflite_edits import Edit, edit_network, edit_operator, edit_options, edit_tensor, every
from support.tflite_writer import TensorSpec

IMAGE, WEIGHTS, BIAS, FEATURES, FLAT = range(5)
"""Indices of tensors of ``network``."""


def network() -> Network:
    """Return a convolution and a reshape; each test changes one part."""
    net = Network()
    image = net.input((1, 4, 4, 2), 0.5, 3, name="image")
    weights = np.ones((3, 2, 2, 2), np.int8)
    features = net.conv2d(image, weights, np.ones(3, np.int32), weight_scales=[0.1, 0.2, 0.3], scale=1)
    net.tensors[features].name = "features"
    flat = net.reshape(features, (27,), with_shape_tensor=False)
    assert (features, flat) == (FEATURES, FLAT)
    return net


def assert_malformed(data: bytes, place: str, *facts: str) -> None:
    assert_tflite_refused(data, "tflite-malformed", place, *facts)


def test_undamaged_network_is_valid() -> None:
    assert len(parse_tflite(network().build(), "net", "net.tflite").nodes) == 2


HEADERS = {
    "short": (b"\x1c\x00\x00\x00TF", "TFL3"),
    "text": (b"models:\n  kws: {source: kws.tflite}\n", "TFL3"),
    "zeros": (bytes(4096), "TFL3"),
    "random": (np.random.default_rng(1).bytes(4096), "TFL3"),
    "empty": (b"", "empty"),
    "only a header": (b"\x1c\x00\x00\x00TFL3", ""),
}


@pytest.mark.parametrize(("data", "fact"), HEADERS.values(), ids=HEADERS)
def test_file_of_another_format(data: bytes, fact: str) -> None:
    assert_malformed(data, "header", fact)


def test_random_bytes_after_the_header() -> None:
    with pytest.raises(InputFileError) as caught:
        parse_tflite(b"\x1c\x00\x00\x00TFL3" + b"\xff" * 4096, "net", "net.tflite")
    assert caught.value.code == "tflite-malformed"


CONV = "operator 0 (CONV_2D) writing 'features'"
ADD = BuiltinOperator.ADD
ADD_OPTIONS: dict[str, object] = {"options_kind": "AddOptions", "options": {}}

MISTAKES: dict[str, tuple[Edit, Refusal]] = {
    "unsupported version of the schema": (edit_network(version=2), malformed("header", "2", "3")),
    "no subgraph": (edit_network(subgraphs=0), malformed("subgraphs")),
    "tensor index too large": (edit_operator(0, inputs=[IMAGE, 99, BIAS]), malformed(CONV, "99", "5")),
    "tensor index negative": (edit_operator(0, inputs=[IMAGE, -2, BIAS]), malformed(CONV, "-2", "5")),
    "output index too large": (edit_operator(1, outputs=[7]), malformed("operator 1 (RESHAPE)", "7", "5")),
    "input of the model too large": (edit_network(inputs=[5]), malformed("the model's inputs", "5")),
    "output of the model absent": (edit_network(outputs=[-1]), malformed("the model's outputs", "-1", "5")),
    "required input absent": (edit_operator(0, inputs=[IMAGE, -1, BIAS]), malformed(CONV, "1")),
    "first input absent": (edit_operator(0, inputs=[-1, WEIGHTS]), malformed(CONV)),
    "no inputs": (edit_operator(0, inputs=[]), malformed(CONV)),
    "too many inputs": (edit_operator(0, inputs=[IMAGE, WEIGHTS, BIAS, BIAS]), malformed(CONV, "4", "3")),
    "no outputs": (edit_operator(1, outputs=[]), invalid("RESHAPE ''", "0", "1")),
    "two outputs": (edit_operator(1, outputs=[FLAT, FLAT]), malformed("RESHAPE 't4'")),
    "cycle": (
        every(edit_tensor(FLAT, shape=[1, 3, 3, 3]), edit_operator(0, code=ADD, inputs=[FLAT, FLAT], **ADD_OPTIONS)),
        malformed("ADD 'features'", "'t4'", "(a cycle, or nodes out of order)"),
    ),
    "reads itself": (edit_operator(1, inputs=[FLAT]), malformed("RESHAPE 't4'", "(a cycle, or nodes out of order)")),
    "written twice": (edit_operator(1, inputs=[FEATURES], outputs=[FEATURES]), malformed("RESHAPE 'features'")),
    "input written": (edit_operator(1, outputs=[IMAGE]), malformed("RESHAPE 'image'")),
    "constant input": (edit_network(inputs=[IMAGE, WEIGHTS]), malformed("tensor 't1'")),
    "input twice": (edit_network(inputs=[IMAGE, IMAGE]), malformed("graph 'net'")),
    "nothing writes an output": (
        every(lambda net: net.tensor((1,)), edit_network(outputs=[FLAT, 5])),
        malformed("graph 'net'", "'t5'"),
    ),
    "negative dimension": (
        edit_tensor(IMAGE, shape=[1, -4, 4, 2]),
        invalid(f"{CONV}: tensor 0 'image'", "[1, -4, 4, 2]"),
    ),
    "shape overflows": (
        edit_tensor(IMAGE, shape=[2**31 - 1] * 4),
        invalid(f"{CONV}: tensor 0 'image'", "[2147483647, 2147483647, 2147483647, 2147483647]"),
    ),
    "too many dimensions": (edit_tensor(IMAGE, shape=[1] * 9), malformed("tensor 0", "9", "8")),
    "shape does not multiply to the content": (
        edit_tensor(WEIGHTS, shape=[3, 2, 2, 3]),
        malformed(f"{CONV}: tensor 1 't1'", "24", "[3, 2, 2, 3]"),
    ),
    "missing buffer": (
        edit_tensor(WEIGHTS, content=b""),
        malformed("CONV_2D 'features'", "'t1'", "(a cycle, or nodes out of order)"),
    ),
    "buffer index too large": (edit_tensor(WEIGHTS, buffer=77), malformed("buffer 77", "6")),
    "content beyond the file": (edit_tensor(WEIGHTS, external=(10_000_000, 24)), malformed("buffer 2")),
    "content longer than the file": (edit_tensor(WEIGHTS, external=(8, 2**62)), malformed("buffer 2")),
    "scale nan": (edit_tensor(IMAGE, scales=[math.nan]), invalid(f"{CONV}: tensor 0 'image'")),
    "scale zero": (edit_tensor(WEIGHTS, scales=[0.1, 0.0, 0.1]), invalid(f"{CONV}: tensor 1 't1'")),
    "scale negative": (edit_tensor(FEATURES, scales=[-1.0]), invalid(f"{CONV}: tensor 3 'features'")),
    "scale infinite": (edit_tensor(FEATURES, scales=[math.inf]), invalid(f"{CONV}: tensor 3 'features'")),
    "scale too small to divide by": (
        edit_tensor(FEATURES, scales=[1e-38]),
        invalid("CONV_2D 'features'", "5e+36", "30"),
    ),
    "no scale": (
        edit_tensor(FEATURES, scales=[], zero_points=[]),
        invalid("CONV_2D 'features'", "'features' int8[1, 3, 3, 3]"),
    ),
    "zero points missing": (edit_tensor(WEIGHTS, zero_points=[0, 0]), invalid(f"{CONV}: tensor 1 't1'", "3")),
    "zero point outside int8": (
        edit_tensor(IMAGE, zero_points=[128]),
        invalid("CONV_2D 'features'", "'image' int8[1, 4, 4, 2]", "128"),
    ),
    "weights not symmetric": (
        edit_tensor(WEIGHTS, zero_points=[0, 1, 0]),
        invalid("CONV_2D 'features'", "'t1' int8[3, 2, 2, 2]", "0"),
    ),
    "scales along a dimension that is not there": (edit_tensor(WEIGHTS, axis=4), malformed("tensor 't1'", "3", "4")),
    "scales along a negative dimension": (edit_tensor(WEIGHTS, axis=-1), malformed("tensor 't1'", "3", "-1")),
    "activation with a scale per channel": (
        edit_tensor(IMAGE, scales=[0.1, 0.2], zero_points=[0, 0], axis=3),
        invalid("CONV_2D 'features'", "'image' int8[1, 4, 4, 2]"),
    ),
    "bias of another length": (
        edit_tensor(BIAS, shape=[2], content=bytes(8), scales=[], zero_points=[]),
        invalid("CONV_2D 'features'", "'t2' int32[2]"),
    ),
    "bias of another type": (
        edit_tensor(BIAS, type=0, scales=[], zero_points=[]),
        invalid("CONV_2D 'features'", "'t2' float32[3]"),
    ),
    "bias of another scale": (
        edit_tensor(BIAS, scales=[0.05, 0.2, 0.15]),
        invalid("CONV_2D 'features'", "'t2' int32[3]", "0.2"),
    ),
    "bias with a zero point": (
        edit_tensor(BIAS, zero_points=[0, 0, 1]),
        invalid("CONV_2D 'features'", "'t2' int32[3]", "0"),
    ),
    "weights of other channels": (
        edit_tensor(WEIGHTS, shape=[3, 2, 1, 4]),
        invalid("CONV_2D 'features'", "'t1' int8[3, 2, 1, 4]", "'image' int8[1, 4, 4, 2]"),
    ),
    "weights of another rank": (edit_tensor(WEIGHTS, shape=[3, 8]), invalid(CONV, "'t1' int8[3, 8]", "4")),
    "output of another size": (
        edit_tensor(FEATURES, shape=[1, 4, 3, 3]),
        invalid("CONV_2D 'features'", "'features' int8[1, 4, 3, 3]", "(2, 2)"),
    ),
    "output of other channels": (
        edit_tensor(FEATURES, shape=[1, 3, 3, 9]),
        invalid("CONV_2D 'features'", "'features' int8[1, 3, 3, 9]"),
    ),
    "output of another batch": (
        edit_tensor(FEATURES, shape=[2, 3, 3, 3]),
        invalid("CONV_2D 'features'", "'features' int8[2, 3, 3, 3]", "'image' int8[1, 4, 4, 2]"),
    ),
    "reshape to other elements": (
        edit_tensor(FLAT, shape=[26]),
        invalid("RESHAPE 't4'", "'features' int8[1, 3, 3, 3]", "27"),
    ),
    "stride zero": (edit_options(StrideH=0), invalid(CONV, "(2, 2)", "(0, 1)")),
    "stride negative": (edit_options(StrideW=-1), invalid(CONV, "(2, 2)", "(1, -1)")),
    "dilation zero": (edit_options(DilationWFactor=0), invalid(CONV, "(2, 2)", "(1, 1)")),
    "filter larger than the image": (
        edit_options(DilationHFactor=2**30),
        invalid("CONV_2D 'features'", "'features' int8[1, 3, 3, 3]", "(2, 2)"),
    ),
    "padding neither SAME nor VALID": (edit_options(Padding=2), invalid(CONV, "SAME", "VALID")),
    "options of another operator": (edit_operator(0, options_tag=BuiltinOptions.SoftmaxOptions), malformed(CONV)),
    "no options": (edit_operator(0, options_kind=None), malformed(CONV)),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_one_mistake(name: str) -> None:
    edit, expected = MISTAKES[name]
    net = network()
    net.outputs = [FLAT]
    edit(net)
    assert_tflite_refused(net.build(), *expected)


def then(build: Callable[[Network, int], object], edit: Edit) -> Callable[[Network, int], None]:
    def build_and_edit(net: Network, x: int) -> None:
        build(net, x)
        edit(net)

    return build_and_edit


ATTRIBUTES: dict[str, tuple[Callable[[Network, int], object], Refusal]] = {
    "axis out of range": (
        then(lambda net, x: net.mean(x, [0]), edit_tensor(1, content=np.int32(4).tobytes())),
        invalid("operator 0 (MEAN) writing 't2'", "4", "'x' float32[1, 4, 4, 2]"),
    ),
    "axes as floats": (
        then(lambda net, x: net.mean(x, [0]), edit_tensor(1, type=0)),
        invalid("operator 0 (MEAN) writing 't2'", "'t1' float32[1]", "64"),
    ),
    "padding negative": (
        lambda net, x: net.pad(x, [(0, 0), (-1, 0), (0, 0), (0, 0)]),
        invalid("PAD 't2'", "((0, 0)", "(-1, 0)"),
    ),
    "paddings of another rank": (
        then(lambda net, x: net.pad(x, [(0, 0)] * 4), edit_tensor(1, shape=[3, 2], content=bytes(24))),
        invalid("operator 0 (PAD) writing 't2'", "6", "'x' float32[1, 4, 4, 2]"),
    ),
    "paddings that the output lacks": (
        then(lambda net, x: net.pad(x, [(0, 1)] * 4), edit_tensor(2, shape=[1, 4, 4, 2])),
        invalid("PAD 't2'", "'t2' float32[1, 4, 4, 2]", "[2, 5, 5, 3]"),
    ),
    "pool of size zero": (
        then(lambda net, x: net.pool2d("MAX", x, (2, 2)), edit_options(FilterHeight=0)),
        invalid("operator 0 (MAX_POOL_2D) writing 't1'", "(0, 2)", "(1, 1)"),
    ),
    "beta nan": (lambda net, x: net.softmax(x, beta=math.nan), invalid("SOFTMAX 't1'")),
    "shapes that do not broadcast": (
        then(lambda net, x: net.add(net.input((1, 2)), x), edit_tensor(1, shape=[3])),
        invalid("ADD 't2'", "'t1' float32[3]", "'x' float32[1, 4, 4, 2]"),
    ),
    "rows that the weights do not fit": (
        then(
            lambda net, x: net.fully_connected(x, np.ones((2, 4), np.float32)),
            edit_tensor(1, shape=[2, 5], content=bytes(40)),
        ),
        invalid("FULLY_CONNECTED 't2'", "'x' float32[1, 4, 4, 2]", "5"),
    ),
    "depth multiplier that the weights do not fit": (
        then(
            lambda net, x: net.depthwise_conv2d(x, np.ones((1, 2, 2, 4), np.float32)),
            edit_options(DepthMultiplier=3),
        ),
        invalid("DEPTHWISE_CONV_2D 't2'", "'t1' float32[1, 2, 2, 4]", "'x' float32[1, 4, 4, 2]"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("build", "expected"), ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_wrong_attributes(build: Callable[[Network, int], None], expected: Refusal) -> None:
    net = Network()
    build(net, net.input((1, 4, 4, 2), name="x"))
    assert_tflite_refused(net.build(), *expected)


def test_bool_that_is_neither_true_nor_false() -> None:
    net = Network()
    x = net.input((2,), dtype="bool", name="x")
    net.operator("LOGICAL_AND", [x, net.constant(np.array([False, True]))], net.activation((2,), dtype="bool"))
    net.tensors[1].content = b"\x00\xfb"
    assert_malformed(net.build(), "tensor 't1'", "false (0)")


def test_overlapping_vectors() -> None:
    net = network()
    net.tensors += [TensorSpec("x" * 10_000, [1], 0)] * 3000
    data = net.build()
    assert len(data) < 50_000
    assert_malformed(data, "vectors")


def test_too_many_tensors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAXIMUM_COUNT", 4)
    assert_malformed(network().build(), "tensors", "5", "4")


RESHAPE, TANH, GELU = BuiltinOperator.RESHAPE, BuiltinOperator.TANH, BuiltinOperator.GELU


def unary(code: int, old_code: int) -> bytes:
    """An operator without options whose code has any two fields."""
    net = Network()
    net.operator("TANH", [net.input((2,))], net.activation((2,)))
    net.operators[0].code, net.operators[0].old_code = code, old_code
    return net.build()


@pytest.mark.parametrize(("code", "old_code"), [(TANH, TANH), (TANH, 0), (0, TANH)])
def test_either_field_of_an_operator_code_names_the_operator(code: int, old_code: int) -> None:
    data, x = unary(code, old_code), np.array([-1, 2], np.float32)
    assert [node.operator.name for node in parse_tflite(data, "net", "net.tflite").nodes] == ["TANH"]
    np.testing.assert_allclose(*tflite_micro_run(data, [x]), np.tanh(x), rtol=1e-6)


@pytest.mark.parametrize("old_code", [127, 0])
def test_operators_after_the_127th_have_only_the_new_field(old_code: int) -> None:
    """The operator is known: only its options are missing."""
    assert_malformed(unary(GELU, old_code), "operator 0 (GELU) writing 't1'")


@pytest.mark.parametrize(
    ("code", "old_code"),
    [(TANH, RESHAPE), (RESHAPE, TANH), (TANH, 127), (GELU, TANH), (GELU, -1), (0, -1), (-1, 0), (-1, -1), (-1, TANH)],
)
def test_fields_of_an_operator_code_that_contradict_each_other(code: int, old_code: int) -> None:
    assert_malformed(unary(code, old_code), "operator code 0", f" {code} contradicts", f"_code {old_code}")
