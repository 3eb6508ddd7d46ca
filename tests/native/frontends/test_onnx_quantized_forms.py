"""Quantised networks in the forms that onnxruntime's quantize_static writes: types, zero points and operators."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph import DType, Graph, ops
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.native.passes import run_passes
from support.host_c import assert_many_on_host
from support.native import compile_network
from support.onnx_models import QuantizedNetwork, Scale, reference
from support.onnx_quantized import RANDOM, Array, assert_within_a_step, check, integers, values_of

pytestmark = pytest.mark.usefixtures("same_numbers")

MICROSOFT = "com.microsoft"
OPSET = 21
"""The first with pairs of int16 and uint16."""
X, Y = Scale(0.05, 100), Scale(0.06, 90)


def real(stored: Array, scale: Scale) -> Array:
    """Return the numbers that ``stored`` represents."""
    return (stored.astype(np.float64) - scale.zero_point) * np.float64(np.float32(scale.scale))


def stored(numbers: Array, scale: Scale) -> Array:
    """Return quantised ``numbers``."""
    limits = np.iinfo(scale.dtype)
    rounded = np.rint(numbers / np.float64(np.float32(scale.scale))) + scale.zero_point
    return np.clip(rounded, limits.min, limits.max).astype(scale.dtype)


def evaluated(network: QuantizedNetwork, feeds: dict[str, Array], opset: int = OPSET) -> tuple[Graph, list[Array]]:
    """Return the graph of ``network``, and its outputs in numpy."""
    graph = parse_onnx(network.bytes(opset, domains=[MICROSOFT]), "net", "net.onnx")
    values = evaluate(graph, feeds)
    return graph, [values[name] for name in graph.outputs]


def operators(graph: Graph) -> list[str]:
    """Return the names of the operators that the compiler keeps."""
    return [node.operator.name for node in run_passes(graph).nodes]


def floats(graph: Graph) -> set[str]:
    """Return the operators that compute float32."""
    return {
        node.operator.name
        for node in graph.nodes
        if graph.outputs_of(node)[0].dtype is DType.FLOAT32
        and not isinstance(node.operator, ops.Dequantize | ops.Transpose | ops.Reshape)
    }


def assert_integers(network: QuantizedNetwork, feeds: dict[str, Array], wanted: Array, opset: int = OPSET) -> None:
    """Check that ``network`` computes ``wanted`` within a step, and without float32."""
    graph, made = evaluated(network, feeds, opset)
    assert_within_a_step(made, [wanted])
    assert not floats(graph)


# Operators of com.microsoft ------------------------------------------------------------------------------------------


def microsoft(operator: str, names: Sequence[str], rank: int, inputs: dict[str, tuple[int, ...]], **attributes: Any):
    network = QuantizedNetwork()
    for name, shape in inputs.items():
        element = TensorProto.BOOL if name == "c" else TensorProto.UINT8
        network.inputs.append(helper.make_tensor_value_info(name, element, shape))
    parameters = {"x": network.parameters("x", X), "y": network.parameters("y", X), "z": network.parameters("z", Y)}
    words = [word for name in names for word in ([name, *parameters[name]] if name in "xy" else [name])]
    network.add(operator, [*words, *parameters["z"]], "out", domain=MICROSOFT, **attributes)
    network.output("out", rank)
    return network


@pytest.mark.parametrize("zero_point", [128, 77])
@pytest.mark.parametrize("form", ["transposed", "per column", "float32"])
def test_qgemm_is_a_matrix_product_with_a_bias_in_steps_of_the_product(form: str, zero_point: int) -> None:
    network, weights = QuantizedNetwork(), integers((6, 4), "uint8")
    network.inputs.append(helper.make_tensor_value_info("x", TensorProto.UINT8, (3, 6)))
    scales: Any = [0.01, 0.02, 0.015, 0.01] if form == "per column" else 0.01
    w = Scale(scales, zero_point)
    bias = RANDOM.integers(-900, 900, 4).astype(np.int32)
    network.constants |= {"w": weights.T if form == "transposed" else weights, "b": bias}
    target = Scale(0.5, 100)
    words = ["x", *network.parameters("x", X), "w", *network.parameters("w", w), "b"]
    words += [] if form == "float32" else network.parameters("y", target)
    network.add("QGemm", words, "y", domain=MICROSOFT, transB=int(form == "transposed"), alpha=1.0)
    network.output("y", 2, "float32" if form == "float32" else "uint8")
    x = integers((3, 6), "uint8")
    graph, (made,) = evaluated(network, {"x": x})
    steps = np.float32(X.scale) * np.asarray(scales, np.float32)
    product = real(x, X) @ ((weights.astype(np.float64) - zero_point) * np.asarray(scales)) + bias * steps
    if form == "float32":
        np.testing.assert_allclose(made, product, rtol=1e-5, atol=1e-5)
    else:
        assert_within_a_step([made], [stored(product, target)])
        assert not floats(graph)


def test_qlinear_softmax() -> None:
    network = QuantizedNetwork()
    network.inputs.append(helper.make_tensor_value_info("x", TensorProto.UINT8, (3, 9)))
    target = Scale(1 / 256, 0)
    words = ["x", *network.parameters("x", X), *network.parameters("y", target)]
    network.add("QLinearSoftmax", words, "y", domain=MICROSOFT, axis=-1, opset=13)
    network.output("y", 2)
    x = integers((3, 9), "uint8")
    powers = np.exp(real(x, X))
    assert_integers(network, {"x": x}, stored(powers / powers.sum(axis=1, keepdims=True), target))


def test_qlinear_reduce_mean() -> None:
    network = microsoft("QLinearReduceMean", "x", 2, {"x": (2, 3, 4, 5)}, axes=[2, 3], keepdims=0)
    x = integers((2, 3, 4, 5), "uint8")
    assert_integers(network, {"x": x}, stored(real(x, X).mean(axis=(2, 3)), Y))


def test_qlinear_where() -> None:
    network = microsoft("QLinearWhere", "cxy", 2, {"c": (4, 5), "x": (4, 5), "y": (1, 5)})
    feeds = {
        "c": RANDOM.integers(0, 2, (4, 5)).astype(bool),
        "x": integers((4, 5), "uint8"),
        "y": integers((1, 5), "uint8"),
    }
    assert_integers(network, feeds, stored(np.where(feeds["c"], real(feeds["x"], X), real(feeds["y"], X)), Y))


def test_pairs_of_com_microsoft_are_those_of_onnx() -> None:
    """Before opset 21, quantize_static writes pairs of int16 in this domain."""
    network = QuantizedNetwork()
    network.inputs.append(helper.make_tensor_value_info("x", TensorProto.INT16, (4, 5)))
    source, target = Scale(0.001, 0, "int16"), Scale(0.002, 0, "int16")
    network.add("DequantizeLinear", ["x", *network.parameters("x", source)], "r", domain=MICROSOFT)
    network.add("Relu", ["r"], "s")
    network.add("QuantizeLinear", ["s", *network.parameters("y", target)], "y", domain=MICROSOFT)
    network.output("y", 2, "int16")
    x = integers((4, 5), "int16")
    assert_integers(network, {"x": x}, stored(np.maximum(real(x, source), 0), target), opset=13)


# Weights -------------------------------------------------------------------------------------------------------------


def weighted(operator: str, zero_point: Any, *, group: int = 1, dilation: int = 1) -> QuantizedNetwork:
    """Return a network of one layer whose uint8 weights have ``zero_point``, or one for each output channel."""
    network, several = QuantizedNetwork(), not isinstance(zero_point, int)
    shape = {"Conv": (4, 4 // group, 3, 3), "ConvTranspose": (4, 4, 3, 3), "Gemm": (6, 4), "MatMul": (6, 4)}[operator]
    x = network.input("x", (1, 4, 7, 6) if len(shape) == 4 else (3, 6), X)
    axis = 0 if operator == "Conv" else 1
    scale = Scale([0.01, 0.02, 0.015, 0.01] if several else 0.01, 0, axis=axis)
    network.constants["w"] = np.concatenate([integers(shape, "uint8").reshape(-1)[:-2], [0, 255]]).astype(np.uint8)
    network.constants["w"] = network.constants["w"].reshape(shape)
    w = network.dequantized("w", scale)
    network.constants["w_dq_zero_point"] = np.asarray(zero_point, np.uint8)
    attributes: dict[str, Any] = {}
    if operator == "Conv":
        attributes = {"group": group, "dilations": [dilation] * 2, "pads": [dilation] * 4, "strides": [2, 1]}
    network.add(operator, [x, w], "y", **attributes)
    network.output(network.quantized("y", Scale(0.4, 120)), len(shape))
    return network


ZERO_POINTS = [128, 141, 0, 255, (131, 90, 128, 255)]


@pytest.mark.parametrize("zero_point", ZERO_POINTS, ids=str)
@pytest.mark.parametrize("operator", ["Conv", "Gemm", "MatMul", "ConvTranspose"])
def test_uint8_weights_with_any_zero_point(operator: str, zero_point: Any) -> None:
    check(weighted(operator, zero_point))


@pytest.mark.parametrize("zero_point", ZERO_POINTS, ids=str)
@pytest.mark.parametrize("group", [2, 4])
def test_uint8_weights_of_groups_with_any_zero_point(group: int, zero_point: Any) -> None:
    check(weighted("Conv", zero_point, group=group))


def test_dilated_depthwise_weights_that_int8_cannot_hold_compute_in_float32() -> None:
    check(weighted("Conv", 0, group=4, dilation=2), floats=True)


# int16 ---------------------------------------------------------------------------------------------------------------

CENTRED = [("int16", 0), ("uint16", 1 << 15)]
OFF_CENTRE = [("int16", -(1 << 15)), ("int16", 9000), ("int16", -9000), ("uint16", 0), ("uint16", 40000)]


def sixteen(dtype: str, zero_point: int, build: Callable[[QuantizedNetwork, str], str], shape: tuple[int, ...]):
    """Return a network of ``build`` with a float32 input and output around 16-bit pairs, and the output's step."""
    network, step = QuantizedNetwork(), 1e-4
    network.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
    x = network.requantized("x", Scale(step, zero_point, dtype))
    y = network.requantized(build(network, x), Scale(step * 3, zero_point, dtype))
    network.outputs.append(helper.make_tensor_value_info(y, TensorProto.FLOAT, [None] * len(shape)))
    return network, step * 3


