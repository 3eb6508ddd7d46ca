"""A comparison as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from mlfbuild.archive.compare.types import Comparison, Difference
from mlfbuild.core import counted, printable

_SHOWN = 12
"""Differences of one kind in one module."""


def comparison_text(comparison: Comparison, left: str, right: str, *, verbose: bool = False) -> str:
    """Return ``comparison`` as lines for people, the last one without a line end.

    ``left`` and ``right`` are what to call the two archives. Many differences of one kind show the first of them,
    unless ``verbose``.
    """
    return "\n".join(_lines(comparison, left, right, verbose))


def _lines(comparison: Comparison, left: str, right: str, verbose: bool) -> Iterator[str]:
    if comparison.equal:
        yield f"{left} and {right} mean the same"
    else:
        yield f"{left} -> {right}: {counted(len(comparison.differences), 'difference')}"
    for module, group in groupby(comparison.differences, key=lambda difference: difference.module):
        if module is not None:
            yield ""
            yield f"module {printable(module)}"
        for what, same in groupby(group, key=lambda difference: difference.what):
            yield from _kind(what, list(same), verbose)
    if comparison.notes:
        yield ""
        yield "no differences, but good to know" if not comparison.equal else "good to know"
        yield from (f"  {printable(note)}" for note in comparison.notes)


def _kind(what: str, differences: Sequence[Difference], verbose: bool) -> Iterator[str]:
    shown = differences if verbose or len(differences) <= _SHOWN + 1 else differences[:_SHOWN]
    for difference in shown:
        name = f"{printable(difference.name)}: " if difference.name else ""
        yield f"  {what:<10}  {name}{printable(difference.text)}"
    if len(shown) < len(differences):
        yield f"  {what:<10}  and {len(differences) - len(shown):,} more (-v shows all)"
