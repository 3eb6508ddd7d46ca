"""A network of every operator and element type, in one firmware, on an emulated Cortex-M4 and Cortex-M55."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from support.board_cases import Job, wrong_networks
from support.drawing import Array, Case
from support.examples import first_on_push
from support.native import compile_bytes
from support.networks import OPERATORS_AND_TYPES, drawn, judged


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
