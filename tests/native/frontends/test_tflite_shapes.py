"""Operators such as SHAPE, and results computed from them, become constants when a file is read."""

from collections.abc import Callable

import numpy as np
import pytest
from tflite.TensorType import TensorType

from mlfbuild.core.errors import UnsupportedModelError
from mlfbuild.native.frontends.tflite import parse_tflite
from support.host_c import run_on_host
from support.native import compile_bytes
from support.oracle import litert_run, tflite_micro_run
from support.refusals import Refusal, assert_tflite_refused, invalid, malformed
from support.tflite_builder import Network


def flattened() -> Network:
    """Return Keras' form of a Flatten with a dynamic batch: SHAPE, STRIDED_SLICE, PACK, RESHAPE."""
    net = Network()
    x = net.input((2, 3, 4))
    shape = net.operator("SHAPE", [x], net.activation((3,), dtype="int32"), "ShapeOptions", OutType=2)
    bounds = [net.integers([at]) for at in (0, 1, 1)]
    batch = net.operator(
        "STRIDED_SLICE", [shape, *bounds], net.activation((), dtype="int32"), "StridedSliceOptions", ShrinkAxisMask=1
    )
    wanted = net.activation((2,), dtype="int32")
    net.operator("PACK", [batch, net.integers(12)], wanted, "PackOptions", Axis=0, ValuesCount=2)
    net.operator("RESHAPE", [x, wanted], net.activation((2, 12)))
    return net


def test_computed_shapes_become_attributes() -> None:
    model = flattened().build()
    graph = parse_tflite(model, "net", "net")
    assert [node.operator.name for node in graph.nodes] == ["RESHAPE"]
    value = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    (got,), (expected,) = run_on_host(compile_bytes(model), [value]), tflite_micro_run(model, [value])
    assert got.shape == (2, 12)
    np.testing.assert_array_equal(got, expected.reshape(2, 12))


def shape_of(net: Network) -> None:
    net.operator("SHAPE", [net.input((2, 5))], net.activation((2,), dtype="int32"), "ShapeOptions", OutType=2)


def rank_of(net: Network) -> None:
    net.operator("RANK", [net.input((2, 5))], net.activation((), dtype="int32"), "RankOptions")


def zeros_like(net: Network) -> None:
    net.operator("ZEROS_LIKE", [net.input((2, 5))], net.activation((2, 5)), "ZerosLikeOptions")


def broadcast_args(net: Network) -> None:
    net.input((1,))
    shapes = [net.integers([2, 1, 3]), net.integers([4, 1])]
    net.operator("BROADCAST_ARGS", shapes, net.activation((3,), dtype="int32"))


def broadcast_args_of_huge_shapes(net: Network) -> None:
    """Their product exceeds 64 bits, but they are only numbers."""
    net.input((1,))
    shapes = [net.integers([2_000_000_000, 2_000_000_000, 1]), net.integers([2_000_000_000, 7])]
    net.operator("BROADCAST_ARGS", shapes, net.activation((3,), dtype="int32"))


def range_of(net: Network) -> None:
    net.input((1,))
    bounds = [net.integers(number) for number in (7, -2, -3)]
    net.operator("RANGE", bounds, net.activation((3,), dtype="int32"), "RangeOptions")


@pytest.mark.parametrize(
    "build", [shape_of, rank_of, zeros_like, broadcast_args, broadcast_args_of_huge_shapes, range_of]
)
def test_values_of_shape_operators(build: Callable[[Network], None]) -> None:
    net = Network()
    build(net)
    model = net.build()
    assert parse_tflite(model, "net", "net").nodes == ()
    values = [np.ones(net.tensors[index].shape, np.float32) for index in net.inputs]
    judge = litert_run if build in {rank_of, range_of} else tflite_micro_run
    (got,), (expected,) = run_on_host(compile_bytes(model), values), judge(model, values)
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == expected.dtype


