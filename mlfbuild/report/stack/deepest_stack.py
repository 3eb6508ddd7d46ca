"""Worst-case stack of a function: its own frame and the deepest of the functions that it calls.

**What.** A stack that overflows corrupts memory without a message, so a firmware engineer needs an upper bound, not the
stack of a run that was tried. This module computes it from the instructions of the linked image. It needs no compiler
option (``-fstack-usage`` only covers what is compiled here) and covers the C library and objects of vendors.

**Data.** In: the listing of the image, a decoder for its instruction set (``arm``, ``riscv``), the words of its tables,
and the possible targets of calls through pointers by the calling function (``pointers``). Out: a ``StackDepth``, with
bytes and the call chain to the deepest point, or without bytes and with the reason.

**Rules.**

1. ``function`` follows all paths through one function and returns its ``Frame``: the greatest depth, and the depth at
   each call. Depths are bytes below the stack pointer at the function's entry.
2. The depth of a function is the greatest of its own frame and, for each call, the depth there plus that of the called
   function. A tail call is a call at the depth that is left, usually 0.
3. A direct call of a function that is already running is recursion: unknown.
4. A call through a pointer has several targets; the deepest counts. Targets that are already running are skipped, as an
   executor's table contains the caller's own relatives. A function whose targets are unknown is unknown.
5. ``alloca``, arrays of variable length and a stack pointer from memory make the function, and its callers, unknown.
6. A call of ``__stack_chk_fail`` does not count: the stack has been overwritten already, and the program ends.

**Order.** The search is depth first. A result is kept for the next caller only if no target was skipped below it
(``passed``): a skipped function would count for a caller that does not come through it. This costs repeated visits,
which ``_MOST_VISITS`` limits; the stack is then unknown with that reason, instead of too small.

**Example.** ``main`` pushes 16 bytes and calls ``run`` there. ``run`` has 48, and calls ``conv`` at 40 and ``softmax``
at 48. ``conv`` needs 120 and ``softmax`` 64:

    run  = max(48, 40 + 120, 48 + 64) = 160      through conv
    main = max(16, 16 + 160)          = 176      path: main 16, run 40, conv 120

**What it does not do.** Interrupts are not included: the firmware engineer adds the deepest handler and the 32 bytes
(104 with FPU registers) that the core stores for each level. It knows no values: a call that no input reaches counts.
In our tests of Cortex-M images, the measured stack of a run never exceeds the bound, and mostly equals it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from mlfbuild.core import printable
from mlfbuild.report.sizes.owners import plain_name
from mlfbuild.report.stack.function import Frame, frame_of
from mlfbuild.report.stack.steps import Decoder, StackCall, Words
from mlfbuild.timing import Disassembly

# The search recurses once for each nested call, and Python's default limit is 1,000 frames, of which the callers,
# SCons among them, already use some.
_DEEPEST = 150
"""Maximum depth of nested calls."""
_LAST_CALL = "__stack_chk_fail"
_MOST_VISITS = 100_000
"""Maximum visits of functions from one entry; targets of pointers are visited once for each path."""


@dataclass(frozen=True)
class StackFrame:
    """A function of a call chain."""

    function: str
    size: int
    """Bytes on the stack when it calls the next one; the maximum for the last one."""


@dataclass(frozen=True)
class StackDepth:
    """The worst-case stack of a function with everything that it calls."""

    size: int | None
    """Bytes; ``None`` if unknown."""
    path: tuple[StackFrame, ...] = ()
    """The call chain to the deepest point, or to the function whose stack is unknown."""
    reason: str = ""
    """Why it is unknown; empty if it is known."""


class _NotKnownError(Exception):
    def __init__(self, reason: str, path: tuple[str, ...]) -> None:
        super().__init__(reason)
        self.path = path


@dataclass
class _Search:
    """The state of a depth-first search."""

    visits: int = 0
    path: list[int] = field(default_factory=list)
    passed: set[int] = field(default_factory=set)
    """Functions on the path that a pointer was not followed to, because they are already running."""


class CallGraph:
    """Functions of an image and what they call."""

    def __init__(
        self, listing: Disassembly, decode: Decoder, words: Words, pointers: Mapping[int, Collection[int]]
    ) -> None:
        """``pointers`` has the targets of calls through pointers by the address of the calling function.

        The stack of a function that calls through a pointer and is not in it is unknown.
        """
        self._listing, self._decode, self._words, self._pointers = listing, decode, words, pointers
        self._frames: dict[int, Frame] = {}
        self._known: dict[int, tuple[StackFrame, ...]] = {}

    def depth(self, entry: int) -> StackDepth:
        """Return the worst-case stack of the function at ``entry`` with everything that it calls.

        Pointers are assumed not to lead to a function that is already running. A direct call that does is recursion,
        whose stack is unknown.

        A result without a size has a reason, and the path to the function that it is about.
        """
        if self._name(entry) is None:
            return StackDepth(None, reason=f"{entry:#x} is not code")
        try:
            # A new search for each function, so that one with many paths does not use up the visits of the others.
            path = self._deepest(entry, _Search())
        except _NotKnownError as error:
            # Without sizes, because a sum of the frames so far would look like a bound.
            return StackDepth(None, tuple(StackFrame(name, 0) for name in error.path), str(error))
        return StackDepth(sum(part.size for part in path), path)

    def _deepest(self, address: int, search: _Search) -> tuple[StackFrame, ...]:
        if address in self._known:
            return self._known[address]
        # Results that are kept are not visits, so the limit only concerns repeated searches.
        search.visits += 1
        name = self._name(address)
        if name is None:
            raise self._not_known(f"calls {address:#x}, which is not code", search)
        search.path.append(address)
        # Frames are kept by address: the search may come through a function many times, but its own stack is always
        # the same.
        frame = self._frame(address)
        if frame.problem:
            raise self._not_known(frame.problem, search)
        if len(search.path) > _DEEPEST or search.visits > _MOST_VISITS:
            # Unknown, not the deepest so far: a bound that is too small is the one mistake that must not happen.
            raise self._not_known("has too many call paths to follow", search)
        best: tuple[StackFrame, ...] = (StackFrame(name, frame.size),)
        for call, depth in frame.calls:
            for target in self._targets(address, call, search):
                # That of newlib calls a handler of signals through a pointer, so no stack would be known.
                if self._name(target) == _LAST_CALL:
                    continue
                below = (StackFrame(name, depth), *self._deepest(target, search))
                best = max(best, below, key=_total)
        search.path.pop()
        # This function returns, so skipped pointers to it no longer make a result depend on the path.
        search.passed.discard(address)
        if not search.passed:  # skipped functions may count if another function calls this one
            self._known[address] = best
        return best

    def _targets(self, caller: int, call: StackCall, search: _Search) -> list[int]:
        if call.target is not None:
            if call.target in search.path:
                other = "itself" if call.target == caller else f"{self._name(call.target)}, which is already running"
                raise self._not_known(f"calls {other}: recursion", search)
            return [call.target]
        found = self._pointers.get(caller)
        if found is None:
            raise self._not_known(f"calls a function through a pointer, at {call.where:#x}", search)
        # See rule 4: these are skipped, and what is found below then depends on the path (``passed``).
        running = set(found) & set(search.path)
        search.passed |= running
        # Sorted, so that of two chains of the same depth always the same one is reported.
        return sorted(set(found) - running)

    def _frame(self, address: int) -> Frame:
        if address not in self._frames:
            self._frames[address] = frame_of(address, self._listing, self._decode, self._words)
        return self._frames[address]

    def _name(self, address: int) -> str | None:
        function = self._listing.function_at(address)
        if function is None:
            return None
        offset = address - function.address
        name = printable(plain_name(function.name))
        return f"{name}+{offset:#x}" if offset else name

    def _not_known(self, reason: str, search: _Search) -> _NotKnownError:
        path = tuple(self._name(address) or "" for address in search.path)
        return _NotKnownError(f"{path[-1]} {reason}", path)


def _total(path: tuple[StackFrame, ...]) -> int:
    return sum(part.size for part in path)
