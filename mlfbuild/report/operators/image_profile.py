"""Count all code of a firmware image between calls of ``mlf_bench_begin`` and ``mlf_bench_end``, by function.

The image is that of the user, with its own loop; it runs on an emulated board from reset. Operators of a model are
counted with the functions that they call, as in the profile of the model; all other functions are counted alone. So
each instruction is counted once, and the counts of the functions add up to that of the run.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.core import InputFileError, ProcessFailedError, TimedOutError, listed
from mlfbuild.library import Module
from mlfbuild.report.operators.cycles import TimedPart, sum_of_cycles
from mlfbuild.report.operators.profile import functions_of_module
from mlfbuild.report.sizes.image import read_image
from mlfbuild.report.sizes.images import any_image_sizes
from mlfbuild.report.sizes.owners import plain_name
from mlfbuild.runners import read_firmware
from mlfbuild.targets import Board, Mcu
from mlfbuild.timing import CycleCount, LinkedCode, disassembled, modelled_error
from mlfbuild.verify.emulator import CountedCall, Counting, MarkedFunction, MarkedRuns, MarkRole, run_elf

_MARKS = {"mlf_bench_begin": MarkRole.BEGIN, "mlf_bench_end": MarkRole.END}
_MOST_VECTORS = 496
"""Of an M-profile core (Armv8-M Architecture Reference Manual, B3.30)."""
_BRANCH = re.compile(r"^ *([0-9a-f]+):\t(b\S*|c?\.?j\S*)\t(?:\S+,)?(?:([0-9a-f]+) <)?", re.MULTILINE)
"""Branches in objdump's output, with the target of direct ones."""
_CALL = re.compile(r"bl(x(ns)?)?(eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?(\.[wn])?|c?\.?jalr?")
"""Calls of Arm and RISC-V; ``bls`` and ``blt`` are jumps."""
_NOWHERE = ("", "code without a symbol")
BETWEEN_OPERATORS = "between operators"
"""The name of the functions of a model that call its operators."""
INTERRUPT = "interrupt"
"""The owner of functions that handle interrupts."""


@dataclass(frozen=True)
class FunctionCount:
    """A function in a run of an image."""

    owner: str
    """The model, ``INTERRUPT``, or the owner by the linker map, such as ``C library``; empty without a map."""
    function: str
    instructions: int
    cycles: CycleCount | None = None
    """Modelled cycles on the microcontroller, if there is one."""
    register_accesses: int = 0
    """Loads and stores of registers of peripherals and the core, if cycles are modelled."""

    @property
    def title(self) -> str:
        """The function in tables: ``C library: memcpy``."""
        return f"{self.owner}: {self.function}" if self.owner else self.function


@dataclass(frozen=True)
class CodeRun:
    """One run of the code between the marks."""

    functions: tuple[FunctionCount, ...]
    """Those with instructions, by decreasing cycles or instructions."""

    @property
    def instructions(self) -> int:
        """All instructions of the run."""
        return sum(each.instructions for each in self.functions)

    @property
    def cycles(self) -> CycleCount | None:
        """All modelled cycles of the run."""
        return sum_of_cycles(each.cycles for each in self.functions)

    @property
    def register_accesses(self) -> int:
        """All accesses to registers of the run, if its cycles are modelled."""
        return sum(each.register_accesses for each in self.functions)


