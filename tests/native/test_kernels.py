"""The C of each operator, with sanitizers, equals TensorFlow Lite Micro or LiteRT: integers exactly, floats to 1e-5."""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from support.board_cases import Job, wrong_networks
from support.drawing import Array, Case
from support.examples import first_on_push
from support.host_c import run_many_on_host
from support.native import compile_bytes
from support.networks import OPERATORS, OPERATORS_AND_TYPES, TYPES, drawn, judged
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


# A network of every operator and element type, in one firmware, on an emulated Cortex-M4 and Cortex-M55.


@functools.cache
def networks() -> list[tuple[str, Case, list[Array]]]:
    """Return a network of each operator and type, but not the smallest one, and its outputs."""
    found = []
    for operator, dtype in OPERATORS_AND_TYPES:
        for case in reversed(drawn(operator, dtype, 3)):
            try:
                expected = judged(operator, dtype, case)
            except RuntimeError:
                continue
            found.append((f"{operator.lower()}_{dtype}", case, expected))
            break
    assert len(found) == len(OPERATORS_AND_TYPES)
    return found


def jobs(cpu: str) -> list[Job]:
    return [(compile_bytes(case.model, name, cpu), case.inputs, expected) for name, case, expected in networks()]


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", first_on_push(["cortex-m55", "cortex-m4"]))
def test_operators_on_the_board(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    assert wrong_networks(jobs(cpu), cpu, tmp_path, tool) == []
