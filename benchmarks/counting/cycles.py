"""Models the cycles of one inference of a network in the firmware of ``measure``, by operator, function and block."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from counting.firmware import BOARDS as BOARD_OF_CPU, SHARED, MeasurementError, build, found_in, write_case_data
from counting.measure import write_sources
from mlfbuild.library import CompileRequest, Module
from mlfbuild.library.keys import Placement
from mlfbuild.native import NATIVE
from mlfbuild.targets import BOARDS, CPUS, MCUS, Mcu, ideal_mcu
from mlfbuild.timing import CycleCount, core_timing, disassembled, instruction_costs
from mlfbuild.verify.emulator import OUTSIDE, REST, CountedBlock, Counting, run_elf

_ZERO = {f"{cpu.removeprefix('cortex-')}-zero": ideal_mcu(cpu) for cpu in BOARD_OF_CPU}
PARTS: Mapping[str, Mcu] = {**_ZERO, **MCUS}
"""Microcontrollers by name: those without wait states, and the table of the package."""
_NO_CYCLES = CycleCount(0, 0, 0, 0)
_VERSION = re.compile(r"(\.(constprop|isra|part)\.\d+)+$")


@dataclass(frozen=True)
class Modelled:
    """One inference."""

    image: Path
    part: Mcu
    operators: Sequence[tuple[str, int, CycleCount]]
    """Name, instructions and cycles of each call of an operator, and of the rest."""
    functions: Sequence[tuple[str, int, CycleCount]]
    """The same by C function, without those that it calls; the largest first."""
    lines: Mapping[str, Sequence[str]]
    """Listing of the blocks of each function that was executed."""
    workspace: int
    """Bytes of the workspace."""
    stack: int
    """Bytes of the stack."""

    @property
    def instructions(self) -> int:
        return sum(instructions for _, instructions, _ in self.operators)

    @property
    def cycles(self) -> CycleCount:
        return sum((cycles for _, _, cycles in self.operators), _NO_CYCLES)

    def listing(self, prefix: str) -> Iterator[str]:
        for name, lines in self.lines.items():
            if name.startswith(prefix):
                yield from (f"{name}:", *lines)


def model_cycles(
    network: str,
    part: Mcu,
    model: Path | None = None,
    *,
    vectors: Path | None = None,
    folder: Path,
    flags: Sequence[str] = (),
    options: Mapping[str, str | bool] | None = None,
    placement: Placement | None = None,
) -> Modelled:
    """Build the ``network`` for the core of ``part``, run it once in ``folder`` and return its cycles.

    ``model`` is a file instead of one of our networks; without ``vectors`` its input is zero. ``options`` are those of
    the compiler, ``placement`` has sections of code and data.
    Raises ``MeasurementError`` if a program fails or an output differs from that of TensorFlow Lite Micro.
    """
    file = network if network.endswith("_f32") else f"{network}_int8"
    path = model or SHARED / "models" / f"{file}.tflite"
    request = CompileRequest(
        network, path, CPUS[part.cpu], options=dict(options or {}), placement=placement or Placement()
    )
    (module,) = NATIVE.compile(request).modules
    subject = write_sources(module, folder)
    checked = model is None or vectors is not None
    vectors = vectors or SHARED / "golden" / f"{file}.npz"
    if not checked:
        vectors = folder / "zeros.npz"
        dtype = np.dtype(module.inputs[0].dtype)
        np.savez(
            vectors, in0=np.zeros((1, module.inputs[0].size // dtype.itemsize), dtype),
            out0=np.zeros((1, module.outputs[0].size // np.dtype(module.outputs[0].dtype).itemsize), dtype),
        )  # fmt: skip
    write_case_data(subject, vectors, folder)
    elf, _ = build(subject, part.cpu, folder, flags)
    symbols = _functions(elf)
    names = list(dict.fromkeys(function.name for function in module.operator_functions))
    board = BOARDS[BOARD_OF_CPU[part.cpu]]
    counting = Counting(elf, _table(symbols, module, names), folder, board=board, mcu=part)
    run = run_elf(elf, board, plugin=counting.plugin, timeout=600)
    if run.exit_status != 0 and checked:
        raise MeasurementError(f"{network}: the outputs differ from the vectors:\n{run.stdout}")
    calls = [(names[c.number - 1] if c.number else "(rest)", c.instructions, c.cycles) for c in counting.calls()]
    blocks = counting.blocks()
    stack = int(found_in(r"stack (\d+)", run.stdout))
    listing = _lines(elf, part, blocks, symbols)
    return Modelled(elf, part, calls, _by_function(blocks, symbols), listing, subject.workspace_size, stack)


def _table(
    symbols: Sequence[tuple[int, int, str]], module: Module, names: Sequence[str]
) -> Iterator[tuple[int, int, int]]:
    for address, size, name in symbols:
        plain = _VERSION.sub("", name)
        if plain == "main":
            yield address, address + size - 1, OUTSIDE
        elif plain in {"run", f"mlf_{module.name}_run", f"tvmgen_{module.name}_run"}:
            yield address, address + size - 1, REST
        elif plain in names:
            yield address, address + size - 1, 1 + names.index(plain)


def _functions(elf: Path) -> list[tuple[int, int, str]]:
    """Return address, size and name of each function."""
    with elf.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        return sorted(
            (symbol["st_value"] & ~1, symbol["st_size"], symbol.name)
            for symbol in table.iter_symbols()
            if symbol["st_info"]["type"] == "STT_FUNC"
        )


def _name_at(symbols: Sequence[tuple[int, int, str]], address: int) -> str:
    at = bisect_right(symbols, (address, 1 << 32, "")) - 1
    return symbols[at][2] if at >= 0 else "?"


def _by_function(
    blocks: Sequence[CountedBlock], symbols: Sequence[tuple[int, int, str]]
) -> list[tuple[str, int, CycleCount]]:
    found: dict[str, tuple[int, CycleCount]] = defaultdict(lambda: (0, _NO_CYCLES))
    for block in blocks:
        instructions, cycles = found[name := _name_at(symbols, block.first)]
        found[name] = instructions + block.instructions, cycles + block.cycles
    rows = [(name, *counts) for name, counts in found.items()]
    return sorted(rows, key=lambda each: (-each[2].total, each[0]))


def _lines(
    elf: Path, part: Mcu, blocks: Sequence[CountedBlock], symbols: Sequence[tuple[int, int, str]]
) -> dict[str, list[str]]:
    code = disassembled(elf)
    assert code is not None
    costs = instruction_costs(code, core_timing(CPUS[part.cpu].core))
    lines: dict[str, list[str]] = defaultdict(list)
    for block in blocks:
        own = lines[_name_at(symbols, block.first)]
        own.append(
            f"  executed {block.executions:,} times, {block.cycles.total:,} cycles, {block.cycles.waiting:,} waiting"
        )
        inside = (costs[address] for address in range(block.first, block.behind, 2) if address in costs)
        for instruction, cost in inside:
            taken = f"+{float(cost.taken):.2g}" if cost.taken else ""
            text = f"{instruction.mnemonic}{instruction.condition} {instruction.operands}"
            own.append(f"    {instruction.address:8x} {float(cost.cycles):5.2f}{taken:4} {text}")
    return lines
