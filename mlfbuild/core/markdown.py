"""Text as Markdown of GitHub and GitLab, for job summaries and comments of merge requests.

Text from project files, models and tools goes through ``markdown_code``: in a code span, no character begins
formatting, HTML, a mention such as ``@name`` or a reference such as ``#12``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mlfbuild.core.text import printable


def markdown_code(text: str) -> str:
    r"""Return ``text`` as a code span on one line: ``a|b`` is `` `a\|b` ``; empty text stays empty.

    The span begins and ends with more backticks than ``text`` has in a row (CommonMark 0.31, section 6.1). A pipe has a
    backslash, which GitHub's and GitLab's tables remove also in code (GitHub Flavored Markdown, section 4.10).
    """
    clean = printable(" ".join(text.split()))
    if not clean:
        return ""
    fence = "`" * (1 + max(map(len, re.findall("`+", clean)), default=0))
    # A blank on each side is removed again; without it, a backtick at the edge would belong to the fence.
    edge = " " if clean.startswith("`") or clean.endswith("`") else ""
    escaped = clean.replace("|", r"\|")
    return f"{fence}{edge}{escaped}{edge}{fence}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, align: str = "") -> str:
    """Return a table; cells are Markdown, and ``align`` has ``l`` or ``r`` for each column, ``l`` without one."""
    sides = ["---:" if side == "r" else "---" for side in align.ljust(len(header), "l")]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, sides, *rows))
