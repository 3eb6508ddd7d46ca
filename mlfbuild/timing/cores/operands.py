"""Registers of instructions: the operands that some pipelines need earlier or later than others.

A core passes its words for uses and for results, which are those of its table of delays:

    uses(str r0, [r1, r2],   "stored", address="early")       r0 stored, r1 and r2 early
    uses(mla r0, r1, r2, r3, "factor", special={3: "sum"})    r1 and r2 factor, r3 sum
    made(vldmia r0!, {d0},   "word", base="late")             s0 and s1 word, r0 late

Registers of 64 and 128 bits are those of 32 bits that they consist of.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mlfbuild.timing.cores.issue import Step, tagged
from mlfbuild.timing.costs import DecodedInstruction, WorkKind
from mlfbuild.timing.decode import address_registers, updates_base
from mlfbuild.timing.listing import operand_parts, registers_in

_SHIFT = re.compile(r"(lsl|lsr|asr|ror|rrx)\b")
_SHIFTS = frozenset({"lsl", "lsr", "asr", "ror", "rrx"})
# No instruction waits for pc: its value follows from the address of the instruction.
_NEVER_MADE = frozenset({"pc"})

MULTIPLIES = re.compile(r"mul|ml[as]|[us]mull|[us]mlal\w*|umaal|smul\w+|smla\w+|smls\w+|smu[as]dx?|smml[as]r?|smmulr?")
"""Instructions of the multiplier."""
_LONG_SUM = re.compile(r"[us]mlal\w*|umaal|smlsldx?")
_SUM = re.compile(r"ml[as]|smla[bt][bt]|smlaw[bt]|smladx?|smlsdx?|smml[as]r?|usada8")
EXTENDS_AND_ADDS = re.compile(r"[su]xta(b|h|b16)")
MANY = re.compile(r"v?(ldm|stm|push|pop)\w*|fldm\w*|fstm\w*")
"""Loads and stores of lists."""


def base_name(instruction: DecodedInstruction) -> str:
    """Return the mnemonic without data types; ``ror`` for ``mov r0, r1, ror #8``, as objdump prints that."""
    name = instruction.mnemonic.partition(".")[0]
    return _last_shift(instruction) or name if name == "mov" else name


def loads(name: str) -> bool:
    """Return whether an instruction with ``transfers`` loads.

    ``name`` is its mnemonic; all others with ``transfers`` store, except ``tbb`` and ``tbh``, which are branches here.
    """
    return name.startswith(("ldr", "ldm", "pop", "vld", "vpop", "fldm"))


@functools.lru_cache(maxsize=1 << 14)
def inline_shift(instruction: DecodedInstruction) -> str:
    """Return the shift of the last operand, such as ``lsl`` of ``add r0, r1, r2, lsl #2``; empty without one."""
    return "" if base_name(instruction) in _SHIFTS else _last_shift(instruction)


def _last_shift(instruction: DecodedInstruction) -> str:
    parts = operand_parts(instruction.operands)
    shift = _SHIFT.match(parts[-1]) if parts else None
    return shift[1] if shift is not None else ""


def is_shifted_constant(instruction: DecodedInstruction) -> bool:
    """Return whether a constant is eight bits at a place other than the lowest one.

    Constants of 16-bit instructions, of ``addw``, ``subw`` and ``movw``, and patterns such as 0x00120012 are not.
    """
    parts = operand_parts(instruction.operands)
    name = base_name(instruction)
    if instruction.size == 2 or not _CONSTANTS.fullmatch(name) or not parts[-1].startswith("#"):
        return False
    value = int(parts[-1][1:].split()[0], 0) & 0xFFFFFFFF
    # The patterns of ThumbExpandImm in Arm's architecture manuals: a byte, 0x00XY00XY, 0xXY00XY00 and 0xXYXYXYXY.
    low, high = value & 0xFF, (value >> 8) & 0xFF
    return value not in {low, low * 0x00010001, high * 0x01000100, low * 0x01010101}


_CONSTANTS = re.compile(r"adc|add|and|bic|cm[np]|eor|mov|mvn|or[nr]|rsb|sbc|sub|teq|tst")


def summed(instruction: DecodedInstruction) -> Mapping[int, str]:
    """Return the positions of the operands that a multiplication adds its product to, as ``uses`` expects.

    Long products (``smlal r0, r1, ...``) add to both of their results, so the sum is in the first two operands; others
    have it as their fourth.
    """
    name = base_name(instruction)
    if _LONG_SUM.fullmatch(name):
        return {0: "sum", 1: "sum"}
    return {3: "sum"} if _SUM.fullmatch(name) else {}


