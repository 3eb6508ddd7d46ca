import numpy as np
import pytest

from mlfbuild.verify.compare import first_difference, float_tolerance

NAN, INF = float("nan"), float("inf")


def difference(expected: list[float], got: list[float], dtype: str) -> str:
    return str(first_difference(np.array(expected, dtype), np.array(got, dtype)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
def test_integers_must_be_equal(dtype: str) -> None:
    assert difference([1, 2, 3], [1, 2, 3], dtype) == "None"
    assert difference([1, 2, 3], [1, 3, 4], dtype) == "element 1: expected 2, got 3 (2 of 3 elements differ)"


def test_integers_do_not_wrap_around() -> None:
    assert difference([127, -128], [-128, 127], "int8") == "element 0: expected 127, got -128 (2 of 2 elements differ)"


def test_booleans_must_be_equal() -> None:
    assert difference([0, 1], [1, 1], "bool") == "element 0: expected False, got True (1 of 2 elements differ)"


@pytest.mark.parametrize(
    ("expected", "got", "right"),
    [
        ([100.0, 0.0], [100.0, 0.00099], True), ([100.0, 0.0], [100.0, 0.00101], False),
        ([-100.0, 1.0], [-100.0005, 1.0], True), ([1e-30, 2e-30], [1e-30, 2.1e-30], False),
        ([0.0, 0.0], [0.0, -0.0], True), ([0.0, 0.0], [0.0, 1e-30], False), ([NAN, 1.0], [NAN, 1.0], True),
        ([NAN, 1.0], [0.0, 1.0], False), ([1.0, 2.0], [NAN, 2.0], False), ([INF, 1.0], [INF, 1.0], True),
        ([INF, 1.0], [-INF, 1.0], False), ([INF, 1.0], [INF, 2.0], False), ([1.0, 2.0], [INF, 2.0], False),
        ([3e38, 1.0], [-3e38, 1.0], False),
    ],
)  # fmt: skip
def test_floats_may_differ_by_a_fraction_of_the_largest(expected: list[float], got: list[float], right: bool) -> None:
    assert (difference(expected, got, "float32") == "None") == right


def test_the_tolerance_grows_with_the_square_root_of_the_layers() -> None:
    assert float_tolerance(0) == float_tolerance(1) == 1e-5
    assert float_tolerance(25) == pytest.approx(5e-5)
    expected, got = np.array([100, 0], np.float32), np.array([100, 0.004], np.float32)
    assert first_difference(expected, got, float_tolerance(25)) is None
    assert first_difference(expected, got, float_tolerance(9)) is not None
