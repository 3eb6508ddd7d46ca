"""What the functions of an image call, as their instructions say."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mlfbuild.report.stack.objdump import Program

_TARGET = re.compile(r"\b([0-9a-f]+) <")
"""Where an instruction leads, as objdump prints it: a call, or a jump, which may be the last thing a function does."""


def calls_of(program: Program, addresses: Iterable[int]) -> dict[int, frozenset[int]]:
    """Return what each of the functions at ``addresses`` calls, by their addresses; not what it calls by pointers."""
    listing = program.listing
    texts = {
        address: "".join(function.text for function in listing.within(address, address + 1)) for address in addresses
    }
    return {
        address: frozenset(
            target
            for target in (int(found, 16) for found in _TARGET.findall(text))
            if target != address and listing.begins(target)
        )
        for address, text in texts.items()
    }