def test_zeros_of_int8_are_zero_points() -> None:
    net = Network()
    net.operator("ZEROS_LIKE", [net.input((3,), 0.5, -7)], net.activation((3,), 0.5, -7), "ZerosLikeOptions")
    graph = parse_tflite(net.build(), "net", "net")
    assert graph.tensor(graph.outputs[0]).data.tolist() == [-7, -7, -7]


PLACE = "operator 0 (SHAPE) writing 't1'"


@pytest.mark.parametrize(
    ("shape", "dtype", "inputs", "expected"),
    [
        ((3,), "int32", 1, invalid(PLACE, "'t1' int32[3]", "[2]")),
        ((2,), "bool", 1, ("type-unsupported", PLACE, "bool of 't1'")),
        ((2,), "int32", 2,
         malformed(PLACE, "2 inputs and 1 outputs")),
    ],
)  # fmt: skip
def test_wrong_outputs(shape: tuple[int, ...], dtype: str, inputs: int, expected: Refusal) -> None:
    net = Network()
    x = net.input((2, 5))
    net.operator("SHAPE", [x] * inputs, net.activation(shape, dtype=dtype), "ShapeOptions")
    assert_tflite_refused(net.build(), *expected)


def test_value_written_twice_is_refused() -> None:
    net = Network()
    x, y = net.input((2, 5)), net.activation((2,), dtype="int32")
    for _ in range(2):
        net.operator("SHAPE", [x], y, "ShapeOptions")
    assert_tflite_refused(net.build(), "tflite-malformed", "operator 1 (SHAPE) writing 't1'", "writes a constant")


def test_incompatible_shapes_are_refused() -> None:
    net = Network()
    net.input((1,))
    net.operator("BROADCAST_ARGS", [net.integers([2, 3]), net.integers([4])], net.activation((2,), dtype="int32"))
    assert_tflite_refused(net.build(), "operator-invalid", "operator 0 (BROADCAST_ARGS) writing 't3'", "[2, 3]", "[4]")


@pytest.mark.parametrize(
    ("bounds", "count", "facts"),
    [((0, 5, 0), 5, ["step of 0"]), ((0, 5, 2), 5, ["'t4' int32[5]", "3"]), ((5, 0, 2), 5, ["'t4' int32[5]", "0"])],
)
def test_wrong_ranges_are_refused(bounds: tuple[int, ...], count: int, facts: list[str]) -> None:
    net = Network()
    net.input((1,))
    net.operator("RANGE", [net.integers(number) for number in bounds], net.activation((count,), dtype="int32"),
                 "RangeOptions")  # fmt: skip
    assert_tflite_refused(net.build(), "operator-invalid", "operator 0 (RANGE) writing 't4'", *facts)


@pytest.mark.parametrize("name", ["ZEROS_LIKE", "RANGE"])
def test_a_small_file_cannot_request_a_huge_constant(name: str) -> None:
    """A file of a few bytes could otherwise allocate gigabytes."""
    net = Network()
    inputs = [net.input((1 << 28,))] if name == "ZEROS_LIKE" else [net.integers(at) for at in (0, 1 << 28, 1)]
    net.operator(name, inputs, net.activation((1 << 28,), dtype="int32", name="y"))
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(net.build([len(net.tensors) - 1]), "net", "net")
    assert (caught.value.code, "1073741824 bytes" in caught.value.reason) == ("constants-too-large", True)


def test_range_with_a_computed_end_is_refused() -> None:
    net = Network()
    end = net.input((), dtype="int32", name="end")
    numbers = [net.integers(0), end, net.integers(1)]
    net.operator("RANGE", numbers, net.activation((4,), dtype="int32"), "RangeOptions")
    assert_tflite_refused(net.build(), "input-not-constant", "operator 0 (RANGE) writing 't3'", "'end' int32[]")


