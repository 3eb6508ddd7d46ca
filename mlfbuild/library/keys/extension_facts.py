"""Facts for later stages that archives record by name (``extensions``): which names and values they may have."""

from __future__ import annotations

import math
import re

from mlfbuild.core import Mistake, in_quotes

FACT_NAME = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
_LONGEST = 4096
_LARGEST = 2**63 - 1


def fact_problem(value: object) -> Mistake | None:
    """Return why ``value`` cannot be recorded: it is not text, a number or a flag, or too large.

    Whole numbers have at most 63 bits and a sign, and floats must be finite. ``true`` and ``false`` are accepted.
    """
    if isinstance(value, str) and len(value) <= _LONGEST:
        # A bool is an int in Python, so this line accepts true and false as well.
        return None
    if isinstance(value, int) and abs(value) <= _LARGEST:
        return None
    if isinstance(value, float) and math.isfinite(value):
        return None
    reason = f"must be a text of at most {_LONGEST} characters, a number, true or false"
    return Mistake("fact-invalid", reason=reason, hint="shorten it, or record a name that refers to it")


def fact_name_problem(name: str) -> Mistake | None:
    """Return why ``name`` cannot name a fact.

    Names are those of ``FACT_NAME``: they become keys of JSON and of build files. ``None`` if ``name`` is one.
    """
    if re.fullmatch(FACT_NAME, name):
        return None
    hint = "use a letter, then letters, digits, _, . and -, at most 64"
    return Mistake("invalid-name", reason=f"{in_quotes(name)} cannot name a fact", hint=hint)
