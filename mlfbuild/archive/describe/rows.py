"""Lines for people with one column of bytes, as ``ls -s`` and ``du`` have it: label, size, words.

::

    input           490  input_1  int8 [1, 49, 10, 1]
    memory      105,348  workspace
                 53,304  constants
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

WIDTH = 100
"""Columns of a page; words that have no blank may go beyond."""
_LABEL = 12
_SIZE = 11  # 999,999,999
_MARGIN = "  "


@dataclass(frozen=True)
class Row:
    """One line; its label is printed where the line before had another."""

    label: str
    size: int | None
    """Bytes; ``None`` leaves the column empty."""
    text: str


def row_lines(rows: Iterable[Row]) -> Iterator[str]:
    """Yield ``rows`` as text; a text that is too long for its line goes on in the next, at its blanks."""
    label = None
    for row in rows:
        head = _MARGIN + (row.label if row.label != label else "").ljust(_LABEL)
        label = row.label
        size = "" if row.size is None else f"{row.size:,}"
        start = f"{head}{size:>{_SIZE}}  "
        first, *rest = wrapped(row.text, WIDTH - len(start))
        yield (start + first).rstrip()
        yield from (" " * len(start) + line for line in rest)


def wrapped(text: str, width: int) -> list[str]:
    """Return ``text`` in lines of at most ``width`` columns where it has blanks to break at; at least one line."""
    words = text.lstrip()
    indent = text[: len(text) - len(words)]
    lines = textwrap.wrap(words, width - len(indent), break_long_words=False, break_on_hyphens=False) or [""]
    return [indent + line for line in lines]


def columns(table: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return the rows of ``table`` with their cells aligned, to the right in the columns ``right``."""
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in table
    )
    return [line.rstrip() for line in lines]
