"""What an instruction does, as far as the depth of the stack depends on it: the same for every processor.

Registers hold what is not known, numbers, or places in the stack. The stack grows down: a depth is the bytes from a
place up to where the stack pointer was when the function was entered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mlfbuild.report.stack.listing import Instruction

SP = "sp"
_SIGN, _ALL = 1 << 31, (1 << 32) - 1


class StackPlace(NamedTuple):
    """An address in the stack."""

    depth: int


Value = StackPlace | int
"""What a register is known to hold; numbers have 32 bits and no sign."""
State = Mapping[str, Value]
"""Registers by name; those that are left out are not known. The stack pointer is ``SP``."""


@dataclass(frozen=True)
class StackCall:
    """A call, or a jump to another function."""

    where: int
    """Address of the instruction."""
    target: int | None
    """Address of the function; ``None`` where a register has it."""


@dataclass(frozen=True)
class Entries:
    """Entries of a table: half the bytes from the table to where each leads."""

    size: int
    """Bytes of an entry."""
    signed: bool


@dataclass(frozen=True)
class StackStep:
    """What comes of an instruction."""

    state: State
    """Behind it."""
    falls: bool = True
    """Whether the next instruction may follow."""
    jumps: tuple[int, ...] = ()
    """Addresses where it may go on."""
    calls: tuple[StackCall, ...] = ()
    """What it calls, and comes back from."""
    through_table: bool = False
    """Whether it goes on where a table says, in the same function."""
    entries: Entries | None = None
    """How the table is to be read where it lies behind the instruction."""
    through_register: bool = False
    """Whether it goes on where a register says: in the same function by a table, or in another one."""


Words = Callable[[int], int | None]
"""The word at an address of the image; ``None`` where it has none."""
Decoder = Callable[[Instruction, State, Words], StackStep]
"""What an instruction does in a state."""


def signed(number: int) -> int:
    """Return a number of 32 bits with its sign."""
    return (number & _ALL ^ _SIGN) - _SIGN


def added(one: Value | None, other: Value | None) -> Value | None:
    """Return the sum, as far as it is known."""
    if isinstance(one, int) and isinstance(other, int):
        return (one + other) & _ALL
    if isinstance(one, StackPlace) and isinstance(other, int):
        return StackPlace(one.depth - signed(other))
    return added(other, one) if isinstance(one, int) and isinstance(other, StackPlace) else None


def subtracted(one: Value | None, other: Value | None) -> Value | None:
    """Return the difference, as far as it is known."""
    if isinstance(one, StackPlace) and isinstance(other, StackPlace):
        return (other.depth - one.depth) & _ALL
    return added(one, -other & _ALL) if isinstance(other, int) else None


def shifted(value: Value | None, count: Value | None) -> Value | None:
    """Return ``value`` shifted left, as far as it is known."""
    known = isinstance(value, int) and isinstance(count, int) and count < 32
    return (value << count) & _ALL if known and isinstance(value, int) and isinstance(count, int) else None


def aligned(value: Value | None, mask: int) -> Value | None:
    """Return ``value`` without the bits of ``mask``; of a place in the stack, which has words, the deepest one."""
    if isinstance(value, StackPlace):
        return StackPlace(value.depth + (mask & ~3)) if mask & (mask + 1) == 0 else None
    return None if value is None else value & ~mask & _ALL


START: State = {SP: StackPlace(0)}
"""What is known where a function begins."""


def changed(state: State, register: str, value: Value | None) -> State:
    """Return ``state`` with another value of a register."""
    left = {name: known for name, known in state.items() if name != register}
    return left if value is None else {**left, register: value}


def without(state: State, registers: Iterable[str]) -> State:
    """Return ``state`` where the ``registers`` are no longer known."""
    gone = set(registers)
    return {name: known for name, known in state.items() if name not in gone} if gone else state


def joined(one: State, other: State) -> State:
    """Return what is known where two ways meet: what both say, and of the stack pointer the deeper place."""
    if one == other:
        return one
    same = {name: value for name, value in one.items() if value == other.get(name)}
    pointers = one.get(SP), other.get(SP)
    if isinstance(pointers[0], StackPlace) and isinstance(pointers[1], StackPlace):
        same[SP] = max(pointers[0], pointers[1])
    return same
