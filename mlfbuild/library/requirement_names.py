"""Names of external dependencies, by which archives and project files refer to the same one."""

from __future__ import annotations

import re

NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
"""The name of a dependency, as a regular expression: it becomes part of folder names and CMake targets."""
_SEPARATORS = re.compile(r"[_\s]+")


def short_name(text: str) -> str:
    """Return the form of a name that archives and project files are compared by: ``cmsis-nn`` for ``CMSIS_NN``.

    White space and ``_`` become one hyphen; dots stay. The result need not match ``NAME``: names from archives are
    checked afterwards.
    """
    return _SEPARATORS.sub("-", text.strip()).lower()
