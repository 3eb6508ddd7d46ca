"""Operators of ONNX on pairs of computed numbers: numpy and C compute what ``expected`` says, at the edges, too."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper

from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph.nodes import evaluate
from support.host_c import run_many_on_host
from support.native import compile_network
from support.onnx_models import model, reference
from support.refusals import Refusal, assert_onnx_refused

Array = npt.NDArray[Any]
Case = tuple[str, dict[str, Any], Sequence[Array], Array]
"""An operator, its attributes, inputs, and the expected output."""

INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "int64", "uint32", "uint64")
UNSIGNED = ("uint16", "uint32", "uint64")


def written(operator: str, attributes: dict[str, Any], inputs: Sequence[Array], result: str) -> bytes:
    names = [f"x{index}" for index in range(len(inputs))]
    ports = [(name, value.shape) for name, value in zip(names, inputs, strict=True)]
    data = helper.make_node(operator, names, ["y"], **attributes)
    rank = max(value.ndim for value in inputs)
    made = model([data], ports, [("y", [None] * rank)], opset=23)
    typed = onnx.load_from_string(made)
    types = [*(value.dtype for value in inputs), np.dtype(result)]
    for port, dtype in zip([*typed.graph.input, *typed.graph.output], types, strict=True):
        port.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(dtype)
    return bytes(typed.SerializeToString())


def check(cases: Sequence[Case], rtol: float = 0.0) -> None:
    jobs, wanted = [], []
    for number, (operator, attributes, inputs, expected) in enumerate(cases):
        data = written(operator, attributes, inputs, expected.dtype.name)
        graph = parse_onnx(data, f"m{number}", "net.onnx")
        made = evaluate(graph, dict(zip(graph.inputs, inputs, strict=True)))["y"]
        np.testing.assert_allclose(made, expected, rtol=rtol, err_msg=operator)
        library = compile_network(graph)
        jobs.append((library, library.modules[0], tuple(inputs)))
        wanted.append((operator, expected))
    for (output,), (operator, expected) in zip(run_many_on_host(jobs), wanted, strict=True):
        assert output.dtype == expected.dtype
        np.testing.assert_allclose(output.reshape(expected.shape), expected, rtol=rtol, err_msg=operator)


def pairs(dtype: str) -> tuple[Array, Array]:
    """Return the least, the greatest and small integers in a row, and the same in a column."""
    limits = np.iinfo(dtype)
    values = np.array([limits.min, limits.max, 0, 1, 2, 7, 100, limits.max // 3, limits.min // 5], dtype)
    if limits.min < 0:
        values = np.concatenate([values, -values[3:7]])
    return values[:, None], values[None, :]


def test_bits_of_integers() -> None:
    cases: list[Case] = []
    combined: dict[str, Callable[[Array, Array], Array]] = {
        "BitwiseAnd": np.bitwise_and, "BitwiseOr": np.bitwise_or, "BitwiseXor": np.bitwise_xor
    }  # fmt: skip
    for dtype in INTEGERS:
        x, y = pairs(dtype)
        cases += [(name, {}, (x, y), compute(x, y)) for name, compute in combined.items()]
        cases.append(("BitwiseNot", {}, (x,), np.invert(x)))
        bits = x.dtype.itemsize * 8
        places = np.array([0, 1, 7, bits - 1, bits, bits + 1, 70, np.iinfo(dtype).max, np.iinfo(dtype).min], dtype)
        beyond = (places < 0) | (places >= bits)
        some = np.where(beyond, bits - 1, places).astype(dtype)
        sign = np.where(x < 0, -1, 0).astype(dtype)
        left = np.where(beyond, 0, np.left_shift(x, some)).astype(dtype)
        cases.append(("BitShift", {"direction": "LEFT"}, (x, places), left))
        right = np.where(beyond, sign, np.right_shift(x, some)).astype(dtype)
        cases.append(("BitShift", {"direction": "RIGHT"}, (x, places), right))
    check(cases)


def test_arithmetic_of_unsigned_integers() -> None:
    """Sums and products wrap around; the highest bit is not a sign."""
    computed: dict[str, Callable[[Array, Array], Array]] = {
        "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum,
        "Equal": np.equal, "Less": np.less, "LessOrEqual": np.less_equal, "Greater": np.greater,
        "GreaterOrEqual": np.greater_equal,
    }  # fmt: skip
    cases: list[Case] = []
    for dtype in UNSIGNED:
        x, y = pairs(dtype)
        cases += [(name, {}, (x, y), compute(x, y)) for name, compute in computed.items()]
    check(cases)


def test_unsigned_integers_are_moved() -> None:
    cases: list[Case] = []
    for dtype in UNSIGNED:
        x = np.iinfo(dtype).max - np.arange(24, dtype=dtype).reshape(2, 3, 4)
        chosen, places = x % 2 == 0, np.array([2, 0], np.int64)
        cases += [
            ("Transpose", {"perm": [2, 0, 1]}, (x,), np.transpose(x, (2, 0, 1))),
            ("Concat", {"axis": 1}, (x, x[:, :2]), np.concatenate([x, x[:, :2]], axis=1)),
            ("Where", {}, (chosen, x, x[:1]), np.where(chosen, x, x[:1])),
            ("GatherElements", {"axis": 1}, (x, places.reshape(2, 1, 1)), x[[0, 1], [2, 0], 0].reshape(2, 1, 1)),
            ("Gather", {"axis": 1}, (x, places), x[:, places]),
        ]
    check(cases)


def test_quotients_of_wide_integers() -> None:
    """Quotients are truncated; those by 0 are 0."""
    cases: list[Case] = []
    with np.errstate(all="ignore"):
        for dtype in ("int64", *UNSIGNED):
            x, y = pairs(dtype)
            rows = [[_truncated(a, b) for b in y[0].tolist()] for a in x[:, 0].tolist()]
            cases.append(("Div", {}, (x, y), np.array(rows, np.uint64).astype(dtype)))
            if dtype == "uint64":
                cases.append(("Mod", {}, (x, y), np.where(y == 0, 0, x % np.where(y == 0, 1, y)).astype(dtype)))
    check(cases)


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b) if b else 0
    return (quotient if (a < 0) == (b < 0) else -quotient) % (1 << 64)


def test_powers_of_integers() -> None:
    """They wrap; a negative exponent leaves no fraction, and a float exponent of a square gives the root."""
    cases: list[Case] = []
    exponents = np.array([0, 1, 2, 3, 7, 31, 62, 63, 64, 1000, -1, -2, -3])
    for dtype in ("int8", "int32", "int64", "uint32"):
        x = pairs(dtype)[0]
        bits = 1 << np.dtype(dtype).itemsize * 8
        rows = [
            [pow(a, e, bits) if e >= 0 else a**-e if a in (1, -1) else 0 for e in exponents.tolist()]
            for a in x[:, 0].tolist()
        ]
        wanted = np.array([[value % bits for value in row] for row in rows], np.uint64).astype(dtype)
        cases.append(("Pow", {}, (x, exponents), wanted))
    x = np.array([0, 1, 2, 3, 4, 9, 16, 144, 1000003, -2, -3])
    halves = np.array([0, 1, 3, 5], np.float32)
    cases.append(("Pow", {}, (x[:, None], halves[None]), np.power(x[:, None], halves[None].astype(np.int64))))
    roots = np.array([0, 1, 1, 1, 2, 3, 4, 12, 1000, 0, 0], np.int32)
    cases.append(("Pow", {}, (x.astype(np.int32), np.array([0.5], np.float32)), roots))
    check(cases)


def test_greatest_of_unsigned_integers() -> None:
    for dtype in ("uint32", "uint64"):
        x = np.array([3, np.iinfo(dtype).max, 0, np.iinfo(dtype).max // 2 + 1], dtype)
        code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        ports = [helper.make_tensor_value_info("x", code, [4])]
        made = [helper.make_tensor_value_info("y", code, [2]), helper.make_tensor_value_info("at", 7, [2])]
        k = helper.make_tensor("k", 7, [1], [2])
        graph = helper.make_graph([helper.make_node("TopK", ["x", "k"], ["y", "at"])], "graph", ports, made, [k])
        data = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)]).SerializeToString()
        values = evaluate(parse_onnx(data, "net", "net.onnx"), {"x": x})
        np.testing.assert_array_equal(values["y"], x[[1, 3]])
        np.testing.assert_array_equal(values["at"], [1, 3])


def test_conversions_of_unsigned_integers() -> None:
    """Integers wrap around; float32 is truncated and clamped."""
    floats = np.array(
        [0, -0.5, -3, 1.9, 3e9, 4294967040, 4294967296, 1.8e19, 2e19, np.inf, -np.inf, np.nan], np.float32
    )
    cases: list[Case] = []
    for dtype in UNSIGNED:
        code, greatest = helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), np.iinfo(dtype).max
        whole = [0 if not number > 0 else greatest if number >= greatest else int(number) for number in floats.tolist()]
        cases.append(("Cast", {"to": code}, (floats,), np.array(whole, dtype)))
        for other in ("int8", "int32", "int64", "float32", "bool"):
            x = pairs(dtype)[0]
            back = helper.np_dtype_to_tensor_dtype(np.dtype(other))
            cases.append(("Cast", {"to": back}, (x,), x.astype(other)))
            if other.startswith("int"):
                narrow = pairs(other)[0]
                cases.append(("Cast", {"to": code}, (narrow,), narrow.astype(dtype)))
    check(cases)


def test_computed_diagonals() -> None:
    cases: list[Case] = []
    limits = np.iinfo(np.int64)
    x = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)
    for diagonal in (-9, -2, -1, 0, 1, 3, 9, limits.min, limits.max):
        bounded = max(min(diagonal, 9), -9)  # numpy's sums overflow
        for upper, compute in ((1, np.triu), (0, np.tril)):
            cases.append(("Trilu", {"upper": upper}, (x, np.array(diagonal, np.int64)), compute(x, bounded)))
    check(cases)


def test_remainders() -> None:
    """Remainders of division by 0 are 0; those of floats are exact, even if the quotient has many digits."""
    cases: list[Case] = []
    with np.errstate(all="ignore"):
        for dtype in sorted({*INTEGERS} - {"uint64"}):
            x, y = pairs(dtype)
            cases += [("Mod", {}, (x, y), np.mod(x, y)), ("Mod", {"fmod": 1}, (x, y), np.fmod(x, y))]
        floats = np.array([0, 0.1, -0.1, 1, -1, 2.5, -7.3, 3e38, -1e-30, 5e-42, np.inf, -np.inf, np.nan], np.float32)
        x, y = floats[:, None], floats[None, :]
        cases += [("Mod", {}, (x, y), np.mod(x, y)), ("Mod", {"fmod": 1}, (x, y), np.fmod(x, y))]
    check(cases)


ONE = np.ones(1, np.float32)
FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "Acos": np.arccos, "Acosh": np.arccosh, "Asin": np.arcsin, "Asinh": np.arcsinh,
    "Atan": np.arctan, "Atanh": np.arctanh, "Cosh": np.cosh, "Sinh": np.sinh,
}  # fmt: skip


def test_inverse_and_hyperbolic_functions() -> None:
    """The relative error is at most 1e-6, from the least normal number to infinity."""
    tiny, near = np.geomspace(1.2e-38, 1e38, 3001), np.linspace(0, 1, 2001)
    magnitudes = np.concatenate([tiny, near, 1 + near, 90 * near, 1 - tiny[:2000], [4095, 4097, np.inf, np.nan]])
    x = np.concatenate([magnitudes, -magnitudes]).astype(np.float32)
    with np.errstate(all="ignore"):
        cases: list[Case] = [
            (name, {}, (x,), compute(x.astype(np.float64)).astype(np.float32)) for name, compute in FUNCTIONS.items()
        ]
    check(cases, rtol=1e-6)


def test_powers() -> None:
    """The results are those of C's pow, with floats and integers as exponents."""
    floats = [0, 1, 0.5, 2.5, 3, 1e-30, 1e30, 1e-42, 16777215, 16777216, 88.7, 1.0000001, 3e38, np.inf]
    values = np.array([*floats, *(-value for value in floats), -0.0, np.nan, 0.9999999, -1.0000001], np.float32)
    x, y = values[:, None], values[None, :]
    random = np.random.default_rng(3)
    base = np.exp(random.uniform(-80, 80, 4000)).astype(np.float32)
    power = (random.uniform(-85, 85, 4000) / np.log(base.astype(np.float64))).astype(np.float32)
    whole = np.array([0, 1, -1, 2, -7, 100, (1 << 24) + 1, -(1 << 24) - 3, (1 << 31) - 1, -(1 << 31)])[None, :]
    cases: list[Case] = []
    with np.errstate(all="ignore"):
        for left, right in (
            (x, y),
            (base, power),
            (x, whole.astype(np.int32)),
            (x, whole),
            (x, (y * 3).astype(np.int8)),
        ):
            wanted = np.power(left.astype(np.float64), right.astype(np.float64))
            result = np.where(np.abs(wanted) < 1.2e-38, 0, wanted)
            usual = result == wanted  # subnormal results are less accurate
            kept = np.broadcast_to(left, wanted.shape)[usual], np.broadcast_to(right, wanted.shape)[usual]
            cases.append(("Pow", {}, (kept[0], kept[1]), wanted[usual].astype(np.float32)))
            flipped = wanted != wanted
            kept = np.broadcast_to(left, wanted.shape)[flipped], np.broadcast_to(right, wanted.shape)[flipped]
            if kept[0].size:
                cases.append(("Pow", {}, (kept[0], kept[1]), wanted[flipped].astype(np.float32)))
        check(cases[:3], rtol=2e-7)
        check(cases[3:], rtol=3e-6)


