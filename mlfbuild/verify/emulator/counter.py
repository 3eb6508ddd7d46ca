"""The QEMU plugin that counts instructions and cycles: compiled with this machine's compiler, kept in the cache."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from mlfbuild.core import ProcessFailedError, cache_folder, find_tool, make_once, read_bytes, run, sha256, write_atomic
from mlfbuild.runners import read_firmware
from mlfbuild.targets import Board, Mcu
from mlfbuild.timing import CycleCount, cycle_count, timing_description

_SOURCE = Path(__file__).with_name("counter.c")
_HEADERS = [Path(__file__).with_name(name) for name in ("memories.h", "marks.h")]
_FLAGS = ("-O2", "-shared", "-fPIC")

OUTSIDE, REST = -1, 0
"""Numbers of the functions that call the network, and of those that call its operators."""


@dataclass(frozen=True)
class CountedCall:
    """A call of a function in a run, or all that is outside of them, with number ``REST``."""

    number: int
    instructions: int
    cycles: CycleCount | None = None
    register_accesses: int = 0
    """Loads and stores of registers of peripherals and the core between marks, if cycles are modelled."""
    fetching: int = 0
    """The cycles of waiting for instructions, if cycles are modelled."""


class MarkRole(IntEnum):
    """Role of a function when all code between two marks is counted; the plugin's ``marks.h`` has the same numbers."""

    OTHER = 0
    WITH_CALLS = 1
    """Whatever it calls is counted for it."""
    HANDLER = 2
    """It handles an interrupt."""
    BEGIN = 3
    """A call of it begins a run."""
    END = 4
    CALL = 5
    """It is not a function but a call."""
    JUMP = 6
    """It is a jump to the first instruction of a function."""


@dataclass(frozen=True)
class MarkedFunction:
    """A function of an image, a part of one, or a branch, with its first and last address."""

    first: int
    last: int
    number: int
    """Greater than 0, which is code in no function; equal numbers are one function; 0 of a call or jump."""
    role: MarkRole = MarkRole.OTHER
    target: int = 0
    """The return address of a call, or the function that a jump enters."""


@dataclass(frozen=True)
class MarkedRuns:
    """The runs between two marks, and why there are no more of them."""

    runs: tuple[tuple[CountedCall, ...], ...]
    """Of each run, the functions that had instructions, by number."""
    began: bool
    """Whether a run began that did not end."""
    nested: bool
    """Whether a run began in another one."""


@dataclass(frozen=True)
class CountedBlock:
    """A block of instructions that QEMU executed as a whole."""

    first: int
    behind: int
    executions: int
    instructions: int
    cycles: CycleCount


