"""The stack of one function: its maximum depth, and the depth at each call.

All paths through its instructions are followed with the known contents of registers; if paths meet, the deeper stack
counts. Compilers keep one depth at each instruction, which debuggers and exceptions also rely on (DWARF 5, 6.4). So a
jump through an unknown table leads to the parts of the function that no other path reaches, at the depth of the jump.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from mlfbuild.report.stack.steps import SP, START, Decoder, Entries, StackCall, StackPlace, State, Words, joined
from mlfbuild.timing import Disassembly, Instruction, ListedFunction

_INDEX = re.compile(r"\[pc, (\w+)")
_FIRST = "r0"
"""The register with the index for functions of libgcc."""
_LOOKED_AT = 12
"""Instructions before a jump that are searched for the comparison of its index with the last one."""


def targets_of(function: ListedFunction, at: int, entries: Entries, words: Words) -> Iterator[int]:
    """Yield the targets of the table after the instruction ``at`` of ``function``.

    The comparison of the index before it gives the number of entries; otherwise it extends to the next instruction.

    Entries count half words from the start of the table, as those of TBB and TBH do; the instruction at ``at`` has
    four bytes, and its table is right behind it.
    """
    behind = function.instructions[at + 1 :]
    # Mapping symbols ($d in ELF for the Arm Architecture) let objdump list a table in the code as data.
    data = list(itertools.takewhile(lambda item: item.is_data, behind))
    start = function.instructions[at].address + 4
    # Without code behind the data the table's end is unknown: no target is yielded, and the caller treats the table as
    # unknown.
    end = behind[len(data)].address if data and len(data) < len(behind) else start
    last = _last_index(function, at)
    if last is not None:
        end = min(end, start + (last + 1) * entries.size)
    for place in range(start, end - entries.size + 1, entries.size):
        # Only starts of instructions: if the comparison belongs to another value, bytes behind the table look like
        # entries.
        target = start + 2 * _entry(place, entries, words)
        if target in function.places and not function.instructions[function.places[target]].is_data:
            yield target


def _entry(place: int, entries: Entries, words: Words) -> int:
    bits = 8 * entries.size
    # Words are little-endian; an entry of one or two bytes never crosses a word.
    entry = (words(place & ~3) or 0) >> 8 * (place & 3) & (1 << bits) - 1
    return entry - (1 << bits) if entries.signed and entry >> bits - 1 else entry


def _last_index(function: ListedFunction, at: int) -> int | None:
    """Return the number that the index of the jump ``at`` was last compared with; ``None`` if unknown."""
    found = _INDEX.match(function.instructions[at].operands)
    index = re.escape(found[1] if found else _FIRST)
    # The nearest comparison is the range check of the jump; earlier ones are usually about other values.
    for before in reversed(function.instructions[max(0, at - _LOOKED_AT) : at]):
        compared = re.fullmatch(rf"{index}, #(\d+)", before.operands)
        if before.mnemonic.startswith("cmp") and compared is not None:
            return int(compared[1])
    return None


_MOST_VISITS = 200
"""Changes of the state before an instruction after which its loop is assumed to push without end."""
_PADDING = frozenset({"nop", "nop.w", "movs r0, r0", "unimp", "c.unimp"})
"""Padding between functions; zero bytes are not a NOP, but disassemble to one of these."""


@dataclass(frozen=True)
class Frame:
    """The stack of a function without the functions that it calls."""

    size: int
    """Maximum bytes."""
    calls: tuple[tuple[StackCall, int], ...]
    """Each call with the bytes of the function on the stack at that time."""
    problem: str = ""
    """Why ``size`` is unknown; empty if it is known."""


def frame_of(start: int, listing: Disassembly, decode: Decoder, words: Words) -> Frame:
    """Return the stack of the function at address ``start``.

    ``words`` has the words of the image, including the constants that code loads. If it jumps into the middle of other
    functions, these parts count as its own: compilers move cold code away.

    The walk does not raise for code that it cannot follow: ``problem`` of the result states the first reason, and
    ``calls`` is then empty.
    """
    return _Walk(start, listing, decode, words).frame()


class _Walk:
    """All paths through a function."""

    def __init__(self, start: int, listing: Disassembly, decode: Decoder, words: Words) -> None:
        self._start, self._listing, self._decode, self._words = start, listing, decode, words
        self._before: dict[int, State] = {}
        self._visits: dict[int, int] = {}
        self._calls: dict[StackCall, int] = {}
        self._tables: dict[int, State] = {}
        """Jumps through tables that were not found."""
        self._registers: dict[int, State] = {}
        """Jumps to the address in a register."""
        self._parts: set[int] = set()
        """Starts of parts that only tables lead to."""
        self._waiting: list[tuple[int, State]] = [(start, START)]
        self._size = 0
        self._problem = ""

    def frame(self) -> Frame:
        """Follow all paths."""
        while self._waiting:
            # In any order: states at one address are joined, and a deeper one visits what follows again.
            self._reach(*self._waiting.pop())
            if self._problem:
                return Frame(self._size, (), self._problem)
            # Tables last: only when all other paths have ended is it known which parts nothing else reaches.
            if not self._waiting:
                self._follow_tables()
        # What is left is explained by no part of this function, so these are tail calls through a pointer.
        for where, state in self._registers.items():
            self._call(StackCall(where, None), state)
        return Frame(self._size, tuple(self._calls.items()))

    def _reach(self, address: int, state: State) -> None:
        """Continue at ``address``, unless the state there is already covered."""
        function = self._listing.function_at(address)
        if function is None:
            self._problem = f"continues at {address:#x}, which is not code"
            return
        known = self._before.get(address)
        # The joined state only loses facts or gets deeper, so this ends; a loop that pushes gets deeper for ever, hence
        # _MOST_VISITS.
        together = state if known is None else joined(known, state)
        if together == known:
            return
        self._visits[address] = self._visits.get(address, 0) + 1
        if self._visits[address] > _MOST_VISITS:
            self._problem = f"pushes in a loop at {address:#x} without a known limit"
            return
        self._before[address] = together
        self._do(function, function.places[address], together)

    def _do(self, function: ListedFunction, at: int, state: State) -> None:
        """Apply one instruction and queue its successors."""
        instruction = function.instructions[at]
        # An unknown stack pointer ends the walk, because all depths behind it would be guesses.
        step = self._decode(instruction, state, self._words)
        pointer = step.state.get(SP)
        if not isinstance(pointer, StackPlace):
            self._problem = _not_known(instruction)
            return
        # Code keeps nothing below the stack pointer (AAPCS, and the RISC-V psABI likewise), so its depth is all that
        # is used.
        self._size = max(self._size, pointer.depth)
        for call in step.calls:
            inside = call.target != function.address and call.target in function.places
            if call.target is not None and inside:  # BL as a far jump in Thumb (GCC's arm_far_jump)
                self._waiting.append((call.target, step.state))
            else:
                # With the state before the instruction: neither BL nor JAL stores anything on the stack.
                self._call(call, state)
        for target in step.jumps:
            self._jump(instruction, target, step.state)
        targets = list(targets_of(function, at, step.entries, self._words)) if step.entries else []
        self._waiting += [(target, step.state) for target in targets]
        if step.through_table and not targets:
            self._tables[instruction.address] = step.state
        if step.through_register:
            self._registers[instruction.address] = step.state
        if step.falls:
            self._fall(function, at, step.state, called=bool(step.calls))

    def _call(self, call: StackCall, state: State) -> None:
        pointer = state[SP]
        assert isinstance(pointer, StackPlace)
        self._calls[call] = max(self._calls.get(call, 0), pointer.depth)

    def _jump(self, instruction: Instruction, target: int, state: State) -> None:
        """Continue at ``target``; if another function begins there, it is a tail call."""
        # A branch to the function's own entry is a loop, such as a tail recursion that the compiler removed.
        if target != self._start and self._listing.begins(target):
            self._call(StackCall(instruction.address, target), state)
        else:
            self._waiting.append((target, state))

    def _fall(self, function: ListedFunction, at: int, state: State, *, called: bool) -> None:
        """Continue after an instruction; not after a call at the end of a function, which does not return."""
        instruction = function.instructions[at]
        if at + 1 < len(function.instructions):
            following = function.instructions[at + 1]
            if not following.is_data:
                self._waiting.append((following.address, state))
            return
        behind = self._listing.first_behind(instruction.address)
        # A function whose last instruction is a call does not return from it (noreturn); any other falls into the next
        # function.
        # An instruction has at most 4 bytes, so a larger distance means that data or padding is in between.
        if not called and behind is not None and behind - instruction.address <= 4:
            self._jump(instruction, behind, state)

    def _follow_tables(self) -> None:
        """Continue at the parts of functions that only tables lead to, if the state there is new."""
        jumps = {**self._tables, **self._registers}
        found = {part for where in jumps for part in self._unseen(where)}
        if found:  # then jumps to registers may also lead there, and not to another function
            self._tables, self._registers = jumps, {}
        self._parts |= found
        states = list(self._tables.values())
        # Any of the tables may lead to any part, so with different depths a part could be walked at a wrong one.
        if len({state[SP] for state in states}) > 1:
            self._problem = "jumps through unknown tables at different stack depths"
        for part in self._parts if states else ():
            known, state = self._before.get(part), functools.reduce(joined, states)
            if known is None or joined(known, state) != known:
                self._waiting.append((part, state))

    def _unseen(self, where: int) -> Iterator[int]:
        """Yield the starts of parts of the function around ``where`` that no path has reached so far."""
        function = self._listing.function_at(where)
        follows = False
        for instruction in function.instructions if function else ():
            unseen = instruction.address not in self._before and not instruction.is_data
            if unseen and not follows and not _is_padding(instruction):
                yield instruction.address
            # Of a run of unreached instructions only the first is a start; the others follow it.
            follows = unseen and (follows or not _is_padding(instruction))


def _is_padding(instruction: Instruction) -> bool:
    return f"{instruction.mnemonic} {instruction.operands}".strip() in _PADDING


def _not_known(instruction: Instruction) -> str:
    text = f"{instruction.mnemonic} {instruction.operands}".strip()
    if "UNDEFINED" in f"{instruction.operands}{instruction.comment}":
        return f"has an instruction at {instruction.address:#x} that objdump does not know"
    return (
        f"changes its stack pointer by an amount known only at run time, at {instruction.address:#x} ({text}): alloca, "
        "a variable-length array or another stack"
    )
