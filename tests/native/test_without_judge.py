"""Values that TensorFlow Lite Micro and LiteRT reject or compute wrongly, as docs/operators.md promises."""

from typing import Any

import numpy as np
import pytest

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import run_on_host
from support.native import compile_bytes
from support.tflite_builder import Network

INT32 = np.iinfo(np.int32)


def run(net: Network, *values: list[Any]) -> list[Any]:
    """Return the network's only output for ``values``, which numpy and C must agree on."""
    model = net.build()
    graph = parse_tflite(model, "net", "net")
    inputs = [np.array(value, graph.tensor(name).dtype.numpy) for name, value in zip(graph.inputs, values, strict=True)]
    expected = evaluate(graph, dict(zip(graph.inputs, inputs, strict=True)))[graph.outputs[0]]
    (got,) = run_on_host(compile_bytes(model), inputs)
    np.testing.assert_array_equal(got, expected)
    return list(got.tolist())


def divided(dividends: list[int], divisors: list[int], **affine: Any) -> list[int]:
    net = Network()
    sources = [net.input((len(dividends),), **affine) for _ in range(2)]
    net.binary("DIV", *sources, **affine)
    return run(net, dividends, divisors)


@pytest.mark.parametrize(("dtype", "greatest"), [("int8", 127), ("int16", 32767)])
def test_quotients_by_zero(dtype: str, greatest: int) -> None:
    zeros = divided([0, 5, -5], [0, 0, 0], dtype=dtype, scale=0.1)
    assert zeros == [0, greatest, -greatest - 1]


@pytest.mark.parametrize(("dtype", "zero_point"), [("int8", 5), ("int16", 0)])
@pytest.mark.parametrize("scale", [2.0**-14, 1e-30])
def test_floats_out_of_range_are_bounded_and_nan_is_the_zero_point(dtype: str, zero_point: int, scale: float) -> None:
    """For example 3e38 / 2**-14, which no float32 holds, and 65,536, which C may not convert to int16."""
    limits = np.iinfo(dtype)
    large = np.array([32768, 65536, 131072, 131073, 2**31, 2**32, 1e12]) * scale
    values = [*large.tolist(), 3e38, np.inf]
    net = Network()
    net.unary("QUANTIZE", net.input((2 * len(values) + 3,)), scale=scale, zero_point=zero_point, dtype=dtype)
    got = run(net, [*values, *(-value for value in values), np.nan, 0.0, -0.0])
    assert got == [limits.max] * len(values) + [limits.min] * len(values) + [zero_point] * 3


def test_small_quotients_are_zero() -> None:
    assert divided([0, 1, -1, 100, -100], [-128, 127, 127, 1, 1], scale=1.0) == [0, 0, 0, 100, -100]


def test_quotients_of_int32() -> None:
    assert divided([7, -7, 7, 0, INT32.min, INT32.min], [0, 2, -2, 5, -1, 1], dtype="int32") == [
        0, -3, -3, 0, INT32.min, INT32.min,
    ]  # fmt: skip


def test_floors_of_quotients_by_zero() -> None:
    for name, expected in (("FLOOR_DIV", [0, -4, INT32.min]), ("FLOOR_MOD", [0, 1, 0])):
        net = Network()
        sources = [net.input((3,), dtype="int32") for _ in range(2)]
        net.binary(name, *sources, dtype="int32")
        assert run(net, [7, -7, INT32.min], [0, 2, -1]) == expected


