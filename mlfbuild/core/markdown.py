"""Text as Markdown of GitHub and GitLab, for job summaries and comments of merge requests.

Text from project files, models and tools goes through ``markdown_code``: in a code span, no character begins
formatting, HTML, a mention such as ``@name`` or a reference such as ``#12``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mlfbuild.core.text import printable, terminal_text


def markdown_code(text: str) -> str:
    """Return ``text`` as a code span on one line; empty text stays empty.

    The span begins and ends with more backticks than ``text`` has in a row (CommonMark 0.31, section 6.1).
    """
    clean = printable(" ".join(text.split()))
    if not clean:
        return ""
    fence = "`" * _fence(clean, 1)
    # A blank on each side is removed again; without it, a backtick at the edge would belong to the fence.
    edge = " " if clean.startswith("`") or clean.endswith("`") else ""
    return f"{fence}{edge}{clean}{edge}{fence}"


def markdown_block(text: str) -> str:
    """Return ``text`` of several lines as a fenced code block, without its control characters.

    The fence has more backticks than the text has in a row, at least three, so that no line of the text ends the block.
    """
    clean = terminal_text(text)
    fence = "`" * _fence(clean, 3)
    return f"{fence}\n{clean}\n{fence}"


def _fence(text: str, least: int) -> int:
    return max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, align: str = "") -> str:
    """Return a table; cells are Markdown, and ``align`` has ``l`` or ``r`` for each column, ``l`` without one.

    Pipes in cells get a backslash, which parsers of tables remove, also in code (GitHub Flavored Markdown, 4.10).
    """
    sides = ["---:" if side == "r" else "---" for side in align.ljust(len(header), "l")]
    escaped = ([cell.replace("|", r"\|") for cell in row] for row in rows)
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, sides, *escaped))
