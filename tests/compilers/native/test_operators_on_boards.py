"""A network of every operator and element type, in one firmware, on an emulated Cortex-M4 and Cortex-M55."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.board_cases import Job, wrong_networks
from support.native import compile_bytes
from support.networks import OPERATORS_AND_TYPES, drawn, judged


def jobs(cpu: str) -> list[Job]:
    """One of the networks of each operator and type that its judge takes: not the smallest, the first."""
    found: list[Job] = []
    for operator, dtype in OPERATORS_AND_TYPES:
        for case in reversed(drawn(operator, dtype, 3)):
            try:
                expected = judged(operator, dtype, case)
            except RuntimeError:
                continue
            library = compile_bytes(case.model, f"{operator.lower()}_{dtype}", cpu)
            found.append((library, case.inputs, expected))
            break
    assert len(found) == len(OPERATORS_AND_TYPES)
    return found


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_operators_on_the_board(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    assert wrong_networks(jobs(cpu), cpu, tmp_path, tool) == []
