"""Run a module on an emulated board and refuse every access that is not to its own memory.

The plugin that models cycles stops at an address in none of its memories. Its description is written for a part; here
its memories are exactly what a run may access: the arenas, the stack, the caller's buffers and structs of pointers, and
the flash, in which a store would wait longer than everything else.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mlfbuild.jobs.tree import subject_of
from mlfbuild.library import Module
from mlfbuild.report.operators.profile import functions_of_module
from mlfbuild.report.sizes.image import read_image
from mlfbuild.targets import Board, ideal_mcu
from mlfbuild.verify.emulator import OUTSIDE, REST, Counting, checked_runs

CALLERS = ("memory", "input_pointers", "output_pointers", "pools")
"""Variables of ``runtime/verify/verify.c`` for its inputs and outputs; with ``io: arena``, ``memory`` is the arenas."""

_STORE = 10**9
"""Cycles that a store to the flash waits; code and constants wait for each other a few."""


def arenas_in(image: Path, module: Module) -> dict[str, range]:
    """Return the addresses of the static arenas of ``module`` in an image, by memory."""
    assert module.network is not None
    symbols = {symbol.name: symbol for symbol in read_image(image).symbols}
    names = {memory.name: f"tvmgen_{module.name}_{memory.name}_workspace" for memory in module.network.arenas}
    found = {memory: symbols[name] for memory, name in names.items() if name in symbols}
    return {memory: range(each.address, each.address + each.size) for memory, each in found.items()}


def watched_run(
    image: Path, module: Module, board: Board, inputs: Sequence[npt.NDArray[Any]], arenas: Iterable[range], folder: Path
) -> list[npt.NDArray[Any]]:
    """Return the outputs of the first case; raises ``ProcessFailedError`` for an access to any other memory.

    ``inputs`` are arrays (cases, elements). The error names the function and the address.
    """
    found = read_image(image)
    functions = dict(functions_of_module(found.symbols, module))
    numbers = {"": REST, "measured_call": OUTSIDE}
    table = [(each.address, each.address + each.size - 1, numbers.get(name, 1)) for each, name in functions.items()]
    folder.mkdir(exist_ok=True)
    counting = Counting(image, table, folder, board=board, mcu=ideal_mcu(board.cpu))
    (stack,) = (each for each in found.sections if each.name == ".stack")
    own = [range(stack.address, stack.address + stack.size), *arenas]
    own += [range(each.address, each.address + each.size) for each in found.symbols if each.name in CALLERS]
    _restrict(folder / "timing", own, range(board.flash.origin, board.flash.origin + board.flash.size))
    first, subject = [array[:1] for array in inputs], subject_of(module, board.name)
    (run,) = checked_runs(image, subject, board, first, folder, 600, counting.plugin)
    assert sum(call.cycles.waiting for call in counting.calls() if call.cycles) < _STORE, "a store to flash"
    return [np.array(run[f"out{at}"]) for at in range(len(module.outputs))]


def _restrict(timing: Path, own: Sequence[range], flash: range) -> None:
    """Replace the memories of a description."""
    kept = re.sub(r"^memory .*\n", "", timing.read_text(), flags=re.MULTILINE)
    scale = int(kept.split()[1])
    lines = [
        f"memory {each.start:x} {each.stop - 1:x} 8 0 0 {_STORE * scale if each is flash else 0} 0 0 0 -1 -1 {at}\n"
        for at, each in enumerate([flash, *(each for each in own if each)])
    ]
    head, _, rest = kept.partition("\n")
    timing.write_text(f"{head}\n{''.join(lines)}{rest}")
