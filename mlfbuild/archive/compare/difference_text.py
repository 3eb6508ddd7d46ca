"""Print a comparison for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from mlfbuild.archive.compare.library_difference import LibraryComparison, LibraryDifference
from mlfbuild.core import counted, printable, text_table

_SHOWN = 12
"""Largest number of differences of one kind in one module."""


def comparison_text(comparison: LibraryComparison, left: str, right: str, *, verbose: bool = False) -> str:
    """Return ``comparison`` as lines for people, the last one without a line end.

    ``left`` and ``right`` are the names of the two archives. If there are many differences of one kind, only the first
    ones are shown, unless ``verbose``.
    """
    return "\n".join(_lines(comparison, left, right, verbose))


def _lines(comparison: LibraryComparison, left: str, right: str, verbose: bool) -> Iterator[str]:
    if comparison.equal:
        yield f"{left} and {right} have the same meaning"
    else:
        yield f"{left} -> {right}: {counted(len(comparison.differences), 'difference')}"
    for module, group in groupby(comparison.differences, key=lambda difference: difference.module):
        if module is not None:
            yield ""
            yield f"module {printable(module)}"
        kinds = groupby(group, key=lambda difference: difference.what)
        yield text_table([row for what, same in kinds for row in _rows(what, list(same), verbose)], indent=2)
    if comparison.notes:
        yield ""
        yield "notes"
        yield from (f"  {printable(note)}" for note in comparison.notes)


def _rows(what: str, differences: Sequence[LibraryDifference], verbose: bool) -> Iterator[tuple[str, str]]:
    shown = differences if verbose or len(differences) <= _SHOWN + 1 else differences[:_SHOWN]
    for difference in shown:
        yield what, f"{difference.name}: {difference.text}" if difference.name else difference.text
    if len(shown) < len(differences):
        yield what, f"and {len(differences) - len(shown):,} more (-v shows all)"