def uses(
    instruction: DecodedInstruction, general: str, address: str = "", special: Mapping[int, str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield each register that is read and its use.

    ``special`` has the uses of operands by position, ``address`` is that of registers in addresses, and ``general``
    that of all others.
    """
    parts = [frozenset(registers_in(part)) for part in operand_parts(instruction.operands)]
    positions = special or {}
    of_address = address_registers(instruction) if address else frozenset()
    for register in instruction.reads - _NEVER_MADE:
        found = {use for at, use in positions.items() if -len(parts) <= at < len(parts) and register in parts[at]}
        if register in of_address:
            found.add(address)
        # A register may occur twice, as in `mla r0, r1, r2, r1`: both uses are yielded.
        elsewhere = any(register in part for at, part in enumerate(parts) if at > 0 and at not in positions)
        if not found or (elsewhere and not of_address):
            found.add(general)
        for piece in pieces(register):
            yield from ((piece, use) for use in found)


def made(instruction: DecodedInstruction, how: str, base: str = "") -> Sequence[tuple[str, str]]:
    """Return each register that is written, with ``how`` it is made, in the order of a list.

    A base register that is written back is last, and made as ``base`` says.
    """
    back = address_registers(instruction) if base and _writes_back(instruction) else frozenset()
    # Loads of lists deliver one register after the other, so the order decides when each of them is ready.
    results = sorted(instruction.writes - _NEVER_MADE - back, key=_in_lists)
    ways = [*((name, how) for name in results), *((name, base) for name in back & instruction.writes)]
    return [(piece, way) for name, way in ways for piece in pieces(name)]


def _writes_back(instruction: DecodedInstruction) -> bool:
    many = instruction.mnemonic.startswith(("push", "pop", "vpush", "vpop"))
    # Data that objdump lists as code may have no operands.
    return many or updates_base(instruction) or "".join(operand_parts(instruction.operands)[:1]).endswith("!")


def _in_lists(register: str) -> tuple[str, int]:
    """Return the place of a register among others: lists are loaded from the lowest number on."""
    number = register[1:]
    return (register[0], int(number)) if number.isdigit() else ("r", 14)


@functools.cache
def pieces(register: str) -> Sequence[str]:
    """Return the registers of 32 bits that a register consists of: two of ``d1``, four of ``q1``.

    Names are those of the FPU, ``s0`` and so on: MVE and the FPU share one register file, so a load of ``s4`` delays a
    use of ``q1``. Any other register is returned as it is.
    """
    kind, number = register[0], register[1:]
    if kind in "dq" and number.isdigit():
        size = 2 if kind == "d" else 4
        return [f"s{size * int(number) + at}" for at in range(size)]
    return [register]


def step_of(
    instruction: DecodedInstruction,
    how: str,
    use: str = "any",
    *,
    address: str = "",
    base: str = "",
    special: Mapping[int, str] | None = None,
    tags: Iterable[str] = (),
    **pipeline: Any,
) -> Step:
    """Return the step of an instruction whose results are made as ``how`` and whose operands are read as ``use``.

    ``address`` and ``special`` are those of ``uses``, and ``base`` is that of ``made``; ``tags`` are those of
    ``tagged``. ``pipeline`` has further fields of ``Step``. Words that move make it a load or store, and otherwise it
    is arithmetic::

        step_of(ldr r0, [r1, r2]!, "word", "stored", address="early", base="early")
    """
    return Step(
        kind=WorkKind.MEMORY if instruction.transfers else WorkKind.ARITHMETIC,
        reads=tuple(uses(instruction, use, address, special)),
        writes=made(instruction, how, base),
        tags=tagged(instruction, tags),
        **pipeline,
    )


BRANCHES = frozenset({"b", "bl", "blx", "bx", "blxns", "bxns", "cbz", "cbnz"})


def branch_step(instruction: DecodedInstruction, tags: Iterable[str]) -> Step:
    """Return the step of a branch, which reads registers as ``any``; one with a condition waits for no register.

    The core predicts conditions or knows the flags early, so that only the refill of the pipeline costs time.
    """
    reads = () if "flags" in instruction.reads else tuple(uses(instruction, "any"))
    return Step(kind=WorkKind.BRANCH, reads=reads, branches=True, tags=tagged(instruction, tags))
