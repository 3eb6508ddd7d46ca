"""Read and extend construction variables of users, in each of the forms that SCons accepts.

``mlf_target`` reads the arguments ``NAME=VALUE`` of SCons' command line: those that the tool knows, and the one that
selects the target.
"""

from __future__ import annotations

import copy
import math
import os
from collections import UserList, deque
from collections.abc import Iterable, Sequence
from typing import Any

from SCons.Script import ARGUMENTS

from mlfbuild.core import UsageError, unknown
from mlfbuild.scons.actions import as_user_error

# SCons splits CPPPATH like PATH, but LIBS like a command line.
_SEPARATORS = {"CPPPATH": os.pathsep, "LIBS": None}
"""Separators at which SCons splits a string; ``None`` is white space."""


def listed(env: Any, key: str) -> list[Any]:
    """Return the elements of the construction variable ``key``, as SCons reads it.

    ``key`` is one of those in ``_SEPARATORS`` if its value is a string. Elements are texts or nodes, and are not
    expanded. The list is new and may be changed.
    """
    value = env.get(key)
    if value is None:
        return []
    if isinstance(value, str):
        return [word for word in value.split(_SEPARATORS[key]) if word]
    # SCons accepts a single node or object in place of a list.
    return list(value) if isinstance(value, (list, tuple, UserList, deque)) else [value]


def flag(env: Any, key: str) -> bool:
    """Return the construction variable ``key`` as a bool; on the command line it is a string such as ``0`` or ``no``.

    The accepted words are those of SCons' ``BoolVariable``.
    """
    value = env.get(key)
    return (
        value.lower() not in {"", "0", "n", "no", "f", "false", "off", "none"}
        if isinstance(value, str)
        else bool(value)
    )


def time_limit(env: Any) -> float:
    """Return ``MLFTIMEOUT`` in seconds; on the command line it is a string. Raises ``UsageError``.

    The value must be a positive number: 0 would end every case, and infinity would never end a build that hangs.
    """
    text = str(env["MLFTIMEOUT"])
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    # This also refuses NaN, which compares false.
    if not 0 < seconds < math.inf:
        raise UsageError(
            "invalid-timeout",
            place="MLFTIMEOUT",
            reason=f"{text!r} is not a time limit",
            hint="set it to a number of seconds",
        )
    return seconds


def extend(env: Any, key: str, added: Sequence[Any], dropped: Iterable[Any] = (), *, front: bool = False) -> None:
    """Add ``added`` after (or with ``front``, before) the elements of ``key`` and remove ``dropped``.

    Elements that are already there keep their position. A list, tuple, ``CLVar`` or ``deque`` keeps its type; the
    object itself is not changed, as other environments may share it.
    """
    gone = list(dropped)
    kept = [item for item in listed(env, key) if not _is_among(item, gone)]
    new = [item for item in added if not _is_among(item, kept)]
    wanted = [*new, *kept] if front else [*kept, *new]
    value = env.get(key)
    if isinstance(value, (UserList, deque)):
        changed = copy.copy(value)
        changed.clear()
        changed.extend(wanted)
        env.Replace(**{key: changed})
    else:
        env.Replace(**{key: tuple(wanted) if isinstance(value, tuple) else wanted})


def _is_among(item: Any, items: Iterable[Any]) -> bool:
    return any(item is other for other in items)  # nodes are unique, and equal strings may be intended


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