def _convolution(network: QuantizedNetwork, x: str) -> str:
    weights = RANDOM.integers(-127, 128, (4, 2, 3, 3)).astype(np.int8)
    w = network.weights("w", weights, Scale([0.005, 0.003, 0.004, 0.006], 0, "int8"))
    network.constants["b"] = RANDOM.normal(size=4).astype(np.float32)
    return network.add("Conv", [x, w, "b"], "c", pads=[1] * 4, group=2)


def _gemm(network: QuantizedNetwork, x: str) -> str:
    w = network.weights("w", RANDOM.integers(0, 256, (5, 6)), Scale(0.004, 140))
    return network.add("Gemm", [network.add("Flatten", [x], "flat"), w], "c", transB=1)


def _batch(network: QuantizedNetwork, x: str) -> str:
    names = []
    for name, low in (("scale", -1.5), ("bias", -1.0), ("mean", -1.0), ("variance", 0.5)):
        network.constants[name] = RANDOM.uniform(low, 2.0, 4).astype(np.float32)
        names.append(name)
    return network.add("BatchNormalization", [x, *names], "c")


SIXTEEN: dict[str, tuple[Callable[[QuantizedNetwork, str], str], tuple[int, ...]]] = {
    "Conv": (_convolution, (1, 4, 6, 5)),
    "Gemm": (_gemm, (3, 6)),
    "BatchNormalization": (_batch, (1, 4, 6, 5)),
    "Add": (lambda network, x: network.add("Add", [x, x], "c"), (3, 6)),
    "Mul": (lambda network, x: network.add("Mul", [x, x], "c"), (3, 6)),
    "Relu": (lambda network, x: network.add("Relu", [x], "c"), (3, 6)),
    "HardSigmoid": (lambda network, x: network.add("HardSigmoid", [x], "c", alpha=1 / 6, beta=0.5), (3, 6)),
    "GlobalAveragePool": (lambda network, x: network.add("GlobalAveragePool", [x], "c"), (1, 4, 6, 5)),
    "AveragePool": (lambda network, x: network.add("AveragePool", [x], "c", kernel_shape=[2, 2]), (1, 4, 6, 5)),
    "Sigmoid": (lambda network, x: network.add("Sigmoid", [x], "c"), (3, 6)),
}


