"""Sound models beyond what is supported: exit code 4, naming operator, tensor and what is supported."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tflite.ActivationFunctionType import ActivationFunctionType
from tflite.FullyConnectedOptionsWeightsFormat import FullyConnectedOptionsWeightsFormat
from tflite.TensorType import TensorType

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.frontends.tflite import parse_tflite
from mlfbuild.frontends.tflite.operators import SUPPORTED, operator_name
from support.refusals import without_advice
from support.tflite_builder import Network

NAMES = ", ".join(sorted(operator_name(code) for code in SUPPORTED))
WEIGHTS = np.ones((3, 2, 2, 2), np.int8)


def message(net: Network) -> str:
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(net.build(), "net", "net.tflite")
    text = str(caught.value)
    assert "\n" not in text
    assert text.startswith("net.tflite: ")
    return without_advice(text.removeprefix("net.tflite: "))


def test_operators_outside_the_list_are_all_named() -> None:
    net = Network()
    x = net.softmax(net.input((4,)))
    x = net.operator("RFFT2D", [x], net.activation((4,), name="hidden"))
    x = net.operator("RFFT2D", [x], net.activation((4,)))
    x = net.operator("STABLEHLO_ADD", [x, x], net.activation((4,), name="sum"))
    net.operator("CUSTOM", [x], net.activation((4,), name="boxes"))
    net.operators[-1].custom_code = "TFLite_Detection_PostProcess"
    assert message(net) == (
        "operator 1 (RFFT2D) writing 'hidden'; operator 3 (STABLEHLO_ADD) writing 'sum'; "
        "operator 4 (CUSTOM 'TFLite_Detection_PostProcess') writing 'boxes': not supported; supported are " + NAMES
    )


def test_names_of_supported_operators() -> None:
    assert NAMES.startswith("ABS, ADD, ")
    assert "CONV_2D, " in NAMES
    assert "RFFT2D" not in NAMES


def test_an_operator_of_the_future() -> None:
    net = Network()
    net.reshape(net.input((4,)), (2, 2))
    net.operators[0].code = 5000
    assert message(net) == f"operator 0 (code 5000) writing 't2': not supported; supported are {NAMES}"


def test_several_subgraphs() -> None:
    net = Network()
    net.softmax(net.input((4,)))
    net.subgraphs = 2
    assert message(net) == (
        "has 2 subgraphs, and no CALL_ONCE names subgraph 1; supported are the first one and those that initialise its "
        "variables"
    )


def quantized_conv2d(net: Network) -> None:
    image = net.input((1, 4, 4, 2), 0.5, name="image")
    net.conv2d(image, WEIGHTS, np.zeros(3, np.int32), weight_scales=[0.1], scale=1)


def edited(build: Callable[[Network], object], edit: Callable[[Network], object]) -> Network:
    net = Network()
    build(net)
    edit(net)
    return net


CONV = "operator 0 (CONV_2D) writing 't3'"


TYPES = "bool, float32, int16, int32, int64, int8, uint8"


@pytest.mark.parametrize(
    ("tensor", "tag", "expected"),
    [
        (0, TensorType.INT32, f"{CONV}: type int32 of 'image'; supported are int8, int16 and float32"),
        (1, TensorType.INT4, f"{CONV}: tensor 1 't1' has type INT4; supported are {TYPES}"),
        (1, TensorType.FLOAT16, f"{CONV}: tensor 1 't1' has type FLOAT16; supported are {TYPES}"),
        (3, TensorType.STRING, f"{CONV}: tensor 3 't3' has type STRING; supported are {TYPES}"),
        (3, 100, f"{CONV}: tensor 3 't3' has type 100; supported are {TYPES}"),
    ],
)
def test_other_types(tensor: int, tag: int, expected: str) -> None:
    net = edited(quantized_conv2d, lambda net: setattr(net.tensors[tensor], "type", tag))
    assert message(net) == expected


@pytest.mark.parametrize(("tensor", "name"), [(0, "image"), (3, "t3")])
def test_legacy_quantisation(tensor: int, name: str) -> None:
    net = edited(quantized_conv2d, lambda net: setattr(net.tensors[tensor], "type", TensorType.UINT8))
    assert message(net) == (
        f"{CONV}: type uint8 of {name!r}: legacy uint8 quantisation is not supported; convert the model again with "
        "full integer quantisation, which is int8"
    )


def test_integers_that_are_not_quantised() -> None:
    net = Network()
    net.softmax(net.tensor((4,), "int32", name="indices"))
    net.inputs = [0]
    net.tensors[1].type = TensorType.INT32
    assert message(net) == (
        "operator 0 (SOFTMAX) writing 't1': type int32 of 'indices'; supported are int8, int16 and float32"
    )


def test_hybrid_model() -> None:
    net = edited(quantized_conv2d, lambda net: setattr(net.tensors[0], "type", TensorType.FLOAT32))
    assert message(net) == (
        f"{CONV}: hybrid model ('t1' int8[3, 2, 2, 2] over float32) is not supported; quantise the activations too"
    )


def test_weights_computed_at_run_time() -> None:
    def edit(net: Network) -> None:
        net.tensors[1].content = b""
        net.inputs.append(1)

    net = edited(quantized_conv2d, edit)
    assert message(net) == f"{CONV}: weights and bias must be constant, 't1' int8[3, 2, 2, 2] is not"


@pytest.mark.parametrize(
    ("field", "what"),
    [
        ("is_sparse", "is sparse"),
        ("has_custom_quantization", "has a custom quantisation"),
    ],
)
def test_variants_of_tensors(field: str, what: str) -> None:
    net = edited(quantized_conv2d, lambda net: setattr(net.tensors[1], field, True))
    assert message(net) == f"{CONV}: tensor 1 't1' {what}, which is not supported"


def test_tensor_without_elements() -> None:
    net = Network()
    net.reshape(net.input((2, 0), name="nothing"), (0, 2), with_shape_tensor=False)
    assert message(net) == (
        "operator 0 (RESHAPE) writing 't1': tensor 0 'nothing' has no elements (shape [2, 0]), which is not supported"
    )


def test_dynamic_input() -> None:
    net = Network()
    net.softmax(net.input((1, 1, 3), name="sequence"))
    net.tensors[0].signature = [-1, -1, 3]
    assert message(net) == ("input 'sequence' has the dynamic shape [-1, -1, 3]; convert the model with a fixed one")


@pytest.mark.parametrize("activation", ["TANH", "SIGN_BIT"])
def test_fused_activation(activation: str) -> None:
    code = getattr(ActivationFunctionType, activation)
    net = edited(quantized_conv2d, lambda net: net.operators[0].options.update(FusedActivationFunction=code))
    assert message(net) == (
        f"{CONV}: fused activation {activation} is not supported; supported are NONE, RELU, RELU_N1_TO_1, RELU6"
    )


def test_grouped_convolution() -> None:
    net = Network()
    net.conv2d(net.input((1, 4, 4, 6), 0.5, name="image"), WEIGHTS, weight_scales=[0.1], scale=1)
    assert message(net) == (
        "operator 0 (CONV_2D) writing 't2': grouped convolution ('t1' int8[3, 2, 2, 2] over 'image' int8[1, 4, 4, 6]) "
        "is not supported"
    )


def test_shuffled_weights() -> None:
    net = Network()
    net.fully_connected(net.input((1, 4)), np.ones((2, 4), np.float32))
    net.operators[0].options["WeightsFormat"] = FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8
    assert message(net) == "operator 0 (FULLY_CONNECTED) writing 't2': shuffled weights are not supported"


@pytest.mark.parametrize(
    ("build", "what"),
    [
        (lambda net, x: net.reshape(x, (2, 2)), "RESHAPE) writing 't2': the new shape 't1' int32[2]"),
        (lambda net, x: net.mean(x, [0]), "MEAN) writing 't2': the axes 't1' int32[1]"),
        (lambda net, x: net.pad(x, [(1, 1)]), "PAD) writing 't2': the paddings 't1' int32[1, 2]"),
    ],
)
def test_attributes_computed_at_run_time(build: Callable[[Network, int], object], what: str) -> None:
    net = Network()
    build(net, net.input((4,)))
    net.tensors[1].content = b""
    net.inputs.append(1)
    assert message(net) == f"operator 0 ({what} must be constant"