class Counting:
    """One run with the plugin: its arguments, and its counts after the run.

    ``functions`` are (first address, last address, number) of functions, as counter.c describes them; the numbers are
    the caller's, besides ``OUTSIDE`` and ``REST``. If they are ``MarkedFunction`` s, up to ``runs`` runs between two
    marks are counted, and ``marked_runs`` has the counts. With ``mcu`` cycles are modelled for ``image`` on that part;
    raises as ``timing_description`` then. Files are in ``folder``::

        counting = Counting(image, [(0x8000100, 0x80001ff, 1)], folder, board=board, mcu=MCUS["stm32l4r5"])
        run_elf(image, board, plugin=counting.plugin)
        [(call.number, call.instructions) for call in counting.calls()]
    """

    def __init__(
        self,
        image: Path,
        functions: Iterable[tuple[int, int, int]] | Iterable[MarkedFunction],
        folder: Path,
        *,
        runs: int = 0,
        board: Board | None = None,
        mcu: Mcu | None = None,
        places: Sequence[tuple[int, int, str]] = (),
    ) -> None:
        self._image, self._folder, self._scale = image, folder, 0
        # The plugin parses its files with scanf, so they are plain numbers with one record on each line.
        lines = [
            f"{each.first:x} {each.last:x} {each.number} {each.role:d} {each.target:x}\n"
            if isinstance(each, MarkedFunction)
            else f"{each[0]:x} {each[1]:x} {each[2]}\n"
            for each in functions
        ]
        write_atomic(folder / "table", "".join(lines).encode())
        table = f"{f'runs={runs},marks' if runs else 'table'}={folder / 'table'}"
        self.plugin = f"{counting_plugin()},{table},out={folder / 'counts'}"
        """The plugin with its arguments, for ``run_elf``."""
        if mcu is not None and board is not None:
            described, self._scale = timing_description(image, board, mcu, places)
            write_atomic(folder / "timing", described)
            self.plugin += f",timing={folder / 'timing'},blocks={folder / 'blocks'}"

    def calls(self) -> list[CountedCall]:
        """Return the counts of the calls in order, and of the rest.

        Raises ``ProcessFailedError`` if the run executed code or accessed data that the model does not know.
        """
        words = [line.split() for line in self._lines("counts")]
        self._check_known(words)
        return [self._call(line) for line in words]

    def marked_runs(self) -> MarkedRuns:
        """Return the runs between two marks that ended; raises as ``calls``.

        It may be called after a run that was stopped: the plugin writes each run when it ends.
        """
        words = [line.split() for line in self._lines("counts")]
        self._check_known(words)
        runs: list[tuple[CountedCall, ...]] = []
        found: list[CountedCall] = []
        began = False
        for line in words:
            if line[0] in {"run", "nested"}:
                found, began = [], True
            elif line[0] == "end":
                runs.append(tuple(found))
                began = False
            else:
                found.append(self._call([line[0], *line[2:]], int(line[1])))
        return MarkedRuns(tuple(runs), began, ["nested"] in words)

    def _call(self, words: list[str], register_accesses: int = 0) -> CountedCall:
        number, instructions, *units = words
        cycles, fetching = self._cycles(units)
        return CountedCall(int(number), int(instructions), cycles, register_accesses, fetching)

    def _check_known(self, lines: list[list[str]]) -> None:
        # An address outside the memories means that the model would charge nothing for it: a figure that is too small
        # is worse than none.
        unknown = next(((int(line[1], 16), int(line[2], 16)) for line in lines if line[0] == "unknown"), None)
        if unknown is not None:
            address, block = unknown
            where = read_firmware(self._image).place_of(block)
            raise ProcessFailedError(
                "cycles-not-modelled",
                place=self._image,
                reason=f"{where} used the address {address:#x}, which is in no memory of the part or not in the code",
                hint="keep its code and data in memories of the part, or choose a target without mcu, for which only "
                "instructions are counted",
            )

    def blocks(self) -> list[CountedBlock]:
        """Return the blocks of a run with modelled cycles that QEMU executed; code may be in several of them.

        They are sorted by address; ``first`` and ``behind`` are addresses, ``cycles`` the sum over all executions. Call
        it only if the run had an ``mcu``.
        """
        found = []
        for line in self._lines("blocks"):
            first, behind, *numbers = line.split()
            executions, instructions, *units = map(int, numbers)
            cycles = cycle_count(units[:-1], self._scale)
            found.append(CountedBlock(int(first, 16), int(behind, 16), executions, instructions, cycles))
        # Sorted, because the order in which QEMU translates blocks says nothing to a reader.
        return sorted(found, key=lambda block: (block.first, block.behind))

    def _cycles(self, units: list[str]) -> tuple[CycleCount | None, int]:
        if not units:
            return None, 0
        *kinds, fetching = map(int, units)
        return cycle_count(kinds, self._scale), fetching // self._scale

    def _lines(self, name: str) -> list[str]:
        return read_bytes(self._folder / name, "counts of the plugin").decode().splitlines()


def counting_plugin() -> Path:
    """Return the shared object of ``counter.c``; compile it if it is not cached.

    Raises ``ToolNotFoundError`` without a C compiler, ``StorageError`` if the cache cannot be written.
    """
    compiler = find_tool("gcc", os.environ.get("CC") or None)
    # Compiled here rather than shipped, because a plugin must fit the machine and its QEMU.
    sources = b"".join(read_bytes(path, "plugin") for path in (_SOURCE, *_HEADERS))
    key = sha256(sources + run([compiler, "--version"]).encode())
    return make_once(cache_folder("counter") / f"{key}.so", lambda folder: _compiled(compiler, folder))


def _compiled(compiler: Path, folder: Path) -> Path:
    made = folder / "counter.so"
    run([compiler, *_FLAGS, _SOURCE, "-o", made])
    return made
