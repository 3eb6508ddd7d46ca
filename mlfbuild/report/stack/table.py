"""Targets of the jump tables of a C `switch` between Thumb instructions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from mlfbuild.report.stack.steps import Entries, Words
from mlfbuild.timing import ListedFunction

_INDEX = re.compile(r"\[pc, (\w+)")
_FIRST = "r0"
"""The register with the index for functions of libgcc."""
_LOOKED_AT = 12
"""Instructions before a jump that are searched for the comparison of its index with the last one."""


def targets_of(function: ListedFunction, at: int, entries: Entries, words: Words) -> Iterator[int]:
    """Yield the targets of the table after the instruction ``at`` of ``function``.

    The comparison of the index before it gives the number of entries; otherwise it extends to the next instruction.
    """
    behind = function.instructions[at + 1 :]
    data = list(itertools.takewhile(lambda item: item.is_data, behind))
    start = function.instructions[at].address + 4
    end = behind[len(data)].address if data and len(data) < len(behind) else start
    last = _last_index(function, at)
    if last is not None:
        end = min(end, start + (last + 1) * entries.size)
    for place in range(start, end - entries.size + 1, entries.size):
        target = start + 2 * _entry(place, entries, words)
        if target in function.places and not function.instructions[function.places[target]].is_data:
            yield target


def _entry(place: int, entries: Entries, words: Words) -> int:
    bits = 8 * entries.size
    entry = (words(place & ~3) or 0) >> 8 * (place & 3) & (1 << bits) - 1
    return entry - (1 << bits) if entries.signed and entry >> bits - 1 else entry


def _last_index(function: ListedFunction, at: int) -> int | None:
    """Return the number that the index of the jump ``at`` was last compared with; ``None`` if unknown."""
    found = _INDEX.match(function.instructions[at].operands)
    index = re.escape(found[1] if found else _FIRST)
    for before in reversed(function.instructions[max(0, at - _LOOKED_AT) : at]):
        compared = re.fullmatch(rf"{index}, #(\d+)", before.operands)
        if before.mnemonic.startswith("cmp") and compared is not None:
            return int(compared[1])
    return None
