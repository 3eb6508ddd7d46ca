"""A million output values of each operator and type against their judge; the sweep prints how many differ."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.networks import OPERATORS_AND_TYPES
from support.rates import VALUES, Rate, rate
from support.streaming_networks import STREAMING

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