NORMALISED: list[tuple[str, dict[str, Any], list[tuple[int, ...]]]] = [
    ("LayerNormalization", {"axis": 2}, [(2, 4, 3, 5), (3, 5), (3, 5)]),
    ("LayerNormalization", {}, [(2, 4, 3, 5), (5,)]),
    ("RMSNormalization", {"axis": -2}, [(2, 4, 3, 5), (3, 5)]),
    ("GroupNormalization", {"num_groups": 2}, [(2, 4, 3, 5), (4,), (4,)]),
    ("InstanceNormalization", {}, [(2, 4, 3, 5), (4,), (4,)]),
    ("BatchNormalization", {"epsilon": 0.1}, [(2, 4, 3, 5), (4,), (4,), (4,), (4,)]),
    ("Clip", {}, [(2, 4, 3, 5), (), ()]),
]
"""Operators, attributes, and the shapes of inputs, all of which are computed."""


def test_computed_parameters() -> None:
    """All parameters are inputs of the network; the variance of BatchNormalization is positive."""
    random = np.random.default_rng(4)
    cases: list[Case] = []
    for operator, attributes, shapes in NORMALISED:
        inputs = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
        if operator == "BatchNormalization":
            inputs[-1] = np.abs(inputs[-1]) + np.float32(0.5)
        data = written(operator, attributes, inputs, "float32")
        (expected,) = reference(data, {f"x{index}": value for index, value in enumerate(inputs)})
        cases.append((operator, attributes, inputs, expected))
    for dtype in INTEGERS:
        x = np.arange(-9, 9).astype(dtype)
        for low, high in ((2, 5), (5, 2)):
            inputs = [x, np.array(low, dtype), np.array(high, dtype)]
            cases.append(("Clip", {}, inputs, np.minimum(np.maximum(x, inputs[1]), inputs[2])))
    check(cases, rtol=2e-5)


