"""The operands of Arm's instructions as objdump prints them, in the unified syntax of Arm's manuals.

operand_parts("r0!, {r4-r6, lr}")    ["r0!", "{r4-r6, lr}"]
listed_registers("{r4-r6, lr}")      "r4", "r5", "r6", "lr"
registers_in("[sl, #4]")             ["r10"]

Aliases of registers such as ``sl`` are replaced with the names in ``DecodedInstruction``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

REGISTER_ALIASES = {"r13": "sp", "sb": "r9", "sl": "r10", "fp": "r11", "ip": "r12", "r14": "lr", "r15": "pc"}
"""Other names of registers that objdump prints, and the names in ``DecodedInstruction``."""
# Commas inside braces and brackets separate registers, not operands.
_OPERAND = re.compile(r"\{[^}]*\}|\[[^\]]*\]!?|[^,\s][^,]*")
_REGISTER = re.compile(r"\b(r1[0-5]|r\d|sp|lr|pc|ip|fp|sl|sb|s[12]\d|s3[01]|s\d|d[12]\d|d3[01]|d\d|q1[0-5]|q\d)\b")


def operand_parts(operands: str) -> Sequence[str]:
    """Return the operands as they are separated by commas, lists and addresses as a whole."""
    return [part.strip() for part in _OPERAND.findall(operands)]


def registers_in(part: str) -> Sequence[str]:
    """Return the registers that an operand names; of ranges only their ends.

    Aliases are replaced. Use ``listed_registers`` for a list in braces.
    """
    return [REGISTER_ALIASES.get(found[1], found[1]) for found in _REGISTER.finditer(part)]


def listed_registers(part: str) -> Iterator[str]:
    """Yield the registers of a list: ``{r4, r5, lr}``, ``{d8-d15}``.

    Ranges are expanded, and aliases replaced. Braces are optional.
    """
    for each in part.strip("{}").split(","):
        first, _, last = each.strip().partition("-")
        kind, numbers = first[:1], (first[1:], last[1:])
        if last and all(number.isdigit() for number in numbers):
            yield from (f"{kind}{number}" for number in range(int(numbers[0]), int(numbers[1]) + 1))
        elif first:
            yield REGISTER_ALIASES.get(first, first)
