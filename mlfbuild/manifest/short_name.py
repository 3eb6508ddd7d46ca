"""The names of external dependencies, by which archives and project files meet."""

from __future__ import annotations

import re

_SEPARATORS = re.compile(r"[_\s]+")


def short_name(text: str) -> str:
    """Return ``text`` as archives and project files are compared by: ``CMSIS_NN`` is ``cmsis-nn``."""
    return _SEPARATORS.sub("-", text.strip()).lower()
