"""How many examples hypothesis draws: few on each push, all in the sweep."""

from __future__ import annotations

from hypothesis import settings

PUSH, SWEEP = "push", "sweep"
"""Names of hypothesis profiles; ``pytest --hypothesis-profile sweep`` selects the second one."""


def examples(sweep: int) -> int:
    """Return ``sweep`` in the sweep, and a fifth of it on each push, but at least 10."""
    return sweep if settings().max_examples == settings.get_profile(SWEEP).max_examples else max(10, sweep // 5)
