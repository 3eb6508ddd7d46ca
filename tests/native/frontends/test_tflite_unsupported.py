"""Errors about valid models that use unsupported operators, types or variants: exit code 4."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tflite.ActivationFunctionType import ActivationFunctionType
from tflite.FullyConnectedOptionsWeightsFormat import FullyConnectedOptionsWeightsFormat
from tflite.TensorType import TensorType

from mlfbuild.core.errors import InputFileError, UnsupportedModelError
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.frontends.tflite.operators import operator_name
from support.refusals import Refusal, assert_tflite_refused, invalid
from support.tflite_builder import Network
from support.tflite_edits import Edit, computed, edit_options, edit_tensor

WEIGHTS = np.ones((3, 2, 2, 2), np.int8)


def check(net: Network, *expected: str) -> None:
    assert_tflite_refused(net.build(), *expected)


def test_unsupported_operators_are_all_named() -> None:
    net = Network()
    x = net.softmax(net.input((4,)))
    x = net.operator("MULTINOMIAL", [x], net.activation((4,), name="hidden"))
    x = net.operator("MULTINOMIAL", [x], net.activation((4,)))
    x = net.operator("STABLEHLO_ADD", [x, x], net.activation((4,), name="sum"))
    net.operator("CUSTOM", [x], net.activation((4,), name="boxes"))
    net.operators[-1].custom_code = "Convolution2DTransposeBias"
    names = "MULTINOMIAL, STABLEHLO_ADD, CUSTOM 'Convolution2DTransposeBias'"
    check(net, "operator-unsupported", "operator 1 (MULTINOMIAL) writing 'hidden'", names)


@pytest.mark.parametrize(
    ("code", "custom", "hint"), [("CUSTOM", "FlexErf", "SELECT_TF_OPS"), ("STABLEHLO_SORT", "", "StableHLO")]
)
def test_operators_of_other_programs_have_a_hint(code: str, custom: str, hint: str) -> None:
    net = Network()
    net.operator(code, [net.input((4,))], net.activation((4,)))
    net.operators[0].custom_code = custom
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(net.build(), "net", "net.tflite")
    assert (caught.value.code, hint in caught.value.hint) == ("operator-unsupported", True)


def every_reason(net: Network) -> list[tuple[str, str]]:
    """Return the code and the place of each reason why ``net`` is refused."""
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(net.build(), "net", "net.tflite")
    error = caught.value
    assert (error.code, error.place) == (error.problems[0].code, error.problems[0].place)
    assert str(error) == "\n".join(map(str, error.problems))
    return [(problem.code, problem.place.removeprefix("net.tflite: ")) for problem in error.problems]


def test_every_reason_is_reported_at_once() -> None:
    """Operators that are missing, variants, types, and tensors that break the rules of their operator."""
    net = Network()
    quantized_conv2d(net)
    net.tensors[0].type, net.tensors[1].type = TensorType.FLOAT32, TensorType.UINT8
    x = len(net.tensors) - 1
    x = net.operator("MULTINOMIAL", [x], net.activation((4,), name="hidden"))
    y = net.softmax(net.input((4,)))
    net.operators[-1].options["Beta"] = -1.0
    z = net.operator("CONCATENATION", [x, y], net.activation((8,)), "ConcatenationOptions", FusedActivationFunction=1)
    net.operator("ABS", [z], net.activation((8,), name="whole", dtype="int64"))
    net.tensors[0].signature = [1, -1, 4, 2]
    assert every_reason(net) == [
        ("shape-dynamic", "input 'image'"),
        ("operator-unsupported", "operator 1 (MULTINOMIAL) writing 'hidden'"),
        ("quantization-unsupported", "operator 0 (CONV_2D) writing 't3'"),
        ("operator-variant-unsupported", "operator 3 (CONCATENATION) writing 't7'"),
        ("type-unsupported", "operator 4 (ABS) writing 'whole'"),
        invalid("SOFTMAX 't6'"),
    ]


def test_a_shape_that_an_unsupported_operator_computes_is_no_reason_of_its_own() -> None:
    net = Network()
    shape = net.operator("MULTINOMIAL", [net.input((2,), dtype="int32")], net.tensor((2,), "int32", name="shape"))
    net.operator("FILL", [shape, net.constant(np.zeros((), np.float32))], net.activation((2, 2)))
    check(net, "operator-unsupported", "operator 0 (MULTINOMIAL) writing 'shape'", "MULTINOMIAL")


def test_a_text_shows_twenty_reasons() -> None:
    net = Network()
    for index in range(23):
        net.operator("ABS", [net.input((4,), dtype="int64")], net.activation((4,), name=f"y{index}", dtype="bool"))
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(net.build(), "net", "net.tflite")
    assert len(caught.value.problems) == 23
    assert len(str(caught.value).splitlines()) == 21 and "3 more" in str(caught.value)


@pytest.mark.parametrize(
    ("custom", "compiler"),
    [
        ("ethos-u", "Vela"),
        ("edgetpu-custom-op", "edgetpu_compiler"),
        ("NeutronGraph", "neutron-converter"),
        ("XC_conv2d_v2", "xcore-opt"),
        ("DISPATCH_OP", "LiteRT's compiler"),
    ],
)
def test_files_for_accelerators_name_the_program_that_wrote_them(custom: str, compiler: str) -> None:
    net = Network()
    x = net.operator("MULTINOMIAL", [net.input((4,))], net.activation((4,)))
    net.operator("CUSTOM", [x], net.activation((4,), name="part"))
    net.operators[-1].custom_code = custom
    check(net, "model-compiled-for-accelerator", f"operator 1 (CUSTOM {custom!r}) writing 'part'", compiler)


def test_unknown_operator_code() -> None:
    net = Network()
    net.reshape(net.input((4,)), (2, 2))
    net.operators[0].code = 5000
    check(net, "operator-unsupported", "operator 0 (code 5000) writing 't2'", "code 5000")


def quantized_conv2d(net: Network) -> None:
    image = net.input((1, 4, 4, 2), 0.5, name="image")
    net.conv2d(image, WEIGHTS, np.zeros(3, np.int32), weight_scales=[0.1], scale=1)


def edited(edit: Edit) -> Network:
    net = Network()
    quantized_conv2d(net)
    edit(net)
    return net


CONV = "operator 0 (CONV_2D) writing 't3'"
WEIGHTS_PLACE = f"{CONV}: tensor 1 't1'"


EDITS: dict[str, tuple[Edit, Refusal]] = {
    "int32 activations": (edit_tensor(0, type=TensorType.INT32), ("type-unsupported", CONV, "int32 of 'image'")),
    "int4 activations": (
        edit_tensor(0, type=TensorType.INT4), ("type-unsupported", f"{CONV}: tensor 0 'image'", "INT4"),
    ),
    "float16 weights": (edit_tensor(1, type=TensorType.FLOAT16), ("type-unsupported", WEIGHTS_PLACE, "FLOAT16")),
    "texts": (edit_tensor(3, type=TensorType.STRING), ("type-unsupported", f"{CONV}: tensor 3 't3'", "STRING")),
    "an unknown type": (edit_tensor(3, type=100), ("type-unsupported", f"{CONV}: tensor 3 't3'", "100")),
    "uint8 activations": (
        edit_tensor(0, type=TensorType.UINT8), ("quantization-unsupported", CONV, "mixes uint8 and int8"),
    ),
    "a uint8 result": (
        edit_tensor(3, type=TensorType.UINT8), ("quantization-unsupported", CONV, "mixes uint8 and int8"),
    ),
    "weights computed at run time": (computed(1), ("input-not-constant", CONV, "'t1' int8[3, 2, 2, 2]")),
    "sparse weights": (edit_tensor(1, is_sparse=True), ("weights-sparse", WEIGHTS_PLACE)),
    "another quantisation": (
        edit_tensor(1, has_custom_quantization=True), ("quantization-unsupported", WEIGHTS_PLACE),
    ),
    "scales of blocks": (
        edit_tensor(1, blocks=(1, -1, 2)), ("quantization-unsupported", WEIGHTS_PLACE, "block of numbers"),
    ),
    "a fused TANH": (
        edit_options(FusedActivationFunction=ActivationFunctionType.TANH),
        ("operator-variant-unsupported", CONV, "TANH"),
    ),
    "a fused SIGN_BIT": (
        edit_options(FusedActivationFunction=ActivationFunctionType.SIGN_BIT),
        ("operator-variant-unsupported", CONV, "SIGN_BIT"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "expected"), EDITS.values(), ids=EDITS)
def test_variants_of_a_convolution(edit: Edit, expected: Refusal) -> None:
    check(edited(edit), *expected)


def unary(name: str, dtype: str = "uint8", scale: float | None = None) -> Network:
    net = Network()
    x = net.operator("RELU", [net.input((4,), 0.5, 7, dtype="uint8")], net.activation((4,), 0.5, 7, dtype="uint8"))
    net.operator(name, [x], net.activation((4,), scale, dtype=dtype))
    return net


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (unary("ABS", scale=0.5), "LiteRT has no uint8 kernel of ABS"),
        (unary("CAST", "float32"), "stored numbers"),
        (unary("QUANTIZE", "int32", 0.5), "uint8 to int32"),
    ],
    ids=["ABS", "CAST", "QUANTIZE"],
)
def test_operators_that_nothing_defines_for_uint8(net: Network, words: str) -> None:
    name = operator_name(net.operators[1].code)
    check(net, "quantization-unsupported", f"operator 1 ({name}) writing 't2'", words)


def test_uint8_images_that_float32_resizes_inexactly() -> None:
    net = Network()
    image, size = net.input((1, 3, 3, 1), 0.5, 7, dtype="uint8"), net.integers([7, 7])
    options = {"AlignCorners": False, "HalfPixelCenters": False}
    output = net.activation((1, 7, 7, 1), 0.5, 7, dtype="uint8")
    net.operator("RESIZE_BILINEAR", [image, size], output, "ResizeBilinearOptions", **options)
    check(net, "operator-invalid", "RESIZE_BILINEAR 't2'", "float32", "power of two")


def test_integers_that_are_not_quantised() -> None:
    net = Network()
    net.softmax(net.tensor((4,), "int32", name="indices"))
    net.inputs = [0]
    net.tensors[1].type = TensorType.INT32
    check(net, "type-unsupported", "operator 0 (SOFTMAX) writing 't1'", "int32 of 'indices'")


def test_hybrid_model() -> None:
    """Layers that are not compiled: LiteRT has none of uint8, and no DEPTHWISE_CONV_2D of int4."""
    net = edited(edit_tensor(0, type=TensorType.FLOAT32))
    check(net, "operator-invalid", "HYBRID_CONV_2D 't3'", "int8", "float32")
    net.tensors[1].type = TensorType.UINT8
    check(net, "quantization-unsupported", CONV, "'t1' uint8[3, 2, 2, 2] over float32")


def test_hybrid_batch_matmul() -> None:
    net = Network()
    weights = net.tensor((8, 4), "int8", data=np.ones((8, 4), np.int8), scales=[0.1], zero_points=[0], name="w")
    source, output = net.input((8, 3)), net.activation((3, 4), name="y")
    net.operator("BATCH_MATMUL", [source, weights], output, "BatchMatMulOptions", AdjX=True)
    check(net, "quantization-unsupported", "operator 0 (BATCH_MATMUL) writing 'y'", "'w' int8[8, 4]", "adj_x")


@pytest.mark.parametrize("int4", [True, False])
def test_hybrid_depthwise_model(int4: bool) -> None:
    net, weights = Network(), np.ones((1, 2, 2, 2), np.int8)
    image = net.input((1, 4, 4, 2))
    net.depthwise_conv2d(image, weights, weight_scales=[0.1, 0.2] if int4 else [0.1])
    if int4:
        net.tensors[1].type, net.tensors[1].content = TensorType.INT4, bytes([17] * 4)
        check(net, "quantization-unsupported", "operator 0 (DEPTHWISE_CONV_2D) writing 't2'", "int4 weights")
    else:
        check(net, "operator-invalid", "HYBRID_DEPTHWISE_CONV_2D 't2'", "need a scale for each channel")


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        ({"blocks": (2, -1, 48)}, invalid("48 weights")),
        ({"blocks": (0, -1, 32)}, invalid("float16")),
        ({"blocks": (2, 2, 32)}, ("quantization-unsupported", "zero points")),
        ({"activation": 1}, ("quantization-unsupported", "fused activation")),
        ({"outputs": 3}, ("quantization-unsupported", "4 outputs")),
    ],
)
def test_scales_of_blocks(change: dict[str, Any], facts: tuple[str, str]) -> None:
    net, outputs = Network(), change.get("outputs", 4)
    source = net.input((1, 64), name="x")
    weights = net.tensor((outputs, 64), "int4", data=np.zeros(outputs * 32, np.uint8), name="w")
    net.tensor((outputs, 2), "float16", data=np.ones((outputs, 2), np.float16))
    net.tensors[weights].blocks = change.get("blocks", (2, -1, 32))
    options = {"FusedActivationFunction": change.get("activation", 0)}
    net.operator(
        "FULLY_CONNECTED", [source, weights], net.activation((1, outputs), name="y"), "FullyConnectedOptions", **options
    )
    check(net, facts[0], "operator 0 (FULLY_CONNECTED) writing 'y'", "'w' int8", facts[1])


def test_tensors_of_uint8_are_named_as_in_the_file() -> None:
    net = Network()
    image = net.input((1, 4), 0.1, 3, name="image", dtype="uint8")
    other = net.input((1, 5), 0.1, 3, name="other", dtype="uint8")
    net.operator("ADD", [image, other], net.activation((1, 4), 0.1, 3, name="sum", dtype="uint8"), "AddOptions")
    check(net, "operator-invalid", "ADD 'sum'", "'image' uint8[1, 4]", "'other' uint8[1, 5]")


def test_tensor_without_elements() -> None:
    net = Network()
    net.reshape(net.input((2, 0), name="nothing"), (0, 2), with_shape_tensor=False)
    check(net, "tensor-empty", "input 'nothing'", "[2, 0]")
    net = Network()
    nothing = net.operator(
        "SLICE", [net.input((2, 2)), net.integers([2, 0]), net.integers([0, 2])], net.activation((0, 2))
    )
    net.operator("MEAN", [nothing, net.integers([0])], net.activation((2,)), "ReducerOptions")
    check(net, "tensor-empty", "operator 1 (MEAN) writing 't5'", "[0, 2]")


def test_dynamic_input() -> None:
    net = Network()
    net.softmax(net.input((1, 1, 3), name="sequence"))
    net.tensors[0].signature = [-1, -1, 3]
    check(net, "shape-dynamic", "input 'sequence'", "[-1, -1, 3]")


def test_grouped_convolution() -> None:
    net = Network()
    net.conv2d(net.input((1, 4, 4, 6), 0.5, name="image"), WEIGHTS, weight_scales=[0.1], scale=1)
    place, weights = "operator 0 (CONV_2D) writing 't2'", "'t1' int8[3, 2, 2, 2]"
    check(net, "operator-variant-unsupported", place, "grouped", weights, "'image' int8[1, 4, 4, 6]")


def test_shuffled_weights() -> None:
    net = Network()
    net.fully_connected(net.input((1, 4)), np.ones((2, 4), np.float32))
    net.operators[0].options["WeightsFormat"] = FullyConnectedOptionsWeightsFormat.SHUFFLED4x16INT8
    check(net, "operator-variant-unsupported", "operator 0 (FULLY_CONNECTED) writing 't2'", "shuffled")


@pytest.mark.parametrize(
    ("build", "operator", "fact"),
    [
        (lambda net, x: net.reshape(x, (2, 2)), "RESHAPE", "the new shape 't1' int32[2]"),
        (lambda net, x: net.mean(x, [0]), "MEAN", "the axes 't1' int32[1]"),
        (lambda net, x: net.pad(x, [(1, 1)]), "PAD", "the paddings 't1' int32[1, 2]"),
    ],
)
def test_attributes_computed_at_run_time(build: Callable[[Network, int], object], operator: str, fact: str) -> None:
    net = Network()
    build(net, net.input((4,)))
    computed(1)(net)
    check(net, "input-not-constant", f"operator 0 ({operator}) writing 't2'", fact)


def contradicting_sum(net: Network, x: int) -> int:
    """Add an ADD whose output has another shape than its inputs."""
    return net.operator("ADD", [x, x], net.activation((7,)), "AddOptions")


def test_only_damaged_files_are_to_be_copied() -> None:
    net = Network()
    contradicting_sum(net, net.input((4,)))
    data = net.build()
    with pytest.raises(UnsupportedModelError) as contradicting:
        parse_tflite(data, "net", "net")
    with pytest.raises(InputFileError) as cut:
        parse_tflite(data[: len(data) // 2], "net", "net")
    assert (contradicting.value.code, cut.value.code) == invalid("tflite-malformed")
    assert (["copy" in error.value.hint for error in (contradicting, cut)]) == [False, True]


def test_errors_that_follow_are_not_listed() -> None:
    """The sums do not fit their outputs because the size of the input is free, or the tensor between is not known."""
    free = Network()
    x = free.input((1, 4))
    free.tensors[x].signature = [1, -1]
    contradicting_sum(free, x)
    lacking = Network()
    contradicting_sum(lacking, lacking.operator("DENSIFY", [lacking.input((4,))], lacking.activation((4,))))
    for net, code in ((free, "shape-dynamic"), (lacking, "operator-unsupported")):
        with pytest.raises(UnsupportedModelError) as caught:
            parse_tflite(net.build(), "net", "net")
        assert (caught.value.code, caught.value.problems) == (code, ())
