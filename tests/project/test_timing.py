"""Microcontrollers of targets: rows of the table, changed or replaced by the project's own values."""

from dataclasses import fields
from pathlib import Path

import pytest

from mlfbuild.project import Budget, load_project, mcu_of, memory_of_region
from mlfbuild.targets import (
    CPUS,
    MCUS,
    TIMED_CORES,
    CacheKeys,
    Mcu,
    MemoryCache,
    MemoryKeys,
    TimedMemory,
    emulated_board,
)
from mlfbuild.timing import CORE_TIMINGS

TABLE = MCUS["stm32l4r5"]


@pytest.fixture(scope="module")
def mcus() -> dict[str, Mcu | None]:
    project = load_project(Path(__file__).parent / "valid/microcontrollers.yml")
    assert project.targets["nucleo"].cpu == "cortex-m4", "that of the microcontroller"
    assert project.models["one"].budget == Budget(cycles=5_000_000, latency=1_500_000)
    return {name: mcu_of(target) for name, target in project.targets.items()}


def test_every_value_of_a_memory_and_a_cache_has_a_key() -> None:
    for keys, row in ((MemoryKeys, TimedMemory), (CacheKeys, MemoryCache)):
        assert {field.name for field in fields(row)} <= {field.name for field in fields(keys)}


def test_every_modelled_core_and_microcontroller_can_run_on_a_board() -> None:
    assert set(TIMED_CORES) == set(CORE_TIMINGS)
    for mcu in MCUS.values():
        assert CPUS[mcu.cpu].core in TIMED_CORES and emulated_board(CPUS[mcu.cpu]) is not None
    assert emulated_board(CPUS["host"]) is None


def test_the_clock_decides_wait_states(mcus: dict[str, Mcu | None]) -> None:
    nucleo = mcus["nucleo"]
    assert nucleo is not None
    assert (nucleo.clock, nucleo.memories["flash"].waits) == (24_000_000, 1)
    assert (TABLE.clock, TABLE.memories["flash"].waits) == (120_000_000, 5)


def test_single_values_change(mcus: dict[str, Mcu | None]) -> None:
    narrow, external = mcus["narrow"], mcus["external"]
    assert narrow is not None and external is not None
    assert narrow.name == "stm32l4r5 with own timing", "its figures are not those of the table"
    assert (narrow.memories["flash"].width, narrow.memories["flash"].waits, narrow.clock) == (4, 5, 120_000_000)
    assert narrow.memories["sram"] == TABLE.memories["sram"]
    assert external.memories["ospi"] == TimedMemory(8 << 20, 1, 30, read_cache="dcache")
    assert (external.caches["dcache"].hit, external.caches["dcache"].size) == (1, TABLE.caches["dcache"].size)


def test_a_microcontroller_of_the_project(mcus: dict[str, Mcu | None]) -> None:
    mine = mcus["mine"]
    assert mine is not None
    assert (mine.name, mine.cpu, mine.clock) == ("mine", "cortex-m3", 48_000_000)
    assert mine.memories["flash"] == TimedMemory(512 << 10, 8, 1, prefetch=True, fetch_cache="l1")
    assert mine.caches["l1"] == MemoryCache(256, 16, 4, "round-robin", miss=1)
    assert mine.error > 0


def test_memories_of_regions(mcus: dict[str, Mcu | None]) -> None:
    external = mcus["external"]
    assert external is not None
    found = {region: memory_of_region(external, region) for region in ("OSPI", "FLASH", "RAM", "sram", "ITCM")}
    assert found == {"OSPI": "ospi", "FLASH": "flash", "RAM": "sram", "sram": "sram", "ITCM": None}
    assert memory_of_region(external, "QSPI") is None
    assert memory_of_region(MCUS["stm32f746"], "QSPI") == "external"
