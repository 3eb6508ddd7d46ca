"""Turn a compiler's message about a missing header into an error about the archive."""

from __future__ import annotations

import re

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library import Module, library_of_header

STANDARD_HEADER = re.compile(
    r"(?:assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp|signal|stdalign|stdarg|stdbool"
    r"|stddef|stdint|stdio|stdlib|stdnoreturn|string|tgmath|time|wchar|wctype|arm_acle|arm_mve)\.h"
)
"""The headers that a C compiler for Arm includes."""
# GCC ends with "No such file or directory", clang with "file not found".
_MISSING = re.compile(r"fatal error: '?([^\s':]+)'?(?:: No such file or directory| file not found)")


def missing_header(module: Module, output: str) -> UnsupportedModelError | None:
    """Return the error if ``output`` of GCC or clang reports a missing header of a library that ``module`` includes.

    ``None`` if it reports none, or a header that the compiler itself should have.
    """
    found = _MISSING.search(output)
    # A missing <stdint.h> is a broken toolchain; an error about the archive would send the user to the wrong place.
    if found is None or STANDARD_HEADER.fullmatch(found[1]):
        return None
    library = library_of_header(found[1])
    if library is not None:
        return UnsupportedModelError(
            "header-not-in-archive",
            place=module.name,
            reason=f"its code includes {found[1]} of {library.title}, which is not in the archive",
            hint=f"name {library.name} under `dependencies` in the project file",
        )
    return UnsupportedModelError(
        "header-not-in-archive",
        place=module.name,
        reason=f"its code includes {found[1]}, which is not in the archive",
        hint="build it into firmware that has this library, or export the model for the target `c` only",
    )
