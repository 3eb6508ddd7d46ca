"""What the functions of an image call, as their instructions say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from mlfbuild.report.stack.objdump import ImageCode
from mlfbuild.report.stack.pointers import loaded_by

_TARGET = re.compile(r"\b([0-9a-f]+) <")
"""Where an instruction leads, as objdump prints it: a call, or a jump, which may be the last thing a function does."""


def calls_of(program: ImageCode, addresses: Iterable[int]) -> dict[int, frozenset[int]]:
    """Return what each of the functions at ``addresses`` calls, or hands on to be called, by their addresses."""
    return {address: frozenset(_targets(program, address)) for address in addresses}


def _targets(program: ImageCode, address: int) -> Iterator[int]:
    listing = program.listing
    for function in listing.within(address, address + 1):
        targets = (int(found, 16) for found in _TARGET.findall(function.text))
        yield from (target for target in targets if target != address and listing.begins(target))
        yield from loaded_by(program, function)
