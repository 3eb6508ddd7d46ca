"""The C of each operator, with sanitizers, equals TensorFlow Lite Micro or LiteRT: integers exactly, floats to 1e-5."""

from collections.abc import Sequence

import pytest

from support.host_c import run_many_on_host
from support.native import compile_bytes
from support.networks import OPERATORS, TYPES, drawn, judged
from support.oracle import assert_equal

NETWORKS = {"AVERAGE_POOL_2D": 3, "CONV_2D": 3, "DEPTHWISE_CONV_2D": 3, "MAX_POOL_2D": 3}
"""How many there are of each type on each push; 2 for the other operators."""
TOGETHER = 9
"""Operators in one program on each push: they share kernel headers and harness, which take half of the time."""
SWEEP_NETWORKS = 100


def check(operators: Sequence[str], count: int, optimise: str = "-O0") -> None:
    """Check ``count`` networks of each type, or those of each push if it is 0."""
    jobs, expected = [], []
    for operator in operators:
        networks = count or NETWORKS.get(operator, 2)
        every = [(dtype, case) for dtype in TYPES[operator] for case in drawn(operator, dtype, networks)]
        taken = 0
        for index, (dtype, case) in enumerate(every):
            try:
                right = judged(operator, dtype, case)
            except RuntimeError:  # TensorFlow Lite Micro does not take every network that TFLite's rules allow
                continue
            taken += 1
            library = compile_bytes(case.model, f"{operator.lower()}_{index}")
            jobs.append((library, library.modules[0], case.inputs))
            expected.append(right)
        assert taken > len(every) // 2, operator
    for (library, _, _), got, wanted in zip(jobs, run_many_on_host(jobs, optimise=optimise), expected, strict=True):
        for value, right in zip(got, wanted, strict=True):
            assert_equal(value, right, f"{library.modules[0].name}\n{library.modules[0].source_text.decode()}")


@pytest.mark.parametrize("first", range(0, len(OPERATORS), TOGETHER))
def test_equals_the_reference(first: int) -> None:
    check(list(OPERATORS)[first : first + TOGETHER], 0)


@pytest.mark.sweep
@pytest.mark.parametrize("operator", OPERATORS)
def test_equals_the_reference_for_many_cases(operator: str) -> None:
    check([operator], SWEEP_NETWORKS, "-O1")