@pytest.mark.parametrize(("dtype", "zero_point"), [*CENTRED, *OFF_CENTRE])
@pytest.mark.parametrize("operator", SIXTEEN)
def test_pairs_of_16_bits_use_the_kernels_of_int16(operator: str, dtype: str, zero_point: int) -> None:
    """The result is within two steps, and three if the zero point requires a larger scale; it saturates in the same
    way.

    The input is then also quantised with a larger scale, which adds a step.
    """
    build, shape = SIXTEEN[operator]
    network, step = sixteen(dtype, zero_point, build, shape)
    x = RANDOM.normal(size=shape).astype(np.float32) * 5
    graph, (made,) = evaluated(network, {"x": x})
    wanted = reference(network.bytes(OPSET), {"x": x})[0]
    allowed = 2 if (dtype, zero_point) in CENTRED else 4
    assert np.abs(made - wanted).max() <= (allowed + 0.01) * step
    assert floats(graph) == set()


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
@pytest.mark.parametrize("operator", ["Conv", "Gemm", "BatchNormalization"])
def test_layers_of_16_bits_equal_the_evaluator(operator: str, dtype: str) -> None:
    """Apart from sums close to the middle of two steps, if the zero point is in the middle of the range."""
    build, shape = SIXTEEN[operator]
    shape = (shape[0] * 50, *shape[1:])
    network, step = sixteen(dtype, dict(CENTRED)[dtype], build, shape)
    x = RANDOM.uniform(-3, 3, shape).astype(np.float32)
    _, (made,) = evaluated(network, {"x": x})
    steps = np.rint(np.abs(made - reference(network.bytes(OPSET), {"x": x})[0]) / step)
    assert steps.max() <= 1
    assert (steps == 1).mean() < 0.01


