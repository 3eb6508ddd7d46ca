"""Tables in 80 columns: the text in the last column is shortened in the middle."""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.core import printable, text_table

# Terminals and logs of CI systems show at least this many columns.
WIDTH = 80
_GAP = 2


def fitted_table(rows: Sequence[Sequence[str]], *, header: Sequence[str] = (), align: str = "") -> str:
    """Return a table as ``text_table`` does, with lines of at most ``WIDTH`` characters.

    There must be at least one row. ``align`` has a letter for each column, as in ``text_table``.
    """
    widths = [max(len(row[column]) for row in [*rows, *([header] if header else [])]) for column in range(len(rows[0]))]
    # The other columns have the width that they need, and the last one what is left of the line.
    left = WIDTH - sum(width + _GAP for width in widths[:-1])
    return text_table([(*row[:-1], shortened(row[-1], left)) for row in rows], header=header, align=align)


def used_part(taken: int, limit: int) -> str:
    """Return ``taken`` in per cent of the budget ``limit``, or ``over`` if anything is taken of a budget of 0."""
    if limit:
        return f"{100 * taken / limit:.0f} %"
    return "over" if taken else "0 %"


def shortened(text: str, width: int) -> str:
    """Return ``text`` in at most ``width`` characters: the beginning and the end of a longer one.

    Control characters are replaced first, so that the width is that on the terminal.
    """
    text = printable(text)
    if len(text) <= width:
        return text
    head = (width - 3) // 2
    # The end of a longer name has the same length as its beginning, as both tell names apart.
    return f"{text[:head]}...{text[head + 3 - width :]}"
