"""Mistakes in a project file with their places: the way to a value, its line and column."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import Diagnostic, Mistake, in_quotes

KeyPath = tuple[str | int, ...]
"""The way from the top of the file to a value: ``("models", "kws", "targets", 0)``."""

# Other keys are shown in quotes, so that a dot or a control character in a key cannot pass for a place.
_PLAIN_SEGMENT = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, order=True)
class Position:
    """Line and column, counted from 1 as compilers and editors do."""

    line: int
    column: int


def end_of(text: str) -> Position:
    """Return the position after the last character of ``text``.

    Both numbers count from 1, and columns count characters, not bytes.
    """
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
    """Return ``problems`` of ``file`` as findings, sorted by line and column.

    ``file`` is the path as the user named it; it begins the place of each finding, before line and column.
    """
    return [problem.in_file(file) for problem in sorted(problems, key=lambda problem: problem.position)]


def dotted(path: KeyPath) -> str:
    """Return ``models.kws.targets[0]`` for the way to a value.

    Segments that are not plain words are in double quotes with escapes, so the result is one printable line.
    """
    text = ""
    for segment in path:
        if isinstance(segment, int):
            text += f"[{segment}]"
        else:
            text += ("." if text else "") + (segment if _PLAIN_SEGMENT.fullmatch(segment) else in_quotes(segment))
    return text
