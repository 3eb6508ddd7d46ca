"""Small tables that are printed as text by Python and as HTML by notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mlfbuild.core import printable, shown, text_table

_ROWS = 20
"""Rows that a representation shows; with its title and a last line, it fits a screen of 24 lines."""
_LONGEST = 80
"""Characters of a text that a representation shows."""
_LONGEST_OF_MANY = 40
"""The same for a cell of a table with many columns."""


class Table(list[dict[str, Any]]):
    """Rows with the same keys, in the same order; ``pandas.DataFrame(table)`` has a column for each key.

    As a list, it is false if it has no rows.
    """

    def __init__(self, title: str, rows: Iterable[dict[str, Any]] = ()) -> None:
        super().__init__(rows)
        self.title = title

    def __repr__(self) -> str:
        numbers = ("r" if all(_is_number(value) for value in column) else "l" for column in self._columns())
        return as_text(self.title, self._cells(), list(self[0]) if self else (), "".join(numbers))

    def _repr_html_(self) -> str:
        return as_html(self.title, self._cells(), list(self[0]) if self else ())

    def _columns(self) -> Iterator[list[Any]]:
        return ([row[key] for row in self] for key in (self[0] if self else ()))

    def _cells(self) -> list[list[str]]:
        return [[shown(_cell(value), _LONGEST_OF_MANY) for value in row.values()] for row in self]


def _cell(value: object) -> str:
    if value is None:
        return ""
    # Before numbers: a bool is an ``int`` in Python.
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def as_text(title: str, rows: Sequence[Sequence[str]], header: Sequence[str] = (), align: str = "") -> str:
    """Return a title and the first ``rows`` as lines; ``align`` is that of ``text_table``."""
    cells = [[shown(cell, _LONGEST) for cell in row] for row in rows[:_ROWS]]
    lines = [printable(title), text_table(cells, header=header, align=align, indent=2), _rest(rows)]
    return "\n".join(filter(None, lines))


def as_html(title: str, rows: Sequence[Sequence[str]], header: Sequence[str] = ()) -> str:
    """Return a title and the first ``rows`` as an HTML table; all texts are escaped."""
    head = f"<thead>{_html_row(header, 'th')}</thead>" if header and rows else ""
    body = "".join(_html_row([shown(cell, _LONGEST) for cell in row], "td") for row in rows[:_ROWS])
    rest = f"<p>{_rest(rows).strip()}</p>" if _rest(rows) else ""
    caption = f"<caption>{html.escape(printable(title))}</caption>"
    return f"<table>{caption}{head}<tbody>{body}</tbody></table>{rest}"


def _html_row(cells: Sequence[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _rest(rows: Sequence[Sequence[str]]) -> str:
    return f"  and {len(rows) - _ROWS:,} more" if len(rows) > _ROWS else ""
