"""The QEMU plugin that counts instructions and cycles: compiled with this machine's compiler, kept in the cache."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import ProcessFailedError, cache_folder, find_tool, make_once, read_bytes, run, sha256, write_atomic
from mlfbuild.targets import Board, Mcu
from mlfbuild.timing import CycleCount, cycle_count, timing_description

_SOURCE = Path(__file__).with_name("counter.c")
_HEADER = Path(__file__).with_name("memories.h")
_FLAGS = ("-O2", "-shared", "-fPIC")

OUTSIDE, REST = -1, 0
"""Numbers of the functions that call the network, and of those that call its operators."""


@dataclass(frozen=True)
class CountedCall:
    """A call of a function in a run, or all that is outside of them, with number ``REST``."""

    number: int
    instructions: int
    cycles: CycleCount | None = None


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
    the caller's, besides ``OUTSIDE`` and ``REST``. With ``mcu`` cycles are modelled for ``image`` on that part; raises
    as ``timing_description`` then. Files are in ``folder``::

        counting = Counting(image, [(0x8000100, 0x80001ff, 1)], folder, board=board, mcu=MCUS["stm32l4r5"])
        run_elf(image, board, plugin=counting.plugin)
        [(call.number, call.instructions) for call in counting.calls()]
    """

    def __init__(
        self,
        image: Path,
        functions: Iterable[tuple[int, int, int]],
        folder: Path,
        *,
        board: Board | None = None,
        mcu: Mcu | None = None,
        places: Sequence[tuple[int, int, str]] = (),
    ) -> None:
        self._image, self._folder, self._scale = image, folder, 0
        # The plugin parses its files with scanf, so they are plain numbers with one record on each line.
        table = "".join(f"{first:x} {last:x} {number}\n" for first, last, number in functions)
        write_atomic(folder / "table", table.encode())
        self.plugin = f"{counting_plugin()},table={folder / 'table'},out={folder / 'counts'}"
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
        # An address outside the memories means that the model would charge nothing for it: a figure that is too small
        # is worse than none.
        unknown = next((int(address, 16) for name, address, *_ in words if name == "unknown"), None)
        if unknown is not None:
            raise ProcessFailedError(
                "cycles-not-modelled",
                place=self._image,
                reason=f"the run used the address {unknown:#x}, which is in no memory of the part or not in the code",
            )
        return [CountedCall(int(name), int(count), self._cycles(units)) for name, count, *units in words]

    def blocks(self) -> list[CountedBlock]:
        """Return the blocks of a run with modelled cycles that QEMU executed; code may be in several of them.

        They are sorted by address; ``first`` and ``behind`` are addresses, ``cycles`` the sum over all executions. Call
        it only if the run had an ``mcu``.
        """
        found = []
        for line in self._lines("blocks"):
            first, behind, *numbers = line.split()
            executions, instructions, *units = map(int, numbers)
            found.append(
                CountedBlock(int(first, 16), int(behind, 16), executions, instructions, cycle_count(units, self._scale))
            )
        # Sorted, because the order in which QEMU translates blocks says nothing to a reader.
        return sorted(found, key=lambda block: (block.first, block.behind))

    def _cycles(self, units: list[str]) -> CycleCount | None:
        return cycle_count([int(each) for each in units], self._scale) if units else None

    def _lines(self, name: str) -> list[str]:
        return read_bytes(self._folder / name, "counts of the plugin").decode().splitlines()


def counting_plugin() -> Path:
    """Return the shared object of ``counter.c``; compile it if it is not cached.

    Raises ``ToolNotFoundError`` without a C compiler, ``StorageError`` if the cache cannot be written.
    """
    compiler = find_tool("gcc", os.environ.get("CC") or None)
    # Compiled here rather than shipped, because a plugin must fit the machine and its QEMU.
    sources = read_bytes(_SOURCE, "plugin") + read_bytes(_HEADER, "plugin")
    key = sha256(sources + run([compiler, "--version"]).encode())
    return make_once(cache_folder("counter") / f"{key}.so", lambda folder: _compiled(compiler, folder))


def _compiled(compiler: Path, folder: Path) -> Path:
    made = folder / "counter.so"
    run([compiler, *_FLAGS, _SOURCE, "-o", made])
    return made
