"""Count the instructions of one run of a module on a board, by call of its operator functions.

A QEMU plugin (``verify/emulator/counter.c``) counts. The counts are instructions, not cycles, and are exact and
repeatable: QEMU translates an image block by block and executes blocks as a whole.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from mlfbuild.build.tree import subject_of
from mlfbuild.core import read_bytes, write_atomic
from mlfbuild.library import Module, symbol_prefix
from mlfbuild.report.operators.cycles import Cycles, TimedPart, sum_of_cycles
from mlfbuild.report.sizes.image import Symbol, read_image
from mlfbuild.targets import Board
from mlfbuild.verify.emulator import checked_runs, counting_plugin

Array = npt.NDArray[Any]

_CALLER = "measured_call"
"""The function of the test firmware that calls the module; it is never inlined."""
_EXECUTES = re.compile(r"_run(_hooked|_traced|_hooked_and_traced)?$|__tvm_main__$|_run_model$")
"""Names of a module's functions that call its operators."""
_EXECUTOR = "mlf_execute"
"""The loop of a graph's static executor in ``mlf_executor.h``, unless it is inlined."""
_VERSION = re.compile(r"(\.(constprop|isra|part)\.\d+)+$")
"""Suffixes that GCC adds to the names of clones of functions."""
_REST, _OUTSIDE = 0, -1


@dataclass(frozen=True)
class CallCount:
    """A call of an operator's function, with everything that it calls."""

    function: str
    instructions: int
    cycles: Cycles | None = None
    """Modelled; ``None`` without a microcontroller."""


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
    rest_cycles: Cycles | None = None
    """Modelled cycles of the run function or the executor between the calls."""

    @property
    def instructions(self) -> int:
        """All instructions of the run."""
        return self.rest + sum(call.instructions for call in self.calls)

    @property
    def cycles(self) -> Cycles | None:
        """All modelled cycles of the run."""
        return sum_of_cycles([self.rest_cycles, *(call.cycles for call in self.calls)])


def profile_module(module: Module, image: Path, board: Board, inputs: Sequence[Array], timeout: float) -> Profile:
    """Count one run of ``module`` in its test firmware ``image`` on ``board``, with the first case of ``inputs``.

    ``inputs`` are arrays (cases, elements) in call order; the run may take ``timeout`` seconds. Raises
    ``ToolNotFoundError`` without QEMU or a compiler for its plugin, and as ``checked_runs``.
    """
    functions = dict(_functions(read_image(image).symbols, module))
    names = [name for name in dict.fromkeys(functions.values()) if name not in {"", _CALLER}]
    numbers = {"": _REST, _CALLER: _OUTSIDE, **{name: at for at, name in enumerate(names, 1)}}
    table = "".join(f"{f.address:x} {f.address + f.size - 1:x} {numbers[name]}\n" for f, name in functions.items())
    with tempfile.TemporaryDirectory(prefix="mlfbuild-profile-") as name:
        folder = Path(name)
        write_atomic(folder / "table", table.encode())
        plugin = f"{counting_plugin()},table={folder / 'table'},out={folder / 'counts'}"
        first, subject = [array[:1] for array in inputs], subject_of(module, board.name)
        (run,) = checked_runs(image, subject, board, first, folder, timeout, plugin)
        lines = read_bytes(folder / "counts", "counts of the plugin").decode().splitlines()
    called = {number: name for name, number in numbers.items()}
    counted = [(int(number), int(count)) for number, count in (line.split() for line in lines)]
    calls = tuple(CallCount(called[number], count) for number, count in counted if number != _REST)
    rest = sum(count for number, count in counted if number == _REST)
    return Profile(module.name, board.name, calls, rest, int(run["stack"]))


def _functions(symbols: Sequence[Symbol], module: Module) -> Iterator[tuple[Symbol, str]]:
    """Yield the functions that delimit counts: operators with their names, functions that call them with none."""
    operators = {function.name for function in module.operator_functions}
    prefixes = (symbol_prefix(module.name), f"mlf_{module.name}")
    for symbol in symbols:
        name = _VERSION.sub("", symbol.name)
        if not symbol.function:
            continue
        if name == _CALLER:
            yield symbol, _CALLER
        elif name in operators:
            yield symbol, name
        elif name == _EXECUTOR or (name.startswith(prefixes) and _EXECUTES.search(name)):
            yield symbol, ""
