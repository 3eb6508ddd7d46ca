"""Arguments ``NAME=VALUE`` of SCons' command line: those that the tool knows, and the one that selects the target."""

from __future__ import annotations

from typing import Any

from SCons.Script import ARGUMENTS

from mlfbuild.core import UsageError, unknown
from mlfbuild.scons.actions import as_user_error

VARIABLES = frozenset({"MLFFROZEN", "MLFNOWAIT", "MLFTIMEOUT"})
"""Construction variables that the command line may set: they are a choice of each build."""


@as_user_error
def mlf_target(_env: Any, default: str, known: list[str] | tuple[str, ...] = ()) -> str:
    """Return the target that ``scons target=NAME`` selects, or ``default``; refuse unknown arguments.

    SCons itself ignores words such as ``taget=m55`` that no SConscript reads, and would build ``default``. ``known``
    names further arguments that your SConstruct reads.
    """
    words = ("target", *known, *sorted(VARIABLES))
    # SCons itself never checks these words, because any SConscript may read any of them.
    for name in ARGUMENTS:
        if name not in words:
            mistake = unknown("argument", name, words)
            raise UsageError(
                mistake.code,
                place=f"scons {name}={ARGUMENTS[name]}",
                reason=mistake.reason,
                hint="if your SConstruct reads it, list it in MlfTarget(..., known=[...])",
            )
    # ARGUMENTS has the last value if an argument is given twice, as in SCons itself.
    return str(ARGUMENTS.get("target", default))
