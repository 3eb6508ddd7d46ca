"""Tables as plain text: the same on every terminal, in pipes and in files.

``text_table`` lets rich lay out the columns and returns the lines without colour, borders or trailing blanks::

    >>> print(text_table([("kws", "53,304"), ("ad", "270")], header=("model", "flash"), align="lr"))
    model   flash
    kws    53,304
    ad        270

It does not read the width of the terminal. Cells are text: rich's markup and emoji codes in them are not interpreted,
and control characters appear as escapes, so names from files that are not trusted may be passed as they are.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mlfbuild.core.text import printable

_GAP = 2


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
    table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=bool(header))
    sides = align.ljust(len(cells[0]), "l")
    for title, side in zip(header or [""] * len(sides), sides, strict=True):
        table.add_column(Text(title), justify="right" if side == "r" else "left", no_wrap=True)
    if width:
        *before, last = zip(*cells, strict=True)
        used = indent + sum(_GAP + max(map(cell_len, column)) for column in before)
        longest_word = max((cell_len(word) for cell in last for word in cell.split()), default=1)
        table.columns[-1].no_wrap = False
        table.columns[-1].max_width = max(width - used, longest_word)
    for row in cells:
        table.add_row(*map(Text, row))
    return "\n".join((" " * indent + line).rstrip() for line in _rendered(table).splitlines())


def _rendered(table: Table) -> str:
    file = io.StringIO()
    console = Console(
        file=file, width=sys.maxsize, color_system=None, force_terminal=False, force_jupyter=False, legacy_windows=False
    )
    console.print(table)
    return file.getvalue()
