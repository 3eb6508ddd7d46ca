"""Count the instructions of one run of a module on a board, by call of its operator functions, and model its cycles.

A QEMU plugin (``verify/emulator/counter.c``) counts. Counts of instructions are exact: QEMU translates an image block
by block and executes blocks as a whole. Cycles are modelled for a microcontroller (``mlfbuild/timing``). Both are
repeatable.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from mlfbuild.jobs.tree import subject_of
from mlfbuild.library import Module, symbol_prefix
from mlfbuild.report.operators.cycles import TimedPart, sum_of_cycles
from mlfbuild.report.sizes.image import Symbol, read_image
from mlfbuild.targets import Board, Mcu
from mlfbuild.timing import CycleCount, modelled_error
from mlfbuild.verify.emulator import OUTSIDE, REST, Counting, checked_runs

Array = npt.NDArray[Any]

_CALLER = "measured_call"
"""The function of the test firmware that calls the module; it is never inlined."""
_EXECUTES = re.compile(r"_run(_hooked|_traced|_hooked_and_traced)?$|__tvm_main__$|_run_model$")
"""Names of a module's functions that call its operators."""
_EXECUTOR = "mlf_execute"
"""The loop of a graph's static executor in ``mlf_executor.h``, unless it is inlined."""
_VERSION = re.compile(r"(\.(constprop|isra|part)\.\d+)+$")
"""Suffixes that GCC adds to the names of clones of functions."""


@dataclass(frozen=True)
class CallCount:
    """A call of an operator's function, with everything that it calls."""

    function: str
    instructions: int
    cycles: CycleCount | None = None
    """Modelled cycles on the microcontroller, if there is one."""


@dataclass(frozen=True)
class Profile:
    """One run of a module."""

    module: str
    board: str
    calls: tuple[CallCount, ...]
    """Calls in order of execution."""
    rest: int
    """Instructions of the run function or the executor between the calls."""
    stack: int
    """Measured bytes of stack: the high-water mark below its caller."""
    part: TimedPart | None = None
    """The microcontroller whose cycles are modelled; ``None`` if they are not."""
    rest_cycles: CycleCount | None = None
    """Modelled cycles of ``rest``."""
    code_waits: int = 0
    """Cycles of waiting for instructions, which code in RAM would save, and more: loads then do not wait for fetches.
    0 if fetches from RAM have waits or a cache."""
    code: int = 0
    """Bytes of the functions of operators and kernels."""

    @staticmethod
    def from_dict(found: Mapping[str, Any]) -> Profile:
        """Return the profile from its ``asdict``; raises ``LookupError`` or ``TypeError`` for anything else."""
        calls = tuple(CallCount(**{**call, "cycles": _cycles(call["cycles"])}) for call in found["calls"])
        part = None if found["part"] is None else TimedPart(**found["part"])
        return Profile(**{**found, "calls": calls, "part": part, "rest_cycles": _cycles(found["rest_cycles"])})

    @property
    def instructions(self) -> int:
        """All instructions of the run."""
        return self.rest + sum(call.instructions for call in self.calls)

    @property
    def cycles(self) -> CycleCount | None:
        """All modelled cycles of the run."""
        return sum_of_cycles([self.rest_cycles, *(call.cycles for call in self.calls)])


def _cycles(found: Mapping[str, int] | None) -> CycleCount | None:
    return None if found is None else CycleCount(**found)


def profile_module(
    module: Module,
    image: Path,
    board: Board,
    inputs: Sequence[Array],
    timeout: float,
    mcu: Mcu | None = None,
    places: Sequence[tuple[int, int, str]] = (),
) -> Profile:
    """Count one run of ``module`` in its test firmware ``image`` on ``board``, with the first case of ``inputs``.

    ``inputs`` are arrays (cases, elements) in call order; the run may take ``timeout`` seconds. With ``mcu``, the
    cycles of the run on that part are modelled; ``places`` are (first address, last address, memory) of sections in
    other memories of it than those that the board's regions stand for. Instructions of the call itself and of the test
    firmware are not counted.

    Raises ``ToolNotFoundError`` without QEMU or a compiler for its plugin, and as ``checked_runs`` and ``Counting``.
    """
    symbols = read_image(image).symbols
    functions = dict(functions_of_module(symbols, module))
    # Clones of an operator have one name here, so each name is counted once.
    names = [name for name in dict.fromkeys(functions.values()) if name not in {"", _CALLER}]
    # Numbers instead of names, because the plugin counts in a table by number.
    numbers = {"": REST, _CALLER: OUTSIDE, **{name: at for at, name in enumerate(names, 1)}}
    table = [(f.address, f.address + f.size - 1, numbers[name]) for f, name in functions.items()]
    with tempfile.TemporaryDirectory(prefix="mlfbuild-profile-") as name:
        folder = Path(name)
        counting = Counting(image, table, folder, board=board, mcu=mcu, places=places)
        first, subject = [array[:1] for array in inputs], subject_of(module, board.name)
        (run,) = checked_runs(image, subject, board, first, folder, timeout, counting.plugin)
        counted = counting.calls()
    called = {number: name for name, number in numbers.items()}
    calls = tuple(
        CallCount(called[call.number], call.instructions, call.cycles) for call in counted if call.number != REST
    )
    # Exactly one entry: the plugin sums what runs between the calls.
    (rest,) = (call for call in counted if call.number == REST)
    part = None if mcu is None else TimedPart(mcu.name, mcu.clock, modelled_error(mcu))
    waits = sum(call.fetching for call in counted) if mcu is not None and _fetches_at_once(mcu) else 0
    kernel = re.compile(rf"mlf_(?!board_)|{symbol_prefix(module.name)}")
    code = sum(f.size for f in symbols if f.function and functions.get(f) != "" and kernel.match(f.name))
    return Profile(module.name, board.name, calls, rest.instructions, int(run["stack"]), part, rest.cycles, waits, code)


def _fetches_at_once(mcu: Mcu) -> bool:
    """Return whether the core fetches instructions from the RAM of ``mcu`` without waits and caches."""
    memory = list(mcu.memories.values())[1]
    return not (memory.waits or memory.fetch_waits or memory.fetch_cache)


def functions_of_module(symbols: Sequence[Symbol], module: Module) -> Iterator[tuple[Symbol, str]]:
    """Yield the functions that delimit counts: operators with their names, functions that call them with none.

    In test firmware, the function that calls the module is also one of them.
    """
    operators = {function.name for function in module.operator_functions}
    prefixes = (symbol_prefix(module.name), f"mlf_{module.name}")
    for symbol in symbols:
        # The clone is what runs; the function of the plain name may not be in the image at all.
        name = _VERSION.sub("", symbol.name)
        if not symbol.function:
            continue
        # The call of the module begins and ends the count: the test firmware around it is not part of the model.
        if name == _CALLER:
            yield symbol, _CALLER
        elif name in operators:
            yield symbol, name
        elif name == _EXECUTOR or (name.startswith(prefixes) and _EXECUTES.search(name)):
            yield symbol, ""
