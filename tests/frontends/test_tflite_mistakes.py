"""Files that are no TFLite model, exit code 5, and models that make no sense, exit code 4: each in a line."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from tflite.BuiltinOperator import BuiltinOperator
from tflite.BuiltinOptions import BuiltinOptions

from mlfbuild.core.errors import InputFileError, UnsupportedModelError
from mlfbuild.frontends.advice import EXPORT_AGAIN
from mlfbuild.frontends.tflite import parse_tflite, reader
from support.tflite_builder import Network
from support.tflite_writer import TensorSpec

IMAGE, WEIGHTS, BIAS, FEATURES, FLAT = range(5)
"""Tensors of ``network``."""


def network() -> Network:
    """A convolution and a reshape; the tests below break one thing each."""
    net = Network()
    image = net.input((1, 4, 4, 2), 0.5, 3, name="image")
    weights = np.ones((3, 2, 2, 2), np.int8)
    features = net.conv2d(image, weights, np.zeros(3, np.int32), weight_scales=[0.1, 0.2, 0.3], scale=1)
    net.tensors[features].name = "features"
    flat = net.reshape(features, (27,), with_shape_tensor=False)
    assert (features, flat) == (FEATURES, FLAT)
    return net


def nonsense(data: bytes) -> str:
    """What is said of a file in order whose operators do not fit their tensors."""
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(data, "net", "net.tflite")
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(f"; {EXPORT_AGAIN}")
    return text.removeprefix("net.tflite: ").removesuffix(f"; {EXPORT_AGAIN}")


def message(data: bytes) -> str:
    """What is said of a file that is no model."""
    with pytest.raises(InputFileError) as caught:
        parse_tflite(data, "net", "net.tflite")
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("net.tflite: not a valid TFLite model: ")
    assert text.endswith(f"; {EXPORT_AGAIN}")
    return text.removeprefix("net.tflite: not a valid TFLite model: ").removesuffix(f"; {EXPORT_AGAIN}")


def test_the_network_itself_is_sound() -> None:
    assert len(parse_tflite(network().build(), "net", "net.tflite").nodes) == 2


HEADERS = {
    "short": b"\x1c\x00\x00\x00TF",
    "text": b"models:\n  kws: {source: kws.tflite}\n",
    "zeros": bytes(4096),
    "random": np.random.default_rng(1).bytes(4096),
}


@pytest.mark.parametrize("data", HEADERS.values(), ids=HEADERS)
def test_not_tflite_at_all(data: bytes) -> None:
    assert message(data) == "header: the file identifier TFL3 is missing"


def test_empty() -> None:
    assert message(b"") == "header: the file is empty"


def test_only_a_header() -> None:
    assert message(b"\x1c\x00\x00\x00TFL3") == "header: an offset or a length leads out of the file"


def test_random_after_the_header() -> None:
    assert message(b"\x1c\x00\x00\x00TFL3" + b"\xff" * 4096)


def test_another_version() -> None:
    net = network()
    net.version = 2
    assert message(net.build()) == "header: schema version 2, not 3"


def test_no_subgraph() -> None:
    net = network()
    net.subgraphs = 0
    assert message(net.build()) == "subgraphs: there are none"


def edit_tensor(index: int, **fields: object) -> Callable[[Network], None]:
    def edit(net: Network) -> None:
        for name, value in fields.items():
            setattr(net.tensors[index], name, value)

    return edit


def edit_operator(index: int, **fields: object) -> Callable[[Network], None]:
    def edit(net: Network) -> None:
        for name, value in fields.items():
            setattr(net.operators[index], name, value)

    return edit


def edit_options(**options: int) -> Callable[[Network], None]:
    def edit(net: Network) -> None:
        net.operators[0].options.update(options)

    return edit


def edit_network(**fields: object) -> Callable[[Network], None]:
    def edit(net: Network) -> None:
        for name, value in fields.items():
            setattr(net, name, value)

    return edit


def both(first: Callable[[Network], object], second: Callable[[Network], object]) -> Callable[[Network], None]:
    def edit(net: Network) -> None:
        first(net)
        second(net)

    return edit


CONV = "operator 0 (CONV_2D) writing 'features'"
ADD = BuiltinOperator.ADD
ADD_OPTIONS: dict[str, object] = {"options_kind": "AddOptions", "options": {}}

MISTAKES: dict[str, tuple[Callable[[Network], object], str]] = {
    "tensor index too large": (
        edit_operator(0, inputs=[IMAGE, 99, BIAS]),
        f"{CONV}: tensor index 99 of 5",
    ),
    "tensor index negative": (
        edit_operator(0, inputs=[IMAGE, -2, BIAS]),
        f"{CONV}: tensor index -2 of 5",
    ),
    "output index too large": (
        edit_operator(1, outputs=[7]),
        "operator 1 (RESHAPE): tensor index 7 of 5",
    ),
    "input of the model too large": (
        edit_network(inputs=[5]),
        "the model's inputs: tensor index 5 of 5",
    ),
    "output of the model absent": (
        edit_network(outputs=[-1]),
        "the model's outputs: tensor index -1 of 5",
    ),
    "required input absent": (
        edit_operator(0, inputs=[IMAGE, -1, BIAS]),
        f"{CONV}: input 1 is absent",
    ),
    "first input absent": (
        edit_operator(0, inputs=[-1, WEIGHTS]),
        f"{CONV}: input 0 is absent",
    ),
    "no inputs": (
        edit_operator(0, inputs=[]),
        f"{CONV}: input 0 is absent",
    ),
    "too many inputs": (
        edit_operator(0, inputs=[IMAGE, WEIGHTS, BIAS, BIAS]),
        f"{CONV}: has 4 inputs, takes 3",
    ),
    "no outputs": (
        edit_operator(1, outputs=[]),
        "RESHAPE '': has 0 outputs, writes 1",
    ),
    "two outputs": (
        edit_operator(1, outputs=[FLAT, FLAT]),
        "RESHAPE 't4': writes 't4', which already has a value",
    ),
    "cycle": (
        both(edit_tensor(FLAT, shape=[1, 3, 3, 3]), edit_operator(0, code=ADD, inputs=[FLAT, FLAT], **ADD_OPTIONS)),
        "ADD 'features': reads 't4' before anything wrote it (a cycle, or nodes out of order)",
    ),
    "reads itself": (
        edit_operator(1, inputs=[FLAT]),
        "RESHAPE 't4': reads 't4' before anything wrote it (a cycle, or nodes out of order)",
    ),
    "written twice": (
        edit_operator(1, inputs=[FEATURES], outputs=[FEATURES]),
        "RESHAPE 'features': writes 'features', which already has a value",
    ),
    "input written": (
        edit_operator(1, outputs=[IMAGE]),
        "RESHAPE 'image': writes 'image', which already has a value",
    ),
    "constant input": (
        edit_network(inputs=[IMAGE, WEIGHTS]),
        "tensor 't1': is an input or a state and constant",
    ),
    "input twice": (
        edit_network(inputs=[IMAGE, IMAGE]),
        "graph 'net': names an input or a state twice",
    ),
    "nothing writes an output": (
        both(lambda net: net.tensor((1,)), edit_network(outputs=[FLAT, 5])),
        "graph 'net': nothing writes the output 't5'",
    ),
    "negative dimension": (
        edit_tensor(IMAGE, shape=[1, -4, 4, 2]),
        f"{CONV}: tensor 0 'image': the shape [1, -4, 4, 2] has a negative dimension",
    ),
    "shape overflows": (
        edit_tensor(IMAGE, shape=[2**31 - 1] * 4),
        f"{CONV}: tensor 0 'image': the shape {[2**31 - 1] * 4} takes more than 2 GiB",
    ),
    "too many dimensions": (
        edit_tensor(IMAGE, shape=[1] * 9),
        "tensor 0: 9 dimensions, more than 8",
    ),
    "shape does not multiply to the content": (
        edit_tensor(WEIGHTS, shape=[3, 2, 2, 3]),
        f"{CONV}: tensor 1 't1': holds 24 bytes, its shape [3, 2, 2, 3] needs 36",
    ),
    "missing buffer": (
        edit_tensor(WEIGHTS, content=b""),
        "CONV_2D 'features': reads 't1' before anything wrote it (a cycle, or nodes out of order)",
    ),
    "buffer index too large": (
        edit_tensor(WEIGHTS, buffer=77),
        "buffer 77: there are only 6",
    ),
    "content beyond the file": (
        edit_tensor(WEIGHTS, external=(10_000_000, 24)),
        "buffer 2: an offset or a length leads out of the file",
    ),
    "content longer than the file": (
        edit_tensor(WEIGHTS, external=(8, 2**62)),
        "buffer 2: an offset or a length leads out of the file",
    ),
    "scale nan": (
        edit_tensor(IMAGE, scales=[math.nan]),
        f"{CONV}: tensor 0 'image': every scale must be a positive number",
    ),
    "scale zero": (
        edit_tensor(WEIGHTS, scales=[0.1, 0.0, 0.1]),
        f"{CONV}: tensor 1 't1': every scale must be a positive number",
    ),
    "scale negative": (
        edit_tensor(FEATURES, scales=[-1.0]),
        f"{CONV}: tensor 3 'features': every scale must be a positive number",
    ),
    "scale infinite": (
        edit_tensor(FEATURES, scales=[math.inf]),
        f"{CONV}: tensor 3 'features': every scale must be a positive number",
    ),
    "scale too small to divide by": (
        edit_tensor(FEATURES, scales=[1e-38]),
        "CONV_2D 'features': cannot rescale by 5e+36, more than 2**30",
    ),
    "no scale": (
        edit_tensor(FEATURES, scales=[], zero_points=[]),
        "CONV_2D 'features': 'features' int8[1, 3, 3, 3] has no scale and zero point",
    ),
    "zero points missing": (
        edit_tensor(WEIGHTS, zero_points=[0, 0]),
        f"{CONV}: tensor 1 't1': 3 scales and 2 zero points",
    ),
    "zero point outside int8": (
        edit_tensor(IMAGE, zero_points=[128]),
        "CONV_2D 'features': 'image' int8[1, 4, 4, 2]: zero point 128 is outside int8",
    ),
    "weights not symmetric": (
        edit_tensor(WEIGHTS, zero_points=[0, 1, 0]),
        "CONV_2D 'features': the weights 't1' int8[3, 2, 2, 2] have a zero point that is not 0",
    ),
    "scales along a dimension that is not there": (
        edit_tensor(WEIGHTS, axis=4),
        "tensor 't1': 3 scales do not fit dimension 4 of [3, 2, 2, 2]",
    ),
    "scales along a negative dimension": (
        edit_tensor(WEIGHTS, axis=-1),
        "tensor 't1': 3 scales do not fit dimension -1 of [3, 2, 2, 2]",
    ),
    "activation with a scale per channel": (
        edit_tensor(IMAGE, scales=[0.1, 0.2], zero_points=[0, 0], axis=3),
        "CONV_2D 'features': 'image' int8[1, 4, 4, 2] must have one scale, has 2",
    ),
    "bias of another length": (
        edit_tensor(BIAS, shape=[2], content=bytes(8), scales=[], zero_points=[]),
        "CONV_2D 'features': the bias 't2' int32[2] does not fit 3 output channels",
    ),
    "bias of another type": (
        edit_tensor(BIAS, type=0, scales=[], zero_points=[]),
        "CONV_2D 'features': the bias 't2' float32[3] must be int32",
    ),
    "bias of another scale": (
        edit_tensor(BIAS, scales=[0.05, 0.2, 0.15]),
        (
            "CONV_2D 'features': the bias 't2' int32[3] has the scale 0.2, which should be that of the input times "
            "that of the weights, 0.1"
        ),
    ),
    "bias with a zero point": (
        edit_tensor(BIAS, zero_points=[0, 0, 1]),
        "CONV_2D 'features': the bias 't2' int32[3] has a zero point that is not 0",
    ),
    "weights of other channels": (
        edit_tensor(WEIGHTS, shape=[3, 2, 1, 4]),
        (
            "CONV_2D 'features': the weights 't1' int8[3, 2, 1, 4] are for 4 input channels, "
            "'image' int8[1, 4, 4, 2] has 2"
        ),
    ),
    "weights of another rank": (
        edit_tensor(WEIGHTS, shape=[3, 8]),
        f"{CONV}: the weights 't1' int8[3, 8] must have 4 dimensions",
    ),
    "output of another size": (
        edit_tensor(FEATURES, shape=[1, 4, 3, 3]),
        (
            "CONV_2D 'features': 'features' int8[1, 4, 3, 3] does not fit a filter of (2, 2) "
            "moving over 'image' int8[1, 4, 4, 2]"
        ),
    ),
    "output of other channels": (
        edit_tensor(FEATURES, shape=[1, 3, 3, 9]),
        "CONV_2D 'features': 'features' int8[1, 3, 3, 9] should have 3 channels",
    ),
    "output of another batch": (
        edit_tensor(FEATURES, shape=[2, 3, 3, 3]),
        "CONV_2D 'features': 'features' int8[2, 3, 3, 3] has another batch than 'image' int8[1, 4, 4, 2]",
    ),
    "reshape to other elements": (
        edit_tensor(FLAT, shape=[26]),
        "RESHAPE 't4': 'features' int8[1, 3, 3, 3] has 27 elements, 't4' int8[26] has 26",
    ),
    "stride zero": (
        edit_options(StrideH=0),
        f"{CONV}: filter (2, 2), stride (0, 1), dilation (1, 1): one is below 1",
    ),
    "stride negative": (
        edit_options(StrideW=-1),
        f"{CONV}: filter (2, 2), stride (1, -1), dilation (1, 1): one is below 1",
    ),
    "dilation zero": (
        edit_options(DilationWFactor=0),
        f"{CONV}: filter (2, 2), stride (1, 1), dilation (1, 0): one is below 1",
    ),
    "filter larger than the image": (
        edit_options(DilationHFactor=2**30),
        (
            "CONV_2D 'features': 'features' int8[1, 3, 3, 3] does not fit a filter of (2, 2) "
            "moving over 'image' int8[1, 4, 4, 2]"
        ),
    ),
    "padding neither SAME nor VALID": (
        edit_options(Padding=2),
        f"{CONV}: padding 2 is neither SAME nor VALID",
    ),
    "options of another operator": (
        edit_operator(0, options_tag=BuiltinOptions.SoftmaxOptions),
        f"{CONV}: its options are not Conv2DOptions",
    ),
    "no options": (
        edit_operator(0, options_kind=None),
        f"{CONV}: its options are not Conv2DOptions",
    ),
}  # fmt: skip


FILE = {
    "tensor index too large", "tensor index negative", "output index too large", "input of the model too large",
    "output of the model absent", "required input absent", "first input absent", "no inputs", "too many inputs",
    "two outputs", "cycle", "reads itself", "written twice", "input written", "constant input", "input twice",
    "nothing writes an output", "too many dimensions", "shape does not multiply to the content", "missing buffer",
    "buffer index too large", "content beyond the file", "content longer than the file",
    "scales along a dimension that is not there", "scales along a negative dimension", "options of another operator",
    "no options",
}  # fmt: skip
"""Mistakes for which the file is no model at all."""


@pytest.mark.parametrize("name", MISTAKES)
def test_one_mistake(name: str) -> None:
    edit, expected = MISTAKES[name]
    net = network()
    net.outputs = [FLAT]
    edit(net)
    assert (message if name in FILE else nonsense)(net.build()) == expected


def then(build: Callable[[Network, int], object], edit: Callable[[Network], object]) -> Callable[[Network, int], None]:
    def build_and_edit(net: Network, x: int) -> None:
        build(net, x)
        edit(net)

    return build_and_edit


ATTRIBUTES: dict[str, tuple[Callable[[Network, int], object], str]] = {
    "axis out of range": (
        then(lambda net, x: net.mean(x, [0]), edit_tensor(1, content=np.int32(4).tobytes())),
        "operator 0 (MEAN) writing 't2': axis 4 is not a dimension of 'x' float32[1, 4, 4, 2]",
    ),
    "axes as floats": (
        then(lambda net, x: net.mean(x, [0]), edit_tensor(1, type=0)),
        "operator 0 (MEAN) writing 't2': the axes 't1' float32[1] must be int32 or int64",
    ),
    "padding negative": (
        lambda net, x: net.pad(x, [(0, 0), (-1, 0), (0, 0), (0, 0)]),
        "PAD 't2': paddings ((0, 0), (-1, 0), (0, 0), (0, 0)) must not be negative",
    ),
    "paddings of another rank": (
        then(lambda net, x: net.pad(x, [(0, 0)] * 4), edit_tensor(1, shape=[3, 2], content=bytes(24))),
        "operator 0 (PAD) writing 't2': 6 paddings do not fit 'x' float32[1, 4, 4, 2]",
    ),
    "paddings that the output lacks": (
        then(lambda net, x: net.pad(x, [(0, 1)] * 4), edit_tensor(2, shape=[1, 4, 4, 2])),
        "PAD 't2': 't2' float32[1, 4, 4, 2] should have the shape [2, 5, 5, 3]",
    ),
    "pool of size zero": (
        then(lambda net, x: net.pool2d("MAX", x, (2, 2)), edit_options(FilterHeight=0)),
        "operator 0 (MAX_POOL_2D) writing 't1': filter (0, 2), stride (1, 1), dilation (1, 1): one is below 1",
    ),
    "beta nan": (
        lambda net, x: net.softmax(x, beta=math.nan),
        "SOFTMAX 't1': beta nan must be positive",
    ),
    "shapes that do not broadcast": (
        then(lambda net, x: net.add(net.input((1, 2)), x), edit_tensor(1, shape=[3])),
        "ADD 't2': 't1' float32[3] and 'x' float32[1, 4, 4, 2] do not broadcast",
    ),
    "rows that the weights do not fit": (
        then(
            lambda net, x: net.fully_connected(x, np.ones((2, 4), np.float32)),
            edit_tensor(1, shape=[2, 5], content=bytes(40)),
        ),
        (
            "FULLY_CONNECTED 't2': 'x' float32[1, 4, 4, 2] cannot be cut into rows of 5, "
            "as the weights 't1' float32[2, 5] ask"
        ),
    ),
    "depth multiplier that the weights do not fit": (
        then(
            lambda net, x: net.depthwise_conv2d(x, np.ones((1, 2, 2, 4), np.float32)),
            edit_options(DepthMultiplier=3),
        ),
        (
            "DEPTHWISE_CONV_2D 't2': the weights 't1' float32[1, 2, 2, 4] do not fit 'x' float32[1, 4, 4, 2] "
            "times a depth multiplier of 3"
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("build", "expected"), ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_wrong_attribute(build: Callable[[Network, int], None], expected: str) -> None:
    net = Network()
    build(net, net.input((1, 4, 4, 2), name="x"))
    assert nonsense(net.build()) == expected


def test_a_bool_that_is_neither() -> None:
    net = Network()
    x = net.input((2,), dtype="bool", name="x")
    net.operator("LOGICAL_AND", [x, net.constant(np.array([False, True]))], net.activation((2,), dtype="bool"))
    net.tensors[1].content = b"\x00\xfb"
    assert message(net.build()) == "tensor 't1': holds a byte that is neither false (0) nor true (1)"


def test_tensors_that_overlap() -> None:
    net = network()
    net.tensors += [TensorSpec("x" * 10_000, [1], 0)] * 3000
    data = net.build()
    assert len(data) < 50_000
    assert message(data) == "vectors: hold more than the file"


def test_more_tensors_than_any_network_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAXIMUM_COUNT", 4)
    assert message(network().build()) == "tensors: 5 of them, more than 4"
