"""Models the cycles of images that contain the code of other projects, built outside of this repository."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from elftools.elf.elffile import ELFFile

from counting.firmware import BOARDS as BOARD_OF_CPU, MeasurementError
from mlfbuild.targets import BOARDS, CPUS, Mcu
from mlfbuild.timing import CycleCount
from mlfbuild.verify.emulator import OUTSIDE, REST, Counting, run_elf


@dataclass(frozen=True)
class Result:
    """One inference as the model has it."""

    instructions: int
    arithmetic: int
    memory: int
    branches: int
    waiting: int

    @property
    def cycles(self) -> int:
        return self.arithmetic + self.memory + self.branches + self.waiting


def model_image(image: Path, mcu: Mcu, folder: Path) -> Result:
    """Run ``image`` once on ``mcu`` and return the cycles of its function ``infer``, which ``main`` calls.

    Raises ``MeasurementError`` if the image fails.
    """
    board = BOARDS[BOARD_OF_CPU[CPUS[mcu.cpu].core]]
    counting = Counting(image, _functions(image), folder, board=board, mcu=mcu)
    run = run_elf(image, board, plugin=counting.plugin, timeout=600)
    if run.exit_status != 0:
        raise MeasurementError(f"{image}: exit status {run.exit_status}\n{run.stdout}")
    calls = counting.calls()
    cycles = sum((call.cycles for call in calls if call.cycles is not None), CycleCount(0, 0, 0, 0))
    return Result(sum(call.instructions for call in calls), **asdict(cycles))


def _functions(image: Path) -> Iterator[tuple[int, int, int]]:
    with image.open("rb") as file:
        symbols = {symbol.name: symbol for symbol in ELFFile(file).get_section_by_name(".symtab").iter_symbols()}
    for name, number in (("main", OUTSIDE), ("infer", REST)):
        if name not in symbols:
            raise MeasurementError(f"{image}: no function {name}")
        first = symbols[name]["st_value"] & ~1
        yield first, first + symbols[name]["st_size"] - 1, number
