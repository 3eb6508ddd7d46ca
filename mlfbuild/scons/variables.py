"""Read and extend construction variables of users, in each of the forms that SCons accepts."""

from __future__ import annotations

import copy
import math
import os
from collections import UserList, deque
from collections.abc import Iterable, Sequence
from typing import Any

from mlfbuild.core import UsageError

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
    """Return ``MLFTIMEOUT`` in seconds; on the command line it is a string. Raises ``UsageError``."""
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