def test_layers_whose_sums_exceed_32_bits_stay_in_integers() -> None:
    network = QuantizedNetwork()
    x = network.input("x", (1, 600), Scale(1e-4, 0, "int16"))
    w = network.weights("w", np.full((5, 600), 127), Scale(0.004, 0, "int8"))
    network.add("Gemm", [x, w], "c", transB=1)
    network.output(network.quantized("c", Scale(3e-3, 0, "int16")), 2, "int16")
    graph, _, made, wanted = values_of(network.bytes(OPSET))
    assert_within_a_step(made, wanted, steps=2)
    assert DType.FLOAT32 not in {tensor.dtype for tensor in graph.tensors.values()}


@pytest.mark.parametrize(("dtype", "zero_point", "noted"), [("int16", 0, False), ("int16", 9000, True)])
def test_a_note_names_tensors_of_16_bits_with_a_larger_scale(dtype: str, zero_point: int, noted: bool) -> None:
    network, _ = sixteen(dtype, zero_point, *SIXTEEN["Gemm"])
    notes = parse_onnx(network.bytes(OPSET), "net", "net.onnx").notes
    assert any("ActivationSymmetric" in note for note in notes) == noted


@pytest.mark.parametrize(("function", "interpolated"), [("Tanh", True), ("HardSwish", False)])
def test_a_function_of_int16_is_a_table_if_interpolation_is_exact_enough(function: str, interpolated: bool) -> None:
    """A kink between two entries of the table, as that of HardSwish, is not."""
    network, _ = sixteen("int16", 0, lambda network, x: network.add(function, [x], "c"), (3, 6))
    graph, _ = evaluated(network, {"x": np.zeros((3, 6), np.float32)})
    assert ("LOOKUP" in operators(graph)) == interpolated
    assert bool(floats(graph)) != interpolated