def test_invalid_numbers_are_refused() -> None:
    net = Network()
    net.input((1,))
    net.operator("ADD", [net.integers([2, 3]), net.integers([4, 5, 6])], net.activation((2,), dtype="int32"),
                 "AddOptions")  # fmt: skip
    assert_tflite_refused(
        net.build(), "operator-invalid", "operator 0 (ADD) writing 't3'", "'t1' int32[2]", "'t2' int32[3]"
    )


def left_open(net: Network, name: str, inputs: list[int], rank: int, options: str = "", **fields: object) -> int:
    """Add an operator whose output has the shape that converters write for an unknown one."""
    output = net.activation((1,) * rank)
    net.tensors[output].signature = [-1] * rank
    return net.operator(name, inputs, output, options or None, **fields)


def placeholders(net: Network) -> None:
    """Shapes that follow from operators: a FILL of a computed shape, and all that depends on it."""
    x = net.input((2, 3))
    shape = net.operator("SHAPE", [x], net.activation((2,), dtype="int32"), "ShapeOptions", OutType=2)
    ones = left_open(net, "FILL", [shape, net.constant(np.array(1, np.float32))], 2)
    total = left_open(net, "ADD", [x, ones], 2, "AddOptions")
    stack = left_open(net, "PACK", [total, x], 3, "PackOptions", Axis=0, ValuesCount=2)
    row = left_open(net, "RESHAPE", [stack, net.integers([1, 2, -1, 1])], 4)
    pooled = left_open(net, "MAX_POOL_2D", [row], 4, "Pool2DOptions", Padding=1, StrideH=1, StrideW=2, FilterHeight=1,
                       FilterWidth=2)  # fmt: skip
    flat = left_open(net, "RESHAPE", [pooled, net.integers([-1, 3])], 2)
    weights = net.constant(np.arange(6, dtype=np.float32).reshape(2, 3))
    dense = left_open(net, "FULLY_CONNECTED", [flat, weights, -1], 2, "FullyConnectedOptions")
    left_open(net, "SOFTMAX", [dense], 2, "SoftmaxOptions", Beta=1.0)


def written_element(net: Network) -> None:
    """A loop replaces one element of an array: of its elements before the first and after the last, there are none."""
    x, y = net.input((2, 3)), net.input((1, 3))
    parts = []
    for start, count in ((0, 0), (0, 1), (2, 0)):
        bounds = [net.integers([start, 0]), net.integers([count, -1])]
        parts.append(left_open(net, "SLICE", [x, *bounds], 2))
    nothing = left_open(net, "ABS", [parts[0]], 2, "AbsOptions")
    left_open(net, "CONCATENATION", [nothing, parts[1], y, parts[2]], 2, "ConcatenationOptions", Axis=0)


@pytest.mark.parametrize("absent", [False, True])
def test_shapes_of_images_that_the_file_leaves_open(absent: bool) -> None:
    """Old converters write no shapes between operators; LiteRT computes them."""
    net = Network()
    x = net.input((1, 2, 3, 1))
    size = left_open(net, "PACK", [net.integers(4), net.integers(6)], 1, "PackOptions", Axis=0, ValuesCount=2)
    net.tensors[size].type = TensorType.INT32
    large = left_open(net, "RESIZE_NEAREST_NEIGHBOR", [x, size], 4, "ResizeNearestNeighborOptions")
    weights = net.tensor(
        (2, 1, 1, 1), "int8", data=np.array([[[[3]]], [[[-5]]]], np.int8), scales=[0.5], zero_points=[0]
    )
    left_open(net, "CONV_2D", [large, weights, net.constant(np.zeros(2, np.float32))], 4, "Conv2DOptions", Padding=1,
              StrideH=1, StrideW=1, DilationHFactor=1, DilationWFactor=1)  # fmt: skip
    for tensor in net.tensors:
        if absent and tensor.signature:
            tensor.shape, tensor.signature = [], []
    model, value = net.build(), np.random.default_rng(7).normal(size=(1, 2, 3, 1)).astype(np.float32)
    (got,), (expected,) = run_on_host(compile_bytes(model), [value]), litert_run(model, [value])
    assert got.shape == expected.shape == (1, 4, 6, 2)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def spectrum(net: Network, shape: tuple[int, ...], output: tuple[int, ...]) -> int:
    lengths = net.integers((1, 8))
    return net.operator("RFFT2D", [net.input(shape), lengths], net.tensor(output, "complex64"), "Rfft2dOptions")


