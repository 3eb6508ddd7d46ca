"""DFT and STFT, in numpy and as C, against ONNX's evaluator."""

import numpy as np
import pytest
from onnx import helper

from mlfbuild.core import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.native.graph.nodes import evaluate
from support.errors import raises
from support.onnx_cases import Array, Case, check, file_of, parsed, written
from support.onnx_checks import floats
from support.onnx_models import reference

pytestmark = pytest.mark.usefixtures("same_numbers")


def number(value: int) -> Array:
    return np.array(value, np.int64)


def cases() -> dict[str, Case]:
    """Return transforms of all kinds of lengths: powers of 2 and 4, odd and prime ones, their products, and 1."""
    found: dict[str, Case] = {}
    for length in (1, 2, 4, 7, 8, 12, 30, 32):
        found[f"complex {length}"] = ("DFT", {}, {"x": floats(2, length, 2)}, {})
        found[f"real {length}"] = ("DFT", {"onesided": length % 3 // 2}, {"x": floats(2, length, 1)}, {})
    found["inverse"] = ("DFT", {"inverse": 1}, {"x": floats(1, 20, 2)}, {})
    found["inverse of real"] = ("DFT", {"inverse": 1}, {"x": floats(1, 6, 1)}, {})
    found["real from half"] = ("DFT", {"inverse": 1, "onesided": 1}, {"x": floats(2, 9, 2)}, {})
    found["odd from half"] = ("DFT", {"inverse": 1, "onesided": 1}, {"x": floats(2, 8, 2)}, {"l": number(15)})
    found["half of half"] = ("DFT", {"inverse": 1, "onesided": 1}, {"x": floats(2, 4, 2)}, {"l": number(16)})
    found["cut"] = ("DFT", {"onesided": 1}, {"x": floats(2, 10, 1)}, {"l": number(8)})
    found["longer"] = ("DFT", {"onesided": 1}, {"x": floats(2, 10, 1)}, {"l": number(18)})
    found["columns"] = ("DFT", {}, {"x": floats(2, 6, 3, 2)}, {"no": number(0), "axis": number(1)})
    found["rows of images"] = ("DFT", {"onesided": 1}, {"x": floats(4, 3, 2, 1)}, {"no": number(0), "axis": number(-4)})
    found["attribute"] = ("DFT", {"opset": 17, "axis": 2}, {"x": floats(2, 3, 5, 2)}, {})
    found["frames"] = ("STFT", {}, {"x": floats(2, 40, 1)}, {"step": number(6), "w": floats(16)})
    found["frames of rest"] = ("STFT", {"onesided": 0}, {"x": floats(1, 21, 1)}, {"step": number(5), "no": number(0),
                                                                                 "l": number(9)})  # fmt: skip
    found["complex frames"] = ("STFT", {"onesided": 0}, {"x": floats(1, 20, 2)}, {"step": number(4), "w": floats(8)})
    return found


def test_transforms() -> None:
    check(cases())


X = {"x": floats(1, 8, 1)}
REFUSED: dict[str, tuple[Case, type[MlfError], str]] = {
    "axis": (("DFT", {}, X, {"no": number(0), "a": number(5)}), InputFileError, "onnx-malformed"),
    "parts": (("DFT", {}, X, {"no": number(0), "a": number(2)}), InputFileError, "onnx-malformed"),
    "three parts": (("DFT", {}, {"x": floats(1, 4, 3)}, {}), UnsupportedModelError, "operator-variant-unsupported"),
    "length": (("DFT", {}, X, {"l": number(0)}), InputFileError, "onnx-malformed"),
    "huge": (("DFT", {"onesided": 1}, X, {"l": number(1 << 24)}), UnsupportedModelError,
             "operator-variant-unsupported"),
    "computed": (("DFT", {}, X | {"l": number(8)}, {}), UnsupportedModelError, "input-not-constant"),
    "step": (("STFT", {}, X, {"s": number(0), "w": floats(4)}), InputFileError, "onnx-malformed"),
    "frames": (("STFT", {}, X, {"s": number(2), "w": floats(9)}), InputFileError, "onnx-malformed"),
    "window": (
        ("STFT", {}, X, {"s": number(2), "w": floats(4), "l": number(6)}), UnsupportedModelError,
        "operator-variant-unsupported",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_transforms(name: str) -> None:
    case, error, code = REFUSED[name]
    with pytest.raises(error) as caught:
        parsed(file_of(case, [None] * 3))
    assert (caught.value.code, f"node 0 ({case[0]})" in caught.value.place) == (code, True)


def signal(length: int, step: int, *, windowed: bool) -> Case:
    names = {"x": floats(1, 128, 1), "s": number(step)}
    window = {"w": floats(length)} if windowed else {"l": number(length)}
    return "STFT", {}, names | window, {}


COMPUTED: dict[str, Case] = {
    "step": signal(16, 8, windowed=True),
    "windows with steps": (
        "Col2Im", {"strides": [2, 2]}, {"x": floats(1, 9, 4), "i": np.array([5, 5]), "b": np.array([3, 3])}, {},
    ),
    "windows of volumes": (
        "Col2Im", {}, {"x": floats(2, 10, 12), "i": np.array([3, 4, 5]), "b": np.array([1, 1, 5])}, {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPUTED)
def test_computed_parameters_that_the_shape_of_the_result_determines(name: str) -> None:
    data, wanted = written(COMPUTED[name])
    graph, inputs = parsed(data), COMPUTED[name][2]
    np.testing.assert_allclose(evaluate(graph, inputs)["y"], wanted, rtol=1e-4, atol=1e-4)
    assert sum("is not read" in note for note in graph.notes) == len(inputs) - (2 if "w" in inputs else 1)


@pytest.mark.parametrize(("axis", "onesided"), [(1, 1), (2, 0), (-2, 0)])
def test_computed_axes(axis: int, onesided: int) -> None:
    """If several axes fit, the axis selects one of the results in every run."""
    x = floats(1, 6, 6, 1)
    node = helper.make_node("DFT", ["x", "", "a"], ["y"], onesided=onesided)
    ports = [helper.make_tensor_value_info("x", 1, x.shape), helper.make_tensor_value_info("a", 7, [])]
    made = helper.make_model(
        helper.make_graph([node], "g", ports, [helper.make_tensor_value_info("y", 1, [])]),
        opset_imports=[helper.make_opsetid("", 20)], ir_version=8,
    )  # fmt: skip
    feeds = {"x": x, "a": number(axis)}
    (wanted,) = reference(made.SerializeToString(), feeds)
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", 1, wanted.shape))
    graph = parsed(made.SerializeToString())
    np.testing.assert_allclose(evaluate(graph, feeds)["y"], wanted, rtol=1e-4, atol=1e-5)
    assert ["is not read" in note for note in graph.notes] == [bool(onesided)]


def test_ambiguous_windows_are_refused() -> None:
    case: Case = ("Col2Im", {}, {"x": floats(1, 5, 5), "i": np.array([5, 5]), "b": np.array([1, 5])}, {})
    with raises(UnsupportedModelError, "input-not-constant"):
        parsed(written(case)[0])