# Tables of int8 ------------------------------------------------------------------------------------------------------


def hard_swish(*, paired: bool) -> QuantizedNetwork:
    """Return x * HardSigmoid(x), as PyTorch exports it, with a pair around each operator if ``paired``."""
    network = QuantizedNetwork()
    x = network.input("x", (1, 256), Scale(0.05, 128))
    gate = network.add("HardSigmoid", [x], "gate", alpha=1 / 6, beta=0.5)
    gate = network.requantized(gate, Scale(1 / 255, 0)) if paired else gate
    network.add("Mul", [x, gate], "y")
    network.output(network.quantized("y", Scale(0.03, 20)), 2)
    return network


@pytest.mark.parametrize("paired", [False, True])
def test_the_product_with_hard_sigmoid_is_one_table(paired: bool) -> None:
    graph = check(hard_swish(paired=paired))
    assert operators(graph).count("LOOKUP") == 1
    assert set(operators(graph)) == {"QUANTIZE", "LOOKUP"}  # the first and the last convert uint8


def test_a_table_keeps_results_that_others_read() -> None:
    """The gate is also an output, so both are tables of the input."""
    network = hard_swish(paired=True)
    network.output("gate_q", 2)
    graph = check(network)
    assert operators(graph).count("LOOKUP") == 2


# BatchNormalization --------------------------------------------------------------------------------------------------


def normalised(*, paired: bool, dtype: str = "int8", zero_point: int = 0) -> QuantizedNetwork:
    """Return Conv, BatchNormalization and Relu; the result of Conv is quantised if ``paired``."""
    network = QuantizedNetwork()
    x = network.input("x", (1, 2, 6, 5), X)
    limits = np.iinfo(dtype)
    weights = RANDOM.integers(limits.min + (dtype == "int8"), limits.max + 1, (4, 2, 3, 3)).astype(dtype)
    w = network.weights("w", weights, Scale(0.01, zero_point, dtype))
    network.constants |= {
        "scale": np.array([1.0, -0.7, 0.5, 1.4], np.float32),
        "bias": RANDOM.normal(size=4).astype(np.float32),
        "mean": RANDOM.normal(size=4).astype(np.float32),
        "variance": RANDOM.uniform(0.5, 2, 4).astype(np.float32),
    }
    made = network.add("Conv", [x, w], "c", pads=[1] * 4)
    made = network.requantized(made, Scale(0.1, 120)) if paired else made
    network.add("BatchNormalization", [made, "scale", "bias", "mean", "variance"], "n")
    network.add("Relu", ["n"], "y")
    network.output(network.quantized("y", Scale(0.08, 0)), 4)
    return network


@pytest.mark.parametrize(("dtype", "zero_point"), [("int8", 0), ("uint8", 128), ("uint8", 127)])
def test_a_batch_normalisation_is_folded_into_a_quantised_convolution(dtype: str, zero_point: int) -> None:
    network = normalised(paired=False, dtype=dtype, zero_point=zero_point)
    if dtype == "uint8":
        network.constants["w"] = np.clip(network.constants["w"], 1, 254)
    graph = check(network)
    assert operators(graph).count("CONV_2D") == 1
    assert not {"MUL", "ADD", "DEPTHWISE_CONV_2D"}.intersection(operators(graph))


def test_a_batch_normalisation_of_a_quantised_tensor_is_a_depthwise_convolution_of_one_pixel() -> None:
    graph = check(normalised(paired=True))
    assert {"CONV_2D", "DEPTHWISE_CONV_2D"} <= set(operators(graph))


# float16 -------------------------------------------------------------------------------------------------------------


