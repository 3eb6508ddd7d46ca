"""Tables as plain text: the same on every terminal, in pipes and in files.

``text_table`` pads the columns and returns the lines without colour, borders or trailing blanks::

    >>> print(text_table([("kws", "53,304"), ("ad", "270")], header=("model", "flash"), align="lr"))
    model   flash
    kws    53,304
    ad        270

It does not read the width of the terminal. Cells are text: control characters in them appear as escapes, so names from
files that are not trusted may be passed as they are. Rich's tables have more to offer, but take 200 us for each cell,
and the table of a large archive has hundreds of thousands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from rich.cells import cell_len

from mlfbuild.core.text import printable

# Two blanks separate columns whose cells contain single blanks, for readers and for tools such as awk.
_GAP = 2
_WORD = re.compile(r"\s*\S+\s*")


def text_table(
    rows: Iterable[Sequence[str]], *, header: Sequence[str] = (), align: str = "", indent: int = 0, width: int = 0
) -> str:
    """Return ``rows`` as lines with aligned columns, the last one without a line end; no rows give no lines.

    All rows, and ``header`` unless it is empty, must have the same number of cells. ``align`` has a letter for each
    column, ``l`` for left or ``r`` for right, and columns without one are aligned to the left. Each line begins with
    ``indent`` blanks. If ``width`` is not 0, the text in the last column is wrapped at its blanks so that lines have at
    most ``width`` columns; a word longer than that stays whole.
    """
    cells = [[printable(cell) for cell in row] for row in rows]
    if not cells:
        return ""
    if header:
        cells.insert(0, list(header))
    # Not len: letters of East Asian scripts take two columns of a terminal, combining marks none.
    sizes = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    sides = align.ljust(len(sizes), "l")
    used = indent + sum(_GAP + size for size in sizes[:-1])
    lines: list[str] = []
    for row in cells:
        last = _wrapped(row[-1], width - used) if width else [row[-1]]
        for part in zip_longest(*([cell] for cell in row[:-1]), last, fillvalue=""):
            padded = map(_padded, part, sizes, sides)
            # Without trailing blanks, which would be differences in files under version control and break lines in
            # narrow terminals.
            lines.append((" " * indent + (" " * _GAP).join(padded)).rstrip())
    return "\n".join(lines)


def _padded(cell: str, size: int, side: str) -> str:
    blanks = " " * (size - cell_len(cell))
    return blanks + cell if side == "r" else cell + blanks


def _wrapped(text: str, width: int) -> list[str]:
    """Return ``text`` as lines of at most ``width`` columns, or of one word that is longer."""
    if cell_len(text) <= width:
        return [text]
    lines = [""]
    for word in _WORD.findall(text):
        if lines[-1] and cell_len(lines[-1] + word.rstrip()) > width:
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        lines[-1] += word
    return lines
