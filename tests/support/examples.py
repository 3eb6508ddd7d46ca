"""How much each push tests, and how much the sweep."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import settings

PUSH, SWEEP = "push", "sweep"
"""Names of hypothesis profiles; ``pytest --hypothesis-profile sweep`` selects the second one."""


def swept() -> bool:
    """Whether the tests run in the sweep."""
    return settings().max_examples == settings.get_profile(SWEEP).max_examples


def examples(sweep: int) -> int:
    """Return ``sweep`` in the sweep, and a tenth of it on each push, but at least 5."""
    return sweep if swept() else max(5, sweep // 10)


def first_on_push(cases: Iterable[Any], count: int = 1) -> list[Any]:
    """Return parameters of a test: the first ``count`` of ``cases`` for each push, the others for the sweep only."""
    every = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [
        *(pytest.param(*case) for case in every[:count]),
        *(pytest.param(*case, marks=pytest.mark.sweep) for case in every[count:]),
    ]
