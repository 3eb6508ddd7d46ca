"""Patterns of paths below a folder: ``Source/**/*.c``."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

_ANY_FOLDERS = "**"


def has_wildcard(pattern: str) -> bool:
    """Return whether ``pattern`` can match more than one path."""
    return not set("*?[").isdisjoint(pattern)


def base_folder(pattern: str) -> str:
    """Return the folder that contains all matches of ``pattern``, empty for the top."""
    fixed = []
    for name in _names(pattern)[:-1]:
        if has_wildcard(name):
            break
        fixed.append(name)
    return "/".join(fixed)


def matches(pattern: str, path: str) -> bool:
    """Return whether ``pattern`` matches ``path``, a file with slashes between its folders; case matters.

    ``*``, ``?`` and ``[...]`` match within a name, ``**`` any number of folders, or none; at the end, all files below.
    """
    return _fits(_names(pattern), path.split("/"))


def plain_path(path: str) -> str:
    """Return ``path`` in its shortest form: ``./src//a.c`` is ``src/a.c``, and ``.`` is empty."""
    return "/".join(_names(path))


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in {"", "."}]


def _fits(patterns: Sequence[str], names: Sequence[str]) -> bool:
    if not patterns or not names:
        return not patterns and not names
    first, rest = patterns[0], patterns[1:]
    if first == _ANY_FOLDERS:
        return not rest or _fits(rest, names) or _fits(patterns, names[1:])
    return fnmatch.fnmatchcase(names[0], first) and _fits(rest, names[1:])
