"""A million output values of each operator and type against their judge; the sweep prints how many differ."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from mlfbuild.native.frontends.tflite import parse_tflite
from support.host_c import run_on_host
from support.native import compile_bytes
from support.networks import OPERATORS_AND_TYPES
from support.oracle import litert_run, tflite_micro_run
from support.rates import VALUES, Rate, rate
from support.streaming_networks import STREAMING
from support.tflite_builder import Array, Network

_MANY = 250
"""Operators in a network."""


def _sizes(random: np.random.Generator) -> list[int]:
    """Return a shape of at most 4096 elements."""
    sizes = random.integers(1, 4, random.choice([1, 2, 3, 4, 5, 6, 6, 6]))
    sizes[random.integers(len(sizes))] = random.integers(1, 4096 // sizes.prod())
    return [int(size) for size in sizes]


def _shape(net: Network, dtype: str, random: np.random.Generator) -> None:
    for _ in range(_MANY):
        sizes = _sizes(random)
        output = net.activation((len(sizes),), dtype=dtype)
        options = {"OutType": {"int32": 2, "int64": 4}[dtype]}
        net.operator("SHAPE", [net.input(sizes, dtype="int8")], output, "ShapeOptions", **options)


def _rank(net: Network, _dtype: str, random: np.random.Generator) -> None:
    for _ in range(_MANY):
        sizes = _sizes(random)[: random.integers(0, 7)]
        net.operator("RANK", [net.input(sizes, dtype="int8")], net.activation((), dtype="int32"), "RankOptions")


def _broadcast_args(net: Network, dtype: str, random: np.random.Generator) -> None:
    net.input((1,))
    for _ in range(_MANY):
        sizes = random.integers(1, 2**31, random.integers(1, 400))  # any number of them, as no tensor has that shape
        shapes = [np.where(random.random(len(sizes)) < 0.4, 1, sizes) for _ in range(2)]
        shapes[random.integers(2)] = shapes[0][random.integers(len(sizes)) :]
        count = max(map(len, shapes))
        inputs = [net.integers(shape, dtype) for shape in shapes]
        net.operator("BROADCAST_ARGS", inputs, net.activation((count,), dtype=dtype))


def _range(net: Network, dtype: str, random: np.random.Generator) -> None:
    net.input((1,))
    for _ in range(_MANY // 10):
        count = int(random.integers(1, 3000))
        step = int(random.choice([-1, 1])) * int(random.integers(1, random.choice([3, 1000, 2**31 // count])))
        first, last = sorted((-(2**31) - min(0, step * count), 2**31 - 1 - max(0, step * count)))
        start = int(random.integers(first, last + 1))
        end = start + step * count - int(random.integers(abs(step))) * (1 if step > 0 else -1)
        bounds = [net.integers(number, dtype) for number in (start, end, step)]
        net.operator("RANGE", bounds, net.activation((count,), dtype=dtype), "RangeOptions")


def _zeros_like(net: Network, dtype: str, random: np.random.Generator) -> None:
    affine = (0.5, 0) if dtype == "int8" else (None, 0)  # docs/operators.md names the difference of other zero points
    for _ in range(_MANY // 10):
        sizes = [int(random.integers(500, 2000))]
        source = net.input(sizes, *affine, dtype=dtype)
        net.operator("ZEROS_LIKE", [source], net.activation(sizes, *affine, dtype=dtype), "ZerosLikeOptions")


_DRAW: Mapping[str, Callable[[Network, str, np.random.Generator], None]] = {
    "SHAPE": _shape, "RANK": _rank, "BROADCAST_ARGS": _broadcast_args, "RANGE": _range, "ZEROS_LIKE": _zeros_like,
}  # fmt: skip
MICRO = {"SHAPE int32", "BROADCAST_ARGS int32", "BROADCAST_ARGS int64", *(
    f"ZEROS_LIKE {dtype}" for dtype in ("float32", "int8", "int32", "int64")
)}  # fmt: skip
"""What TensorFlow Lite Micro has; LiteRT is the judge of the others."""
KINDS = [
    "SHAPE int32", "SHAPE int64", "RANK int32", "BROADCAST_ARGS int32", "BROADCAST_ARGS int64", "RANGE int32",
    "RANGE int64", "ZEROS_LIKE float32", "ZEROS_LIKE int8", "ZEROS_LIKE int32", "ZEROS_LIKE int64",
]  # fmt: skip


def drawn_shapes(kind: str, random: np.random.Generator) -> Network:
    """Draw a network of one kind of operator."""
    net = Network()
    operator, dtype = kind.split()
    _DRAW[operator](net, dtype, random)
    net.outputs = [each.outputs[0] for each in net.operators]
    return net


def constant_rate(kind: str, values: int) -> Rate:
    """Compare the constants that the reader makes with what the judge computes."""
    random = np.random.default_rng(18)
    count = differing = 0
    while count < values:
        net = drawn_shapes(kind, random)
        model = net.build()
        expected = judged(kind, net, model)
        graph = parse_tflite(model, "net", "net")
        for name, right in zip(graph.outputs, expected, strict=True):
            got = graph.tensor(name).data
            assert got is not None and got.dtype == right.dtype and got.shape == right.shape, name
            count += right.size
            differing += int((got != right).sum())
    operator, dtype = kind.split()
    return Rate(operator, dtype, "TensorFlow Lite Micro" if kind in MICRO else "LiteRT", count, differing, 0.0)


def judged(kind: str, net: Network, model: bytes) -> list[Array]:
    """Return what the judge computes for ``model``, which was built of ``net``."""
    inputs = [np.zeros(net.tensors[index].shape, dtype_of(net, index)) for index in net.inputs]
    return [*(tflite_micro_run if kind in MICRO else litert_run)(model, inputs)]


def dtype_of(net: Network, index: int) -> type[np.generic]:
    """Return the type of a tensor in numpy."""
    return {0: np.float32, 2: np.int32, 4: np.int64, 9: np.int8}[net.tensors[index].type]


FLOAT_TOLERANCE = {"SVDF": 1e-4}
"""1e-5 of others: SVDF clamps sums of some hundreds to 1, and their error stays."""


def check(found: Rate, record: Callable[[str, object], None]) -> None:
    record("rate", str(found))
    if found.error:
        assert found.error <= FLOAT_TOLERANCE.get(found.operator, 1e-5), found
    else:
        assert not found.differing, found


@pytest.mark.parametrize(("operator", "dtype"), [("FULLY_CONNECTED", "int8"), ("ADD", "int16")])
def test_thousands_of_values(operator: str, dtype: str, record_property: Callable[[str, object], None]) -> None:
    check(rate(operator, dtype, 10_000, 2), record_property)


@pytest.mark.sweep
@pytest.mark.parametrize(("operator", "dtype"), [*OPERATORS_AND_TYPES, *(kind.split(" ", 1) for kind in STREAMING)])
def test_a_million_values(operator: str, dtype: str, record_property: Callable[[str, object], None]) -> None:
    found = rate(operator, dtype)
    assert found.values >= VALUES
    check(found, record_property)


RANKS = 10_000
"""RANK writes one number, of which there are only seven."""


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_a_million_constants_that_the_reader_computes(
    kind: str, record_property: Callable[[str, object], None]
) -> None:
    wanted = RANKS if kind.startswith("RANK") else VALUES
    found = constant_rate(kind, wanted)
    assert found.values >= wanted
    check(found, record_property)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_compiled_networks_return_these_constants(kind: str) -> None:
    net = drawn_shapes(kind, np.random.default_rng(19))
    net.operators = net.operators[:20]
    net.inputs = [index for index in net.inputs if any(index in each.inputs for each in net.operators)] or net.inputs
    net.outputs = [each.outputs[0] for each in net.operators]
    model = net.build()
    inputs = [np.zeros(net.tensors[index].shape, dtype_of(net, index)) for index in net.inputs]
    for got, expected in zip(run_on_host(compile_bytes(model), inputs), judged(kind, net, model), strict=True):
        np.testing.assert_array_equal(got, expected)
        assert got.dtype == expected.dtype
