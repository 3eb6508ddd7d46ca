"""The C of each operator, with sanitizers, equals TensorFlow Lite Micro or LiteRT: integers exactly, floats to 1e-5."""

from __future__ import annotations

import pytest

from support.host_c import run_many_on_host
from support.native import compile_bytes
from support.networks import OPERATORS, TYPES, drawn, judged
from support.oracle import assert_equal

NETWORKS = {"AVERAGE_POOL_2D": 3, "CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "MAX_POOL_2D": 3}
"""How many there are of each type; 2 for the other operators."""
SWEEP_NETWORKS = 100


def check(operator: str, count: int, optimise: str = "-O0") -> None:
    jobs, expected = [], []
    every = [(dtype, case) for dtype in TYPES[operator] for case in drawn(operator, dtype, count)]
    for index, (dtype, case) in enumerate(every):
        try:
            expected.append(judged(operator, dtype, case))
        except RuntimeError:  # TensorFlow Lite Micro does not take every network that TFLite's rules allow
            continue
        library = compile_bytes(case.model, f"net{index}")
        jobs.append((library, library.modules[0], case.inputs))
    assert len(jobs) > len(every) // 2
    for (library, _, _), got, wanted in zip(jobs, run_many_on_host(jobs, optimise=optimise), expected, strict=True):
        for value, right in zip(got, wanted, strict=True):
            assert_equal(value, right, f"{operator}\n{library.modules[0].source_text.decode()}")


@pytest.mark.parametrize("operator", OPERATORS)
def test_equals_the_reference(operator: str) -> None:
    check(operator, NETWORKS.get(operator, 2))


@pytest.mark.sweep
@pytest.mark.parametrize("operator", OPERATORS)
def test_equals_the_reference_for_many_cases(operator: str) -> None:
    check(operator, SWEEP_NETWORKS, "-O1")
