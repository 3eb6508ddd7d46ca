"""Print calls and declarations on lines of limited length."""

from __future__ import annotations

from collections.abc import Sequence

_LINE_LENGTH = 116


def wrapped(start: str, items: Sequence[str], end: str, indent: int) -> str:
    """Return ``start``, comma-separated ``items`` and ``end``; continuation lines are indented by four more columns.

    ``indent`` is the column at which the caller prints ``start``. Lines end at 116 columns, unless a single item is
    longer.
    """
    return f"{start}{joined(items, ',', indent + 4, len(start) + indent)}{end}"


def joined(items: Sequence[str], separator: str, indent: int, used: int = 0) -> str:
    """Return ``items`` with ``separator`` after all but the last, on lines indented by ``indent`` columns.

    ``used`` columns of the first line are already used.
    """
    text = ""
    length = used
    for position, item in enumerate(items):
        piece = item + (separator if position + 1 < len(items) else "")
        # A single item is never divided, even if it is longer than a line.
        if text and length + 1 + len(piece) > _LINE_LENGTH:
            text += "\n" + " " * indent
            length = indent
        elif text:
            text += " "
            length += 1
        text += piece
        length += len(piece)
    return text
