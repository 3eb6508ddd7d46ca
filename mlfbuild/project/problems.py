"""Mistakes in a project file: where, which key, why, and the nearest right word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

KeyPath = tuple[str | int, ...]
"""The way from the top of the file to a value: ``("models", "kws", "targets", 0)``."""

_PLAIN_SEGMENT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_QUOTE = 60


@dataclass(frozen=True, order=True)
class Position:
    """Line and column, counted from 1 as compilers and editors do."""

    line: int
    column: int


def end_of(text: str) -> Position:
    """Return the position after the last character of ``text``."""
    lines = text.split("\n")
    return Position(len(lines), len(lines[-1]) + 1)


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake; problems sort in file order."""

    position: Position
    path: KeyPath
    reason: str

    def __str__(self) -> str:
        place = f"{self.position.line}:{self.position.column}: "
        return place + (f"{dotted(self.path)}: {self.reason}" if self.path else self.reason)


def dotted(path: KeyPath) -> str:
    """Return ``models.kws.targets[0]`` for the way to a value."""
    text = ""
    for segment in path:
        if isinstance(segment, int):
            text += f"[{segment}]"
        else:
            text += ("." if text else "") + (segment if _PLAIN_SEGMENT.fullmatch(segment) else quoted(segment))
    return text


def quoted(text: str) -> str:
    """Return ``text`` in double quotes, shortened, on one line and without characters that steer a terminal."""
    if len(text) > _LONGEST_QUOTE:
        text = text[:_LONGEST_QUOTE] + "..."
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f'"{shown}"'


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean "kws"?)`` for the word of ``known`` nearest to ``word``, or ``""`` where none is near."""
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(word.lower(), by_lower_case, n=1)
    return f" (did you mean {quoted(by_lower_case[near[0]])}?)" if near else ""


def unknown(what: str, word: str, known: Iterable[str]) -> str:
    """Return ``unknown cpu "cortex-m44" (did you mean "cortex-m4"?)``, or with all known words where none is near."""
    words = list(known)
    near = suggestion(word, words) or f" (known: {', '.join(words)})"
    return f"unknown {what} {quoted(word)}{near}"
