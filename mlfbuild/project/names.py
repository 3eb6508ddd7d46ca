"""The names of external dependencies, by which archives and project files meet."""

from __future__ import annotations

import re

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
"""What names a dependency, as a regular expression: it becomes part of folders and of CMake's targets."""
_SEPARATORS = re.compile(r"[_\s]+")


def short_name(text: str) -> str:
    """Return ``text`` as archives and project files are compared by: ``CMSIS_NN`` is ``cmsis-nn``."""
    return _SEPARATORS.sub("-", text.strip()).lower()
