"""Model the cycles of plans over several memories beside those of the best single memory.

    python benchmarks/memories.py            model all, print the table, compare with what is committed
    python benchmarks/memories.py --update   and write benchmarks/results/memories.json and docs/performance.md

Each network is planned over the memories of a part, of which it may take a share of the fastest one, and then with all
its data in one memory, for each memory in which it fits. Stack, inputs and outputs are in the same memory in all of
them. Cycles are modelled (docs/latency.md). Exit status 1 if a result differs from the committed one or if a plan is
worse than a single memory, 2 if a network cannot be modelled.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from counting.cycles import PARTS
from counting.firmware import BOARDS as BOARD_OF_CPU, REPOSITORY, SHARED, MeasurementError
from counting.report import table
from counting.rows import measured_rows

from mlfbuild.core import UnsupportedModelError
from mlfbuild.jobs.tree import unpack
from mlfbuild.jobs.tree.placement import PlacedSection, placement_files
from mlfbuild.library import CompileRequest
from mlfbuild.library.keys import ArenaMemory
from mlfbuild.native import NATIVE
from mlfbuild.project.memory_waits import waits_of
from mlfbuild.report.operators.profile import profile_module
from mlfbuild.report.sizes.image import read_image
from mlfbuild.targets import BOARDS, CPUS, CacheKeys, Mcu, MemoryKeys, TimingKeys, toolchain_file
from mlfbuild.verify.emulator import build_harness

COMMITTED = REPOSITORY / "benchmarks/results/memories.json"
NETWORKS = ("vww", "ic")
SHARES = (64 << 10, 16 << 10)
"""Bytes of the fastest memory that a network may take; firmware has other uses for the rest."""
_PSRAM = TimingKeys(
    memories={"psram": MemoryKeys(size=8 << 20, width=8, waits=83, fetch_cache="cache", read_cache="cache")},
    caches={"cache": CacheKeys(write_back=True)},
)
"""PSRAM behind the interface and the cache of the flash, at its speed."""


@dataclass(frozen=True)
class Device:
    """A part, and those of its memories that can have arenas, the fastest first."""

    part: Mcu
    title: str
    memories: tuple[str, ...]


DEVICES = {
    "stm32f746": Device(PARTS["stm32f746"], "STM32F746 (M7)", ("dtcm", "sram", "external")),
    "alif-e8": Device(PARTS["alif-e8"], "Alif E8 (M55)", ("dtcm", "sram")),
    "rp2350": Device(PARTS["rp2350"].changed(_PSRAM), "RP2350 with PSRAM (M33)", ("sram", "psram")),
}


@dataclass(frozen=True)
class Planned:
    """The modelled cycles of a network, with a share of the fastest memory of a device."""

    network: str
    device: str
    share: int
    """Bytes."""
    plan: int
    """Cycles with a plan over all memories."""
    alone: dict[str, int]
    """Cycles with all data in one memory, by memory; only of those in which it fits."""

    @property
    def best(self) -> str:
        """The best single memory."""
        return min(self.alone, key=self.alone.__getitem__)


def arenas(device: Device, share: int) -> tuple[ArenaMemory, ...]:
    """Return the memories of a request, with waits as a project file has them."""
    timed = device.part.memories
    waits = waits_of((timed, device.part.caches), device.memories, timed=True)
    found = (
        ArenaMemory(name, timed[name].size, f".mlf_{name}", *its)
        for name, its in zip(device.memories, waits, strict=True)
    )
    first, *others = found
    return replace(first, size=share), *others


def cycles_of(network: str, device: Device, given: tuple[ArenaMemory, ...], folder: Path) -> int:
    """Return the modelled cycles of one run; raises ``UnsupportedModelError`` if the network does not fit."""
    source = SHARED / f"models/{network}_int8.tflite"
    cpu = device.part.cpu
    library = NATIVE.compile(CompileRequest(network, source, CPUS[cpu], memories=given))
    (module,) = library.modules
    unpack(library, folder / "net", archive_id=64 * "0")
    board = BOARDS[BOARD_OF_CPU[cpu]]
    region = next(each.name for each in board.others if each.name in {"PSRAM", "DDR"})
    files = placement_files([PlacedSection(each.section, region, memory=True) for each in given], on_board=True)
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    image = build_harness(
        folder / "net", module, board, toolchain_file(CPUS[cpu]), folder / "work", twice=False,
        placement=folder / "placement/placement.cmake",
    )  # fmt: skip
    # The board has no such memories: the model is told which section stands for which of them.
    found = {section.name: section for section in read_image(image).sections}
    places = [
        (found[each.section].address, found[each.section].address + found[each.section].size - 1, each.name)
        for each in given
        if each.section in found and found[each.section].size
    ]
    inputs = [np.zeros((1, tensor.size), np.int8) for tensor in module.inputs]
    cycles = profile_module(module, image, board, inputs, 600, device.part, places).cycles
    if cycles is None:
        raise MeasurementError(f"{network} on {device.title}: no cycles")
    return cycles.total


def measure(network: str, name: str, share: int) -> Planned:
    """Model the plan and each single memory."""
    device = DEVICES[name]
    given = arenas(device, share)
    alone = {}
    with tempfile.TemporaryDirectory() as folder:
        plan = cycles_of(network, device, given, Path(folder) / "plan")
        for each in given:
            with contextlib.suppress(UnsupportedModelError):  # it does not fit
                alone[each.name] = cycles_of(network, device, (each,), Path(folder) / each.name)
    return Planned(network, name, share, plan, alone)


def blocks(results: Sequence[Planned]) -> Mapping[str, str]:
    """Return the block of docs/performance.md by name."""
    head = ["network", "part", "fastest memory", "plan", "best single memory", "saved"]
    rows = []
    for each in results:
        device, single = DEVICES[each.device], each.alone[each.best]
        saved = f"{100 * (single - each.plan) / single:.1f} %"
        share = f"{each.share >> 10} KiB {device.memories[0]}"
        rows.append(
            [each.network, device.title, share, _millions(each.plan), f"{each.best} {_millions(single)}", saved]
        )
    return {"arenas": table(head, rows, right=(3, 4, 5))}


def _millions(cycles: int) -> str:
    return f"{cycles / 1e6:.3f}"


def load() -> list[Planned]:
    """Return the committed results."""
    return [Planned(**result) for result in json.loads(COMMITTED.read_text())]


def main() -> None:
    works = [(network, name, share) for network in NETWORKS for name in DEVICES for share in SHARES]
    results = measured_rows(__doc__, measure, works, blocks, load, COMMITTED)
    if worse := [each for each in results if each.plan > each.alone[each.best]]:
        sys.exit(f"worse than a single memory: {worse}")


if __name__ == "__main__":
    main()
