"""Operators of ONNX on pairs of computed numbers: numpy and C compute what ``expected`` says, at the edges, too."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper

from mlfbuild.core.errors import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.frontends.onnx import parse_onnx
from mlfbuild.graph.evaluation import evaluate
from support.host_c import run_many_on_host
from support.native import compile_network
from support.onnx_models import model
from support.refusals import assert_refused

Array = npt.NDArray[Any]
Case = tuple[str, dict[str, Any], Sequence[Array], Array]
"""An operator, its attributes, inputs, and the expected output."""

INTEGERS = ("int8", "uint8", "int16", "int32", "int64")


def written(operator: str, attributes: dict[str, Any], inputs: Sequence[Array], result: str) -> bytes:
    names = [f"x{index}" for index in range(len(inputs))]
    ports = [(name, value.shape) for name, value in zip(names, inputs, strict=True)]
    data = helper.make_node(operator, names, ["y"], **attributes)
    rank = max(value.ndim for value in inputs)
    made = model([data], ports, [("y", [None] * rank)])
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
    x = np.array([0, 1, 5, 128, 255], np.uint8)[:, None]
    places = np.array([0, 1, 7, 8, 31, 32, 255], np.uint8)[None, :]
    cases.append(("BitShift", {"direction": "LEFT"}, (x, places), np.left_shift(x, places)))
    cases.append(("BitShift", {"direction": "RIGHT"}, (x, places), np.right_shift(x, places)))
    check(cases)


def test_remainders() -> None:
    """Remainders of division by 0 are 0; those of floats are exact, even if the quotient has many digits."""
    cases: list[Case] = []
    with np.errstate(all="ignore"):
        for dtype in INTEGERS:
            x, y = pairs(dtype)
            cases += [("Mod", {}, (x, y), np.mod(x, y)), ("Mod", {"fmod": 1}, (x, y), np.fmod(x, y))]
        floats = np.array([0, 0.1, -0.1, 1, -1, 2.5, -7.3, 3e38, -1e-30, 5e-42, np.inf, -np.inf, np.nan], np.float32)
        x, y = floats[:, None], floats[None, :]
        cases.append(("Mod", {"fmod": 1}, (x, y), np.fmod(x, y)))
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


REFUSED: dict[str, tuple[str, dict[str, Any], Sequence[Array], type[MlfError], tuple[str, ...]]] = {
    "floor of floats": ("Mod", {}, (ONE, ONE), InputFileError, ("onnx-malformed", "node 0 (Mod) writing 'y'", "fmod")),
    "bits of floats": (
        "BitwiseAnd", {}, (ONE, ONE), UnsupportedModelError,
        ("type-unsupported", "node 0 (BitwiseAnd) writing 'y'", "float32", "'x0'"),
    ),
    "signed shift": (
        "BitShift", {"direction": "LEFT"}, (np.ones(1, np.int32),) * 2, UnsupportedModelError,
        ("type-unsupported", "node 0 (BitShift) writing 'y'", "int32", "'x0'"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    operator, attributes, inputs, kind, words = REFUSED[name]
    with pytest.raises(kind) as caught:
        parse_onnx(written(operator, attributes, inputs, inputs[0].dtype.name), "net", "net.onnx")
    assert_refused(caught.value, *words)
