"""DFT and STFT, in numpy and as C, against ONNX's evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from mlfbuild.core import InputFileError, MlfError, UnsupportedModelError
from support.onnx_cases import Array, Case, check, file_of, parsed
from support.onnx_checks import floats

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
