"""Licences: SPDX expressions, and other texts."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

OWN = "Apache-2.0"
"""The licence of mlfbuild: its kernels, runtime, board support, and its text in generated files."""
_LONGEST = 1000
"""Maximum characters of an expression; a longer text is that of a licence."""
REFERENCE = re.compile(r"LicenseRef-[A-Za-z0-9.-]+")
"""A licence that is not in SPDX's list and is described elsewhere."""


@cache
def spdx_licensing() -> Any:
    """Return the parser of SPDX expressions (``license_expression.Licensing``), which takes 0.1 s to create."""
    from license_expression import get_spdx_licensing

    return get_spdx_licensing()


def spdx_expression(text: str) -> str | None:
    """Return ``text`` as an SPDX licence expression in SPDX's spelling.

    ``None`` if it does not parse, or has a name that neither is in SPDX's list nor begins with ``LicenseRef-``.
    """
    from license_expression import ExpressionError

    # A licence's whole text is not parsed: it would take long, and never be an expression.
    if len(text) > _LONGEST:
        return None
    licensing = spdx_licensing()
    try:
        parsed = licensing.parse(text, strict=True)
    except (ExpressionError, IndexError):  # IndexError: empty brackets
        return None
    if parsed is None or any(REFERENCE.fullmatch(key) is None for key in licensing.unknown_license_keys(parsed)):
        return None
    return str(parsed)


def references(expression: str) -> list[str]:
    """Return the names in an SPDX expression that are not in SPDX's list, sorted."""
    return sorted(set(REFERENCE.findall(expression)))


def of_generated_code(model: str) -> str:
    """Return the licence of code that mlfbuild generated from a model with the licence ``model``: both apply.

    Empty if the model's is unknown or not an SPDX expression.
    """
    expression = spdx_expression(model) if model else None
    if expression is None:
        return ""
    # Brackets: AND binds more strongly than OR (SPDX 2.3, annex D), and the licence of the model may be a choice.
    return OWN if expression == OWN else spdx_expression(f"{OWN} AND ({expression})") or ""
