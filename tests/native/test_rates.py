"""A million output values of each operator and type against their judge; the sweep prints how many differ."""

from collections.abc import Callable

import numpy as np
import pytest

from support.host_c import run_on_host
from support.native import compile_bytes
from support.networks import OPERATORS_AND_TYPES
from support.rates import VALUES, Rate, rate
from support.shape_networks import KINDS, constant_rate, drawn_shapes, dtype_of, judged
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