def test_open_shapes_of_complex_numbers() -> None:
    net = Network()
    bins = spectrum(net, (2, 1, 8), (1, 1, 1))
    rows = net.operator("RESHAPE", [bins, net.integers([-1, 5])], net.tensor((1, 1), "complex64"), "ReshapeOptions")
    net.tensors[bins].signature, net.tensors[rows].signature = [-1, -1, -1], [-1, -1]
    left_open(net, "IMAG", [rows], 2)
    model, value = net.build(), np.random.default_rng(7).normal(size=(2, 1, 8)).astype(np.float32)
    (got,), (expected,) = run_on_host(compile_bytes(model), [value]), litert_run(model, [value])
    assert got.shape == expected.shape == (2, 5)
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_magnitudes_whose_squares_are_no_float32() -> None:
    net = Network()
    net.operator("COMPLEX_ABS", [spectrum(net, (3, 1, 8), (3, 1, 5))], net.activation((3, 1, 5)))
    value = np.random.default_rng(7).normal(size=(3, 1, 8)) * np.array([1e-30, 1, 1e30]).reshape(3, 1, 1)
    model = net.build()
    (got,), (expected,) = (
        run_on_host(compile_bytes(model), [value.astype(np.float32)]), litert_run(model, [value.astype(np.float32)])
    )  # fmt: skip
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_other_operators_on_complex_numbers_are_refused() -> None:
    net = Network()
    bins = spectrum(net, (2, 1, 8), (2, 1, 5))
    net.operator("TRANSPOSE", [bins, net.integers([1, 0, 2])], net.tensor((1, 2, 5), "complex64"), "TransposeOptions")
    for index, place in ((net.tensors[-1], "TRANSPOSE"), (net.tensors[bins], "output")):
        with pytest.raises(UnsupportedModelError) as caught:
            parse_tflite(net.build([net.tensors.index(index)]), "net", "net")
        assert caught.value.code == "type-unsupported" and place in caught.value.place
        net.operators.pop()


@pytest.mark.parametrize("build", [placeholders, written_element])
def test_shapes_that_the_file_leaves_open(build: Callable[[Network], None]) -> None:
    net = Network()
    build(net)
    model, random = net.build(), np.random.default_rng(7)
    values = [random.normal(size=net.tensors[index].shape).astype(np.float32) for index in net.inputs]
    (got,), (expected,) = run_on_host(compile_bytes(model), values), litert_run(model, values)
    assert got.shape == expected.shape == (2, 2 if build is placeholders else 3)
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_a_known_size_that_contradicts_its_operator() -> None:
    """Only sizes that the signature leaves open may differ from the shape in the file."""
    net = Network()
    x = net.input((2, 3))
    left_open(net, "ABS", [x], 2, "AbsOptions")
    net.tensors[-1].signature = [-1, 4]
    net.tensors[-1].shape = [1, 4]
    assert_tflite_refused(net.build(), "operator-invalid", "ABS 't1'", "[2, 3]")


def test_a_scalar_shape_without_elements() -> None:
    """The new shape of a scalar is a tensor of no sizes."""
    net = Network()
    net.operator("RESHAPE", [net.input((1, 1)), net.constant(np.zeros(0, np.int32))], net.activation(()))
    model, value = net.build(), np.array([[3]], np.float32)
    (got,) = run_on_host(compile_bytes(model), [value])
    assert (got.shape, got.item()) == ((), 3)
