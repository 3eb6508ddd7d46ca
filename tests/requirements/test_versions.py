import pytest
from hypothesis import given, strategies as st

from mlfbuild.requirements.versions import is_range, range_problem, same_version, satisfies

COMMIT = "22080c68d040c98139e6cb1549473e3149735f4d"


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        ("v7.0.0", "v7.0.0"), ("v7.0.0", "7.0.0"), ("7.0.0", "V7.0.0"), ("7.0", "v7.0.0"), ("main", "main"),
        ("vendor", "vendor"), (COMMIT, COMMIT), (COMMIT, COMMIT[:7]), (COMMIT[:10].upper(), COMMIT),
        ("v7.0.0", ">=6,<8"), ("7.2.1", "7.*"), ("v7.0", "~=7.0"), ("7.0.0", "== 7.0.0"), ("8.0.0rc1", ">=7"),
        ("23.05", "23.5"), ("v7.0.0", ">=6, <8, !=7.1"),
    ],
)  # fmt: skip
def test_satisfying_versions(stated: str, wanted: str) -> None:
    assert satisfies(stated, wanted)


@pytest.mark.parametrize(
    ("stated", "wanted"),
    [
        ("v7.0.0", "v4.1.0"), ("v7.0.0", "v7.0.1"), ("v7", "v70"), ("main", "Main"), ("main", "v7.0.0"),
        (COMMIT, "v7.0.0"), ("v7.0.0", COMMIT), (COMMIT[:6], COMMIT), (COMMIT, COMMIT[::-1]), ("main", ">=6"),
        ("v8.0.0", ">=6,<8"), ("7.0.0", "8.*"), ("8.0", "~=7.0"), (COMMIT, ">=1"), ("endor", "vendor"),
        ("v7.0.0+m", "7.0"), ("20230501", "2023050"),
    ],
)  # fmt: skip
def test_unsatisfying_versions(stated: str, wanted: str) -> None:
    assert not satisfies(stated, wanted)


@pytest.mark.parametrize("wanted", ["^7.0", ">=", "7.*.1", ">=6,,<8,x", "=7", "> main", "~7"])
def test_invalid_ranges(wanted: str) -> None:
    assert is_range(wanted)
    assert range_problem(wanted) == "is neither a version nor a range in the form of pip (>=6,<8)"


@pytest.mark.parametrize("wanted", [">=6,<8", "7.*", "v7.*", "~=7.0", "v7.0.0", "main", COMMIT, "6.*,!=6.1"])
def test_valid_ranges(wanted: str) -> None:
    assert range_problem(wanted) is None


@given(st.text(max_size=12), st.text(max_size=12))
def test_same_version_is_symmetric(one: str, other: str) -> None:
    assert same_version(one, one)
    assert same_version(one, other) == same_version(other, one)


@given(st.text("0123456789v.*<>=~!, abcf", max_size=12))
def test_any_text_is_accepted_or_refused(wanted: str) -> None:
    if range_problem(wanted) is None:
        assert isinstance(satisfies("v7.0.0", wanted), bool)
