"""Operators such as SHAPE, and results computed from them, become constants when a file is read."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mlfbuild.core.errors import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.frontends.tflite import parse_tflite
from support.host_c import run_on_host
from support.native import compile_bytes
from support.oracle import litert_run, tflite_micro_run
from support.refusals import Refusal, assert_refused
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
    ("shape", "dtype", "inputs", "kind", "expected"),
    [
        ((3,), "int32", 1, UnsupportedModelError, ("operator-invalid", PLACE, "'t1' int32[3]", "[2]")),
        ((2,), "bool", 1, UnsupportedModelError, ("type-unsupported", PLACE, "bool of 't1'")),
        ((2,), "int32", 2, InputFileError,
         ("tflite-malformed", PLACE, "2 inputs and 1 outputs")),
    ],
)  # fmt: skip
def test_wrong_outputs(
    shape: tuple[int, ...], dtype: str, inputs: int, kind: type[MlfError], expected: Refusal
) -> None:
    net = Network()
    x = net.input((2, 5))
    net.operator("SHAPE", [x] * inputs, net.activation(shape, dtype=dtype), "ShapeOptions")
    with pytest.raises(kind) as caught:
        parse_tflite(net.build(), "net", "net")
    assert_refused(caught.value, *expected)


def test_value_written_twice_is_refused() -> None:
    net = Network()
    x, y = net.input((2, 5)), net.activation((2,), dtype="int32")
    for _ in range(2):
        net.operator("SHAPE", [x], y, "ShapeOptions")
    with pytest.raises(InputFileError) as caught:
        parse_tflite(net.build(), "net", "net")
    assert_refused(caught.value, "tflite-malformed", "operator 1 (SHAPE) writing 't1'", "writes a constant")


def test_incompatible_shapes_are_refused() -> None:
    net = Network()
    net.input((1,))
    net.operator("BROADCAST_ARGS", [net.integers([2, 3]), net.integers([4])], net.activation((2,), dtype="int32"))
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(net.build(), "net", "net")
    assert_refused(caught.value, "operator-invalid", "operator 0 (BROADCAST_ARGS) writing 't3'", "[2, 3]", "[4]")


@pytest.mark.parametrize(
    ("bounds", "count", "facts"),
    [
        ((0, 5, 0), 5, ["step of 0"]),
        ((0, 5, 2), 5, ["'t4' int32[5]", "3"]),
        ((5, 0, 2), 5, ["'t4' int32[5]", "0"]),
    ],
)
def test_wrong_ranges_are_refused(bounds: tuple[int, ...], count: int, facts: list[str]) -> None:
    net = Network()
    net.input((1,))
    net.operator("RANGE", [net.integers(number) for number in bounds], net.activation((count,), dtype="int32"),
                 "RangeOptions")  # fmt: skip
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(net.build(), "net", "net")
    assert_refused(caught.value, "operator-invalid", "operator 0 (RANGE) writing 't4'", *facts)


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
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(net.build(), "net", "net")
    assert_refused(caught.value, "input-not-constant", "operator 0 (RANGE) writing 't3'", "'end' int32[]")


def test_invalid_numbers_are_refused() -> None:
    net = Network()
    net.input((1,))
    net.operator("ADD", [net.integers([2, 3]), net.integers([4, 5, 6])], net.activation((2,), dtype="int32"),
                 "AddOptions")  # fmt: skip
    with pytest.raises(UnsupportedModelError) as caught:
        parse_tflite(net.build(), "net", "net")
    assert_refused(caught.value, "operator-invalid", "operator 0 (ADD) writing 't3'", "'t1' int32[2]", "'t2' int32[3]")