@dataclass(frozen=True)
class ImageProfile:
    """The runs of an image on a board."""

    image: Path
    target: str
    board: str
    runs: tuple[CodeRun, ...]
    """At least one, in order."""
    part: TimedPart | None
    """The microcontroller whose cycles are modelled; ``None`` if they are not."""
    remarks: tuple[str, ...]
    """Reasons why the figures are less certain, such as interrupts."""

    @property
    def median(self) -> int:
        """The index of the run with the median of cycles, or of instructions; the lower one of two."""
        order = sorted(range(len(self.runs)), key=lambda at: (_size(self.runs[at]), at))
        return order[(len(order) - 1) // 2]


def profile_image(
    image: Path,
    target: str,
    board: Board,
    modules: Mapping[str, Sequence[Module]],
    runs: int,
    timeout: float,
    mcu: Mcu | None = None,
    places: Sequence[tuple[int, int, str]] = (),
) -> ImageProfile:
    """Count up to ``runs`` runs of the code between the marks of ``image``, which is linked for ``board``.

    ``modules`` has the modules of each model that may be in the image, ``target`` is the name of the target in
    messages. The emulator is stopped after the runs, or after ``timeout`` seconds: then those that ended are returned.
    ``mcu`` and ``places`` are those of ``profile_module``.

    Raises ``InputFileError`` if the image has no symbols or no marks, ``ProcessFailedError`` if no run ends, or if its
    cycles cannot be modelled; ``ToolNotFoundError`` without QEMU, objdump or a compiler for the plugin; and as
    ``run_elf`` and ``Counting``.
    """
    names, functions = _numbered(image, modules)
    with tempfile.TemporaryDirectory(prefix="mlfbuild-profile-") as name:
        counting = Counting(image, functions, Path(name), runs=runs, board=board, mcu=mcu, places=places)
        output, ended = "", f"was stopped after {timeout:g} s"
        try:
            result = run_elf(image, board, timeout=timeout, plugin=counting.plugin)
            output, ended = result.stdout, f"ended with exit status {result.exit_status}"
        except TimedOutError as error:
            output = error.output
        found = counting.marked_runs()
    _check(image, found, ended, output)
    done = tuple(_code_run(run, names) for run in found.runs)
    remarks = list(_remarks(done))
    if len(done) < runs:
        remarks.append(f"{image.name} was counted {len(done)} times, not {runs}: it {ended}")
    part = None if mcu is None else TimedPart(mcu.name, mcu.clock, modelled_error(mcu))
    return ImageProfile(image, target, board.name, done, part, tuple(remarks))


def _size(run: CodeRun | FunctionCount) -> int:
    return run.instructions if run.cycles is None else run.cycles.total


def _code_run(run: Sequence[CountedCall], names: Sequence[tuple[str, str]]) -> CodeRun:
    found = [FunctionCount(*names[each.number], each.instructions, each.cycles, each.register_accesses) for each in run]
    return CodeRun(tuple(sorted(found, key=lambda each: (-_size(each), each.title))))


def _remarks(runs: Sequence[CodeRun]) -> Iterator[str]:
    handlers = {each.function for run in runs for each in run.functions if each.owner == INTERRUPT}
    if handlers:
        # QEMU's timers follow the clock of this machine, so the number of their interrupts differs from run to run.
        yield f"interrupts came between the marks ({listed(sorted(handlers))}); those of timers vary from run to run"
    accesses: Counter[str] = Counter()
    for run in runs:
        accesses.update({each.title: each.register_accesses for each in run.functions})
    fewest, most = (extreme(run.register_accesses for run in runs) for extreme in (min, max))
    if most:
        # The bus of peripherals often has a slower clock, and loops that poll end when the emulated device is ready.
        yield (
            "accesses to registers of peripherals or the core in a run: "
            f"{most if fewest == most else f'{fewest} to {most}'}, most of them by {accesses.most_common(1)[0][0]}; "
            "the cycles do not include the waits of their buses"
        )


def _check(image: Path, found: MarkedRuns, ended: str, output: str) -> None:
    """Raise ``ProcessFailedError`` if no run ended, or if one began in another."""
    if found.nested:
        raise ProcessFailedError(
            "marks-nested",
            place=image,
            reason="mlf_bench_begin was called again before mlf_bench_end",
            hint="call them in turn; a reset of the core between them is also such a call",
        )
    if not found.runs:
        mark = "mlf_bench_end" if found.began else "mlf_bench_begin"
        raise ProcessFailedError(
            "marks-not-reached",
            output,
            place=image,
            reason=f"{mark} was not called before the image {ended}",
            hint="check that it runs on the emulated board without the part's peripherals, and that the marks are not "
            "empty functions, whose calls compilers remove",
        )


def _numbered(
    image: Path, modules: Mapping[str, Sequence[Module]]
) -> tuple[list[tuple[str, str]], list[MarkedFunction]]:
    """Return the owner and name of each number, and the functions of ``image`` with their numbers."""
    found, code = read_image(image), disassembled(image)
    marks = {symbol.address: _MARKS[symbol.name] for symbol in found.symbols if symbol.name in _MARKS}
    # A linker that folds functions with equal code leaves one address for both.
    missing = [name for name, role in _MARKS.items() if role not in marks.values()]
    if missing or code is None:
        raise InputFileError(
            "marks-missing",
            place=image,
            reason=f"these functions are not in the image, or the linker folded them: {listed(missing)}",
            hint="call mlf_bench_begin() and mlf_bench_end() of mlf_bench.h around the code that is counted",
        )
    own = {
        symbol.address: (model, name or BETWEEN_OPERATORS)
        for model, each in modules.items()
        for module in each
        for symbol, name in functions_of_module(found.symbols, module)
    }
    owners, handlers = _owners(image), set(_handlers(image, code))
    numbers: dict[tuple[str, str], int] = {_NOWHERE: 0}
    functions = []
    listing = code.listing.functions
    for function, behind in itertools.zip_longest(listing, listing[1:]):
        address = function.address
        name = own.get(address) or (
            INTERRUPT if address in handlers else owners.get(address, ""),
            plain_name(function.name),
        )
        role = MarkRole.WITH_CALLS if address in own else MarkRole.HANDLER if address in handlers else MarkRole.OTHER
        # The last function of a section ends before the next section, where no code is executed in between.
        last = 0xFFFF_FFFF if behind is None else behind.address - 1
        number = numbers.setdefault(name, len(numbers))
        functions.append(MarkedFunction(address, last, number, marks.get(address, role)))
    return list(numbers), [*functions, *_branches(code)]


def _branches(code: LinkedCode) -> Iterator[MarkedFunction]:
    """Yield the calls, and the jumps to functions (tail calls), by address."""
    for function in code.listing.functions:
        for address, name, target in _BRANCH.findall(function.text):
            at, to = int(address, 16), int(target or "0", 16)
            if _CALL.fullmatch(name):
                yield MarkedFunction(at, at, 0, MarkRole.CALL, at + code.size(at))
            elif to and code.listing.begins(to):
                yield MarkedFunction(at, at, 0, MarkRole.JUMP, to)


def _owners(image: Path) -> dict[int, str]:
    """Return the owner of each function by the linker map beside the image; empty without one."""
    if not image.with_name(f"{image.name}.map").is_file():
        return {}
    sizes = any_image_sizes(image).sizes
    pieces = ((owner.name, piece.address) for owner in (*sizes.models, *sizes.others) for piece in owner.pieces)
    return {address: name for name, address in pieces if address is not None}


def _handlers(image: Path, code: LinkedCode) -> Iterator[int]:
    """Yield the addresses of the functions in the vector table of an M-profile core, but for that of the reset."""
    table = read_firmware(image).vectors()
    for at in range(2, _MOST_VECTORS if table else 0):
        word = code.word(table[0] + 4 * at) if table else None
        # Behind the table, there is code or another variable.
        if word is None or (word and not (word & 1 and code.listing.begins(word & ~1))):
            return
        yield word & ~1
