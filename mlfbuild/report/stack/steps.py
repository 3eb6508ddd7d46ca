"""Effects of instructions on the depth of the stack, for every processor.

A register holds an unknown value, a number, or an address in the stack. The stack grows down: a depth is the number of
bytes from an address up to the stack pointer at the function's entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from mlfbuild.timing import Instruction

SP = "sp"
_SIGN, _ALL = 1 << 31, (1 << 32) - 1


class StackPlace(NamedTuple):
    """An address in the stack."""

    depth: int


Value = StackPlace | int
"""Known content of a register; numbers are unsigned and have 32 bits."""
State = Mapping[str, Value]
"""Known registers by name; others are unknown. The stack pointer is ``SP``."""


@dataclass(frozen=True)
class StackCall:
    """A call, or a jump to another function."""

    where: int
    """Address of the instruction."""
    target: int | None
    """Address of the function; ``None`` if it is in a register."""


@dataclass(frozen=True)
class Entries:
    """Entries of a jump table: half the distance in bytes from the table to the target.

    For example, the byte 5 in a table of TBB leads 10 bytes behind the start of the table.
    """

    size: int
    """Bytes of an entry."""
    signed: bool


@dataclass(frozen=True)
class StackStep:
    """The effect of an instruction.

    Without ``falls``, ``jumps``, ``calls`` and a table, the instruction ends the path: it returns, or nothing runs
    after it.
    """

    state: State
    """The state after it."""
    falls: bool = True
    """Whether the next instruction may follow."""
    jumps: tuple[int, ...] = ()
    """Addresses that it may jump to."""
    calls: tuple[StackCall, ...] = ()
    """Calls that return."""
    through_table: bool = False
    """Whether it jumps through a table, in the same function."""
    entries: Entries | None = None
    """Format of the table, if it follows the instruction."""
    through_register: bool = False
    """Whether it jumps to a register: through a table in the same function, or to another function."""


Words = Callable[[int], int | None]
"""Returns the word at an address of the image; ``None`` if there is none."""
Decoder = Callable[[Instruction, State, Words], StackStep]
"""Returns the effect of an instruction in a state."""


def signed(number: int) -> int:
    """Return a number of 32 bits as signed."""
    # Flipping the sign bit and subtracting it extends the sign, without a branch and for any integer.
    return (number & _ALL ^ _SIGN) - _SIGN


def added(one: Value | None, other: Value | None) -> Value | None:
    """Return the sum, as far as it is known.

    Numbers wrap at 32 bits. A stack address plus a number is a stack address; two stack addresses have no sum.
    """
    if isinstance(one, int) and isinstance(other, int):
        return (one + other) & _ALL
    if isinstance(one, StackPlace) and isinstance(other, int):
        # Adding moves up, towards the caller, so the depth decreases. Compilers also add negative numbers to allocate.
        return StackPlace(one.depth - signed(other))
    return added(other, one) if isinstance(one, int) and isinstance(other, StackPlace) else None


def subtracted(one: Value | None, other: Value | None) -> Value | None:
    """Return the difference, as far as it is known.

    Two stack addresses give the bytes between them, and a stack address minus a number is deeper. Numbers wrap at 32
    bits.
    """
    if isinstance(one, StackPlace) and isinstance(other, StackPlace):
        # The distance of two addresses in one stack does not depend on where the stack is.
        return (other.depth - one.depth) & _ALL
    return added(one, -other & _ALL) if isinstance(other, int) else None


def shifted(value: Value | None, count: Value | None) -> Value | None:
    """Return ``value`` shifted left, as far as it is known."""
    # Arm shifts by 32 and more to 0, RISC-V uses only five bits of the count: such a shift stays unknown.
    known = isinstance(value, int) and isinstance(count, int) and count < 32
    return (value << count) & _ALL if known and isinstance(value, int) and isinstance(count, int) else None


def aligned(value: Value | None, mask: int) -> Value | None:
    """Return ``value`` without the bits of ``mask``; the deepest possible one for an address in the stack.

    ``mask`` has ones for the bits to clear. Only a mask of low bits, such as 7, gives a known stack address.
    """
    if isinstance(value, StackPlace):
        # The stack pointer is a multiple of 4, so aligning moves it by at most this.
        # Only a mask of low bits aligns; any other one gives no address that is known.
        return StackPlace(value.depth + (mask & ~3)) if mask & (mask + 1) == 0 else None
    return None if value is None else value & ~mask & _ALL


START: State = {SP: StackPlace(0)}
"""The state at the entry of a function."""


def changed(state: State, register: str, value: Value | None) -> State:
    """Return ``state`` with another value of a register."""
    # Paths share states, so a change makes a new one.
    left = {name: known for name, known in state.items() if name != register}
    return left if value is None else {**left, register: value}


def without(state: State, registers: Iterable[str]) -> State:
    """Return ``state`` with the ``registers`` unknown."""
    gone = set(registers)
    return {name: known for name, known in state.items() if name not in gone} if gone else state


def joined(one: State, other: State) -> State:
    """Return the state if two paths meet: values that are equal in both, and the deeper stack pointer.

    The result never claims more than either path knows, so repeated joins reach a fixed point.
    """
    if one == other:
        return one
    same = {name: value for name, value in one.items() if value == other.get(name)}
    pointers = one.get(SP), other.get(SP)
    if isinstance(pointers[0], StackPlace) and isinstance(pointers[1], StackPlace):
        # The deeper one, although both paths of compiled code have the same: an upper bound is wanted.
        same[SP] = max(pointers[0], pointers[1])
    return same
