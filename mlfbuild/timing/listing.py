"""objdump's output of an image: its functions, and their instructions, which are parsed on demand.

The operands of Arm's instructions are in the unified syntax of Arm's manuals::

    operand_parts("r0!, {r4-r6, lr}")    ["r0!", "{r4-r6, lr}"]
    listed_registers("{r4-r6, lr}")      "r4", "r5", "r6", "lr"
    registers_in("[sl, #4]")             ["r10"]

Aliases of registers such as ``sl`` are replaced with the names in ``DecodedInstruction``.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

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


_HEADER = re.compile(r"^([0-9a-f]{8,16}) <(.+)>:$", re.MULTILINE)
_LINE = re.compile(r"^ *([0-9a-f]+):\t([^\t\n]+)(?:\t([^\n]*))?$", re.MULTILINE)
# objdump for Arm marks comments with `;`, newer releases with `@`, and objdump for RISC-V with `#`.
_COMMENT = re.compile(r"\s*(?:\t[@;#]|\s[@;#] )")
# GCC moves unlikely blocks of a function into a symbol of their own; a call or return address there is still that
# function.
_COLD = re.compile(r"\.cold(\.\d+)?$")
_INNER = (".L", "$")
"""Prefixes of labels inside functions: of compilers, and of mapping symbols (ELF for Arm, 5.5.5)."""


class Instruction(NamedTuple):
    """One instruction, or data between instructions; the mnemonic is then a directive such as ``.word``."""

    address: int
    mnemonic: str
    operands: str
    comment: str
    """objdump's comment, such as ``(80001a4 <main+0x24>)``."""

    @property
    def is_data(self) -> bool:
        """Whether it is data."""
        return self.mnemonic.startswith(".")


@dataclass(frozen=True, eq=False)
class ListedFunction:
    """The code from one symbol of the image to the next."""

    name: str
    address: int
    text: str = field(repr=False)
    """Lines of objdump."""

    @cached_property
    def instructions(self) -> list[Instruction]:
        """Instructions and data by address."""
        # Parsed when they are asked for: a report looks at few functions of a large image.
        return list(_instructions(self.text))

    @cached_property
    def places(self) -> dict[int, int]:
        """Index in ``instructions`` by address."""
        return {instruction.address: at for at, instruction in enumerate(self.instructions)}


def _instructions(text: str) -> Iterator[Instruction]:
    for line in _LINE.finditer(text):
        operands, *comment = _COMMENT.split(line[3] or "", maxsplit=1)
        yield Instruction(int(line[1], 16), line[2].strip(), operands.strip(), comment[0].strip() if comment else "")


class Disassembly:
    """The functions of an image by address; ``text`` is what ``objdump -d --no-show-raw-insn`` prints."""

    def __init__(self, text: str) -> None:
        # Labels inside of a function would cut it into pieces, each of which looked like a function.
        heads = [head for head in _HEADER.finditer(text) if not head[2].startswith(_INNER)]
        ends = [*(head.start() for head in heads[1:]), len(text)]
        functions = [
            ListedFunction(head[2], int(head[1], 16), text[head.end() : end])
            for head, end in zip(heads, ends[: len(heads)], strict=True)
        ]
        self._functions = sorted(functions, key=lambda function: function.address)
        self._addresses = [function.address for function in self._functions]

    @property
    def functions(self) -> list[ListedFunction]:
        """All functions by address."""
        return self._functions

    def function_at(self, address: int) -> ListedFunction | None:
        """Return the function with the instruction at ``address``; ``None`` if no instruction begins there.

        The address is that of the code, without the lowest bit that marks Thumb in pointers.
        """
        at = bisect_right(self._addresses, address) - 1
        function = self._functions[at] if at >= 0 else None
        return function if function is not None and address in function.places else None

    def begins(self, address: int) -> bool:
        """Return whether a function begins at ``address``; a ``.cold`` part is not a separate function.

        For targets of branches: one that enters another function at its begin is a tail call. Data and labels
        in functions are no begin.
        """
        function = self.function_at(address)
        return (
            function is not None
            and function.address == address
            and not function.instructions[0].is_data
            and not _COLD.search(function.name)
        )

    def first_behind(self, address: int) -> int | None:
        """Return the start of the first function after ``address``.

        ``None`` if there is none. ``address`` need not be that of a function.
        """
        at = bisect_right(self._addresses, address)
        return self._addresses[at] if at < len(self._addresses) else None

    def within(self, start: int, end: int) -> list[ListedFunction]:
        """Return the functions that begin from ``start`` to ``end``.

        ``end`` is exclusive. The functions are ascending by address.
        """
        return self._functions[bisect_left(self._addresses, start) : bisect_left(self._addresses, end)]
