"""Print how much memory models and images use: a table, with a bar on terminals for each figure that has a limit."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mlfbuild.cli.output.printing import has_colour, on_terminal, write_styled

if TYPE_CHECKING:
    from mlfbuild.cli.options import SharedOptions
    from mlfbuild.report import Usage

_CELLS = 20
"""Length of a bar."""
_NEARLY_FULL = 0.9
_BLANK = "\N{WHITE SQUARE}" * _CELLS
"""Stands for a bar while columns are aligned."""


def show_usages(options: SharedOptions, usages: Sequence[Usage]) -> None:
    """Print ``usages`` to stderr, below the steps of a build; nothing with ``-q``, and for programs."""
    if usages and not options.quiet and options.format == "text":
        write_styled(usage_table(usages, bars=on_terminal(sys.stderr)))


def usage_table(usages: Sequence[Usage], *, bars: bool) -> str:
    """Return ``usages`` as aligned lines; with ``bars``, in the characters and colours that stderr has."""
    from mlfbuild.core import text_table  # it imports rich, which a build with nothing to do does not need

    rows = []
    subject = ""
    for usage in usages:
        # The name of a subject is in its first line only, so that its figures are read as a group.
        name = "" if usage.subject == subject else usage.subject
        subject = usage.subject
        bar = () if not bars else (_BLANK,) if usage.limits else ("",)
        rows.append((name, usage.measure, f"{usage.size:,} bytes", *bar, usage.shares))
    text = text_table(rows, align="llr", indent=2)
    if not bars:
        return text
    # After the table was aligned, because it prints the control characters of colours as text.
    lines = zip(usages, text.split("\n"), strict=True)
    return "\n".join(line.replace(_BLANK, _bar(usage), 1) if usage.limits else line for usage, line in lines)


def _bar(usage: Usage) -> str:
    share = usage.size / max(usage.limits[0].size, 1)
    full, empty = "\N{FULL BLOCK}\N{LIGHT SHADE}" if _can_print("\N{FULL BLOCK}\N{LIGHT SHADE}") else "#."
    # One cell at least for what takes memory, and no full bar below the limit.
    cells = min(max(round(share * _CELLS), 1 if usage.size else 0), _CELLS if share >= 1 else _CELLS - 1)
    bar = full * cells + empty * (_CELLS - cells)
    if not has_colour(sys.stderr):
        return bar
    return click.style(bar, fg="red" if share > 1 else "yellow" if share > _NEARLY_FULL else "green")


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stderr.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