def float16_network() -> bytes:
    """Return a network as onnxconverter-common's ``convert_float_to_float16`` writes it, with one float32 operator."""
    constants = {
        "w": RANDOM.normal(size=(4, 2, 3, 3)).astype(np.float16),
        "big": np.array(6.0, np.float16),
        "none": np.array(0.0, np.float16),
    }
    half = numpy_helper.from_array(np.array([0.5], np.float16))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1] * 4),
        helper.make_node("Clip", ["c", "none", "big"], ["d"]),
        helper.make_node("Constant", [], ["half"], value=half),
        helper.make_node("Mul", ["d", "half"], ["e"]),
        helper.make_node("Cast", ["e"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Sigmoid", ["wide"], ["s"]),
        helper.make_node("Cast", ["s"], ["y"], to=TensorProto.FLOAT16),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT16, (1, 2, 6, 5))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT16, (1, 4, 6, 5))],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def test_float16_networks_compute_in_float32() -> None:
    data, x = float16_network(), RANDOM.normal(size=(1, 2, 6, 5)).astype(np.float16)
    graph = parse_onnx(data, "net", "net.onnx")
    made = evaluate(graph, {"x": x.astype(np.float32)})["y"]
    np.testing.assert_allclose(made, reference(data, {"x": x})[0].astype(np.float32), atol=2e-3)
    assert "CAST" not in operators(graph)
    assert {tensor.dtype for tensor in graph.tensors.values()} == {DType.FLOAT32}
    assert graph.notes == ("x, y: float16 in the model file, float32 in the compiled network",)


# Notes ---------------------------------------------------------------------------------------------------------------


def test_notes_list_the_operators_in_float32_with_the_reason() -> None:
    network = QuantizedNetwork()
    x = network.input("x", (1, 2, 6, 5), X)
    wide = network.weights("v", integers((4, 2, 3, 3), "int16"), Scale(0.0001, 0, "int16"))
    network.add("Conv", [x, wide], "c")
    network.add("Conv", [network.requantized("c", X), network.weights("w", integers((2, 4, 1, 1), "int8"), Y)], "d")
    network.add("Erf", ["d"], "e")
    network.add("Softmax", [network.requantized("e", Scale(0.01, 90))], "f")
    network.output(network.quantized("f", Scale(0.001, 0)), 4)
    graph = parse_onnx(network.bytes(OPSET), "net", "net.onnx")
    found = [(note.split()[1], note.split()[2], note.partition("because ")[2]) for note in graph.notes]
    assert found == [
        ("2", "(Conv)", "its weights are int16"),
        ("6", "(Conv)", "its output is not quantised, or not in one way"),
        ("7", "(Erf)", "its input d is not quantised"),
        ("10", "(Softmax)", "it has no integer form for int8 with these attributes and scales"),
    ]


def test_networks_in_integers_or_without_pairs_have_no_notes() -> None:
    assert not parse_onnx(hard_swish(paired=True).bytes(), "net", "net.onnx").notes
    network = QuantizedNetwork()
    network.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 4)))
    network.add("Erf", ["x"], "y")
    network.output("y", 2, "float32")
    assert not parse_onnx(network.bytes(), "net", "net.onnx").notes


# C -------------------------------------------------------------------------------------------------------------------


def test_forms_as_c() -> None:
    """Tables, split weights and int16 layers, in one program under sanitizers, equal numpy bit for bit."""
    integer = [hard_swish(paired=True), weighted("Conv", 141), weighted("Conv", 141, group=4), weighted("Gemm", 0)]
    wide = [sixteen("int16", 9000, *SIXTEEN[name])[0] for name in ("Sigmoid", "Conv", "HardSigmoid")]
    jobs, expected = [], []
    for number, network in enumerate([*integer, *wide]):
        data = network.bytes(OPSET)
        if network in integer:
            graph, inputs, made, _ = values_of(data)
        else:
            graph = parse_onnx(data, "net", "net.onnx")
            inputs = [RANDOM.normal(size=graph.tensor("x").shape).astype(np.float32)]
            values = evaluate(graph, {"x": inputs[0]})
            made = [values[name] for name in graph.outputs]
        renamed = Graph(f"m{number}", list(graph.tensors.values()), graph.nodes, graph.inputs, graph.outputs)
        library = compile_network(renamed)
        jobs.append((library, library.modules[0], inputs))
        expected.append(made)
    assert_many_on_host(jobs, expected)
