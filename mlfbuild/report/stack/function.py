"""One function on its own: how deep its stack gets, and how deep it is where it calls others.

Every way through its instructions is gone, with what registers are known to hold; where ways meet, the deeper stack
counts. Compilers keep one depth at each instruction, on which debuggers and exceptions rely, too (DWARF 5, 6.4): a jump
through a table leads to parts of the function that nothing else leads to, at the depth that the stack has there.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

from mlfbuild.report.stack.listing import Disassembly, Instruction, ListedFunction
from mlfbuild.report.stack.steps import SP, START, Decoder, StackCall, StackPlace, State, Words, joined
from mlfbuild.report.stack.table import targets_of

_MOST_VISITS = 200
"""How often what is known before an instruction may change until its loop is said to push without end."""
_PADDING = frozenset({"nop", "nop.w", "movs r0, r0", "unimp", "c.unimp"})
"""What fills the space between functions; bytes of zero are no NOP, but this."""


@dataclass(frozen=True)
class Frame:
    """What a function takes of the stack, without what it calls."""

    size: int
    """Bytes at its deepest."""
    calls: tuple[tuple[StackCall, int], ...]
    """Each call with the bytes that the function has on the stack then."""
    problem: str = ""
    """Why ``size`` is not known; empty where it is."""


def frame_of(start: int, listing: Disassembly, decode: Decoder, words: Words) -> Frame:
    """Return what the function at address ``start`` takes of the stack.

    ``words`` has the words of the image, among them the constants that code loads. Parts of other functions that it
    jumps to the middle of count as its own: compilers move seldom used ones away.
    """
    return _Walk(start, listing, decode, words).frame()


class _Walk:
    """All ways through a function."""

    def __init__(self, start: int, listing: Disassembly, decode: Decoder, words: Words) -> None:
        self._start, self._listing, self._decode, self._words = start, listing, decode, words
        self._before: dict[int, State] = {}
        self._visits: dict[int, int] = {}
        self._calls: dict[StackCall, int] = {}
        self._tables: dict[int, State] = {}
        """Jumps to where tables say that nobody found."""
        self._registers: dict[int, State] = {}
        """Jumps to where a register says."""
        self._parts: set[int] = set()
        """Where parts begin that only tables lead to."""
        self._waiting: list[tuple[int, State]] = [(start, START)]
        self._size = 0
        self._problem = ""

    def frame(self) -> Frame:
        """Go all ways."""
        while self._waiting:
            self._reach(*self._waiting.pop())
            if self._problem:
                return Frame(self._size, (), self._problem)
            if not self._waiting:
                self._follow_tables()
        for where, state in self._registers.items():
            self._call(StackCall(where, None), state)
        return Frame(self._size, tuple(self._calls.items()))

    def _reach(self, address: int, state: State) -> None:
        """Go on at ``address``, unless nothing new is known there."""
        function = self._listing.function_at(address)
        if function is None:
            self._problem = f"goes on at {address:#x}, where the image has no code"
            return
        known = self._before.get(address)
        together = state if known is None else joined(known, state)
        if together == known:
            return
        self._visits[address] = self._visits.get(address, 0) + 1
        if self._visits[address] > _MOST_VISITS:
            self._problem = f"pushes in a loop, at {address:#x}, that may run for ever"
            return
        self._before[address] = together
        self._do(function, function.places[address], together)

    def _do(self, function: ListedFunction, at: int, state: State) -> None:
        """Do one instruction and see what comes next."""
        instruction = function.instructions[at]
        step = self._decode(instruction, state, self._words)
        pointer = step.state.get(SP)
        if not isinstance(pointer, StackPlace):
            self._problem = _not_known(instruction)
            return
        self._size = max(self._size, pointer.depth)
        for call in step.calls:
            inside = call.target != function.address and call.target in function.places
            if call.target is not None and inside:  # BL is a far jump where Thumb has no other (GCC's arm_far_jump)
                self._waiting.append((call.target, step.state))
            else:
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
        """Go on at ``target``; where another function begins there, that is its last call."""
        if target != self._start and self._listing.begins(target):
            self._call(StackCall(instruction.address, target), state)
        else:
            self._waiting.append((target, state))

    def _fall(self, function: ListedFunction, at: int, state: State, *, called: bool) -> None:
        """Go on behind an instruction; nowhere behind the last call of a function, which does not come back."""
        instruction = function.instructions[at]
        if at + 1 < len(function.instructions):
            following = function.instructions[at + 1]
            if not following.is_data:
                self._waiting.append((following.address, state))
            return
        behind = self._listing.first_behind(instruction.address)
        if not called and behind is not None and behind - instruction.address <= 4:
            self._jump(instruction, behind, state)

    def _follow_tables(self) -> None:
        """Go to the parts of functions that only tables lead to, where something new is known there."""
        jumps = {**self._tables, **self._registers}
        found = {part for where in jumps for part in self._unseen(where)}
        if found:  # then registers jump there, too, and not to another function
            self._tables, self._registers = jumps, {}
        self._parts |= found
        states = list(self._tables.values())
        if len({state[SP] for state in states}) > 1:
            self._problem = (
                "jumps through tables that cannot be told apart, with more on the stack at one than at another"
            )
        for part in self._parts if states else ():
            known, state = self._before.get(part), functools.reduce(joined, states)
            if known is None or joined(known, state) != known:
                self._waiting.append((part, state))

    def _unseen(self, where: int) -> Iterator[int]:
        """Yield where parts of the function with the instruction at ``where`` begin that no way leads to so far."""
        function = self._listing.function_at(where)
        follows = False
        for instruction in function.instructions if function else ():
            unseen = instruction.address not in self._before and not instruction.is_data
            if unseen and not follows and not _is_padding(instruction):
                yield instruction.address
            follows = unseen and (follows or not _is_padding(instruction))


def _is_padding(instruction: Instruction) -> bool:
    return f"{instruction.mnemonic} {instruction.operands}".strip() in _PADDING


def _not_known(instruction: Instruction) -> str:
    text = f"{instruction.mnemonic} {instruction.operands}".strip()
    if "UNDEFINED" in f"{instruction.operands}{instruction.comment}":
        return f"has an instruction at {instruction.address:#x} that objdump does not know"
    return (
        f"moves its stack pointer by what is known only as it runs, at {instruction.address:#x} ({text}): alloca, an "
        "array of variable length or another stack"
    )