REFUSED: dict[str, tuple[str, dict[str, Any], Sequence[Array], Refusal]] = {
    "bits of floats": (
        "BitwiseAnd", {}, (ONE, ONE), ("type-unsupported", "node 0 (BitwiseAnd) writing 'y'", "float32", "'x0'"),
    ),
    "bounds": (
        "Clip", {}, (ONE, np.ones(2, np.float32)), ("onnx-malformed", "node 0 (Clip) writing 'y'", "minimum", "'x1'"),
    ),
    "channels": (
        "BatchNormalization", {}, (np.ones((1, 2, 3), np.float32), *(ONE,) * 4),
        ("onnx-malformed", "node 0 (BatchNormalization) writing 'y'", "'x1'"),
    ),
    "groups": (
        "GroupNormalization", {"num_groups": 2}, (np.ones((1, 4, 3), np.float32), np.ones(3, np.float32), ONE),
        ("onnx-malformed", "node 0 (GroupNormalization) writing 'y'", "'x1'", "[2, 2, 1]"),
    ),
    "powers of unsigned integers": (
        "Pow", {}, (np.ones(1, np.uint64),) * 2, ("type-unsupported", "node 0 (Pow) writing 'y'", "uint64", "'x0'"),
    ),
    "two diagonals": (
        "Trilu", {}, (np.ones((2, 2), np.float32), np.zeros(2, np.int64)),
        ("onnx-malformed", "node 0 (Trilu) writing 'y'", "'x1'"),
    ),
    "direction": (
        "BitShift", {"direction": "UP"}, (np.ones(1, np.int32),) * 2,
        ("onnx-malformed", "node 0 (BitShift) writing 'y'", "'UP'"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    operator, attributes, inputs, words = REFUSED[name]
    assert_onnx_refused(written(operator, attributes, inputs, inputs[0].dtype.name), *words)
