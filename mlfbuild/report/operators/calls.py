"""The functions that each function of an image calls, from its instructions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mlfbuild.report.stack.objdump import ImageCode
from mlfbuild.report.stack.pointers import loaded_by

_TARGET = re.compile(r"\b([0-9a-f]+) <")
"""The target of a call or jump in objdump's output; a jump may be a tail call."""


def calls_of(program: ImageCode, addresses: Iterable[int]) -> dict[int, frozenset[int]]:
    """Return the addresses that each function at ``addresses`` calls or passes on as a pointer."""
    return {address: frozenset(_targets(program, address)) for address in addresses}


def _targets(program: ImageCode, address: int) -> Iterator[int]:
    listing = program.listing
    for function in listing.within(address, address + 1):
        targets = (int(found, 16) for found in _TARGET.findall(function.text))
        yield from (target for target in targets if target != address and listing.begins(target))
        yield from loaded_by(program, function)
