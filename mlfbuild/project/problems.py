"""Mistakes in a project file: reason, key, line, and the nearest known word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mlfbuild.core import Diagnostic

KeyPath = tuple[str | int, ...]
"""The way from the top of the file to a value: ``("models", "kws", "targets", 0)``."""

_PLAIN_SEGMENT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LONGEST_QUOTE = 60


class Mistake(ValueError):  # noqa: N818 - usually returned as a value, not raised
    """A reason to refuse a value: the fields of an error without its place, which the reader of the file adds.

    A ``ValueError``, because pydantic collects those that checks of single values raise.
    """

    def __init__(self, code: str, *, reason: str, hint: str = "") -> None:
        super().__init__(f"{reason}; {hint}" if hint else reason)
        self.code = code
        self.reason = reason
        self.hint = hint

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled by their arguments, and these are keywords.
        return partial(Mistake, self.code, reason=self.reason, hint=self.hint), ()

    def at(self, place: object) -> Diagnostic:
        """Return this mistake as a finding at ``place``."""
        return Diagnostic(self.code, str(place), reason=self.reason, hint=self.hint)


@dataclass(frozen=True, order=True)
class Position:
    """Line and column, counted from 1 as compilers and editors do."""

    line: int
    column: int


def end_of(text: str) -> Position:
    """Return the position after the last character of ``text``."""
    lines = text.split("\n")
    return Position(len(lines), len(lines[-1]) + 1)


@dataclass(frozen=True)
class Problem:
    """A mistake with its place in the file."""

    position: Position
    path: KeyPath
    mistake: Mistake

    def in_file(self, file: Path) -> Diagnostic:
        """Return the finding; its place is ``mlfbuild.yml:12:5: models.kws.optoins``."""
        place = f"{file}:{self.position.line}:{self.position.column}"
        return self.mistake.at(f"{place}: {dotted(self.path)}" if self.path else place)


def in_file_order(file: Path, problems: Iterable[Problem]) -> list[Diagnostic]:
    """Return ``problems`` of ``file`` as findings, sorted by line and column."""
    return [problem.in_file(file) for problem in sorted(problems, key=lambda problem: problem.position)]


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
    """Return ``text`` in double quotes, shortened, on one line and without terminal control characters."""
    if len(text) > _LONGEST_QUOTE:
        text = text[:_LONGEST_QUOTE] + "..."
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return f'"{shown}"'


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `` (did you mean "kws"?)`` for the word of ``known`` nearest to ``word``, or ``""`` if none is near."""
    by_lower_case = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(word.lower(), by_lower_case, n=1)
    return f" (did you mean {quoted(by_lower_case[near[0]])}?)" if near else ""


def unknown(what: str, word: str, known: Iterable[str], code: str = "") -> Mistake:
    """Return the mistake ``unknown cpu "cortex-m44" (did you mean "cortex-m4"?)``; with known words if none is near.

    Its code is ``code``, or ``unknown-`` and ``what``.
    """
    words = list(known)
    near = suggestion(word, words) or f" (known: {_few(words)})"
    return Mistake(code or f"unknown-{what.lower().replace(' ', '-')}", reason=f"unknown {what} {quoted(word)}{near}")


def _few(words: list[str], most: int = 5) -> str:
    return ", ".join(words[:most]) + (", ..." if len(words) > most else "")
