"""Licences: SPDX expressions, and words that are none."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

OWN = "Apache-2.0"
"""The licence of mlfbuild: of its kernels, its runtime, its board support, and of its text in what it generates."""
_LONGEST = 1000
"""Characters of an expression; what is longer is the text of a licence."""
REFERENCE = re.compile(r"LicenseRef-[A-Za-z0-9.-]+")
"""A licence that is not in SPDX's list; whoever uses one says elsewhere what it is."""


@cache
def spdx_licensing() -> Any:
    """Return what parses SPDX expressions, a ``license_expression.Licensing``; making it takes a tenth of a second."""
    from license_expression import get_spdx_licensing

    return get_spdx_licensing()


def spdx_expression(text: str) -> str | None:
    """Return ``text`` as an SPDX licence expression with its operators and names in SPDX's own spelling.

    ``None`` where it is none: it does not parse, or it has a name that neither is in SPDX's list nor begins with
    ``LicenseRef-``.
    """
    from license_expression import ExpressionError

    if len(text) > _LONGEST:
        return None
    licensing = spdx_licensing()
    try:
        parsed = licensing.parse(text, strict=True)
    except (ExpressionError, IndexError):  # the latter of empty brackets
        return None
    if parsed is None or any(REFERENCE.fullmatch(key) is None for key in licensing.unknown_license_keys(parsed)):
        return None
    return str(parsed)


def references(expression: str) -> list[str]:
    """Return the names in an SPDX expression that are not in SPDX's list, sorted."""
    return sorted(set(REFERENCE.findall(expression)))


def of_generated_code(model: str) -> str:
    """Return the licence of code that mlfbuild generated from a model with the licence ``model``: both apply.

    Empty where the model's is unknown, or no SPDX expression.
    """
    expression = spdx_expression(model) if model else None
    if expression is None:
        return ""
    return OWN if expression == OWN else spdx_expression(f"{OWN} AND ({expression})") or ""