def test_sums_of_int8_with_a_zero_point() -> None:
    net = Network()
    sources = [net.input((3,), 1.0, 5) for _ in range(2)]
    net.operator("ADD_N", sources, net.activation((3,), 1.0, -3), "AddNOptions")
    assert run(net, [5, 6, 127], [5, 7, 100]) == [-3, 0, 127]
    net = Network()
    x = net.input((3,), 1.0, 5)
    net.operator("CUMSUM", [x, net.integers([0])], net.activation((3,), 0.5, -3), "CumsumOptions")
    assert run(net, [6, 7, 5]) == [-1, 3, 3]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_indices_out_of_range(dtype: str) -> None:
    net = Network()
    x, places = net.input((2, 3), dtype="int32"), net.input((3, 2), dtype=dtype)
    net.move("GATHER_ND", x, (3,), places)
    assert run(net, [[1, 2, 3], [4, 5, 6]], [[-7, 1], [9, -1], [1, 3]]) == [2, 4, 6]


def test_positions_of_slices_out_of_range() -> None:
    net = Network()
    updates, places = net.input((4,)), net.input((4, 1), dtype="int32")
    net.move("SCATTER_ND", updates, (3,), net.integers([3]), before=[places], kind="ScatterNdOptions")
    assert run(net, [1, 2, 4, 8], [[2], [-1], [3], [2]]) == [0, 0, 9]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_lengths_of_sequences_out_of_range(dtype: str) -> None:
    net = Network()
    x, lengths = net.input((2, 3)), net.input((2,), dtype=dtype)
    net.move("REVERSE_SEQUENCE", x, (2, 3), lengths, kind="ReverseSequenceOptions", SeqDim=1, BatchDim=0)
    assert run(net, [[1, 2, 3], [4, 5, 6]], [-(2**31), 2**31 - 1]) == [[1, 2, 3], [6, 5, 4]]


def unary(name: str, values: list[int], dtype: str, source: tuple[float, int], output: tuple[float, int]) -> list[int]:
    net = Network()
    x = net.input((len(values),), *source, dtype=dtype)
    net.unary(name, x, scale=output[0], zero_point=output[1], dtype=dtype)
    return run(net, values)


@pytest.mark.parametrize(("dtype", "greatest"), [("int8", 127), ("int16", 32767)])
def test_roots_of_negative_numbers(dtype: str, greatest: int) -> None:
    assert unary("SQRT", [-9, 0, 9], dtype, (1.0, 0), (0.5, 0)) == [0, 0, 6]
    assert unary("RSQRT", [-9, 0, 4], dtype, (1.0, 0), (0.25, 0)) == [greatest, greatest, 2]


@pytest.mark.parametrize(("name", "expected"), [("ARG_MAX", [1, 0]), ("ARG_MIN", [0, 1])])
def test_positions_in_int16(name: str, expected: list[int]) -> None:
    net = Network()
    x = net.input((2, 3), 0.1, dtype="int16")
    output = net.activation((2,), dtype="int32")
    net.operator(name, [x, net.integers(1)], output, f"{name.title().replace('_', '')}Options", OutputType=2)
    assert run(net, [[-300, 300, 300], [5, -32768, -32768]]) == expected


def test_nan_is_after_all_numbers() -> None:
    net = Network()
    x = net.input((2, 4))
    values, positions = net.activation((2, 3)), net.activation((2, 3), dtype="int32")
    net.many("TOPK_V2", [x, net.integers([3])], [values, positions], "TopKV2Options")
    model, rows = net.build(), np.array([[np.nan, -np.inf, 2, np.nan], [-1, np.nan, -1, np.inf]], np.float32)
    for result in (
        list(evaluate(parse_tflite(model, "net", "net"), {"t0": rows}).values())[-2:],
        run_on_host(compile_bytes(model), [rows]),
    ):
        np.testing.assert_array_equal(result[0], [[2, -np.inf, np.nan], [np.inf, -1, -1]])
        np.testing.assert_array_equal(result[1], [[2, 1, 0], [3, 0, 2]])


def test_negatives_between_scales() -> None:
    assert unary("NEG", [-128, 3, 4, 127], "int8", (0.5, 3), (0.25, -10)) == [127, -10, -12, -128]
    assert unary("NEG", [-32768, 0, 7], "int16", (0.5, 0), (0.5, 0)) == [32767, 0, -7]
