"""The table of microcontrollers: facts from the manuals, and what holds for every row."""

import pickle

import pytest

from mlfbuild.core import UsageError
from mlfbuild.targets import CPUS, MCUS, Mcu, ideal_mcu, mcu_called
from support.errors import raises

MHZ = 1_000_000
every_mcu = pytest.mark.parametrize("mcu", MCUS.values(), ids=MCUS)


@pytest.mark.parametrize(
    ("name", "clock", "waits"),
    [
        ("stm32l4r5", 20, 0), ("stm32l4r5", 21, 1), ("stm32l4r5", 80, 3), ("stm32l4r5", 120, 5),
        ("stm32l4r5-single-bank", 120, 5),
        ("stm32f746", 30, 0), ("stm32f746", 168, 5), ("stm32f746", 216, 7),
        ("stm32h7a3", 44, 0), ("stm32h7a3", 200, 4), ("stm32h7a3", 280, 6),
        ("stm32u575", 32, 0), ("stm32u575", 160, 4), ("stm32u385", 64, 1), ("stm32u385", 96, 2),
        ("stm32g0b1", 24, 0), ("stm32g0b1", 48, 1), ("stm32g0b1", 64, 2),
        ("nrf52840", 64, 2), ("nrf5340", 64, 4), ("nrf5340", 128, 9),
        ("psoc62", 100, 3), ("psoc62", 150, 4),
        ("ra6m4", 50, 0), ("ra6m4", 200, 3),
        ("numaker-m467", 25, 0), ("numaker-m467", 200, 7), ("ra8d1", 96, 1), ("ra8d1", 480, 9),
    ],
)  # fmt: skip
def test_flash_has_the_wait_states_of_the_manual(name: str, clock: int, waits: int) -> None:
    part = MCUS[name].at(clock * MHZ)
    assert (part.clock, part.memories["flash"].waits) == (clock * MHZ, waits)


def test_the_bank_mode_decides_what_one_read_of_the_flash_gives() -> None:
    dual, single = MCUS["stm32l4r5"], MCUS["stm32l4r5-single-bank"]
    assert (dual.memories["flash"].width, single.memories["flash"].width) == (8, 16)
    lines = [(part.caches["icache"].line, part.caches["icache"].sector) for part in (dual, single)]
    assert lines == [(32, 8), (32, 16)]
    assert (dual.caches["icache"].size, dual.caches["dcache"].size) == (1024, 256)


@pytest.mark.parametrize("clock", [0, -1, 120 * MHZ + 1])
def test_a_clock_that_the_part_does_not_reach_is_refused(clock: int) -> None:
    with raises(UsageError, "clock-out-of-range", at=f"{clock} Hz"):
        MCUS["stm32l4r5"].at(clock)


def test_an_unknown_name_gets_the_list() -> None:
    """The one with the nearest name may have another core: stm32f746 for stm32f407."""
    assert mcu_called("stm32u575") is MCUS["stm32u575"]
    with raises(UsageError, "unknown-mcu") as error:
        mcu_called("stm32f407")
    assert "did you mean" not in str(error.value) and "stm32l4r5, " in error.value.hint


@every_mcu
def test_the_core_is_in_the_table_of_cpus(mcu: Mcu) -> None:
    assert CPUS[mcu.cpu].is_arm


@every_mcu
def test_the_first_memory_has_code_and_the_second_has_data(mcu: Mcu) -> None:
    code, data = [*mcu.memories][:2]
    assert (code, data) in {("flash", "sram"), ("flash", "dtcm"), ("itcm", "dtcm")}
    assert {*mcu.memories} <= {"flash", "sram", "dtcm", "itcm", "external"}


@every_mcu
def test_every_part_has_sources_and_states_what_is_assumed(mcu: Mcu) -> None:
    assert len(mcu.sources) >= 2, f"mlfbuild/targets/data/mcus_*.toml: name the documents in `sources` of {mcu.name}"
    assert mcu.assumptions
    assert all(text.endswith(".") for text in (*mcu.sources, *mcu.assumptions))


def is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


@every_mcu
def test_caches_divide_into_sets_that_addresses_select(mcu: Mcu) -> None:
    for cache in mcu.caches.values():
        assert is_power_of_two(cache.line) and is_power_of_two(cache.size // cache.line // cache.ways)
        assert cache.size % (cache.line * cache.ways) == 0
        assert cache.policy in {"lru", "round-robin", "pseudo-random"}


@every_mcu
def test_memories_refer_to_caches_of_the_part(mcu: Mcu) -> None:
    used = {name for memory in mcu.memories.values() for name in (memory.fetch_cache, memory.read_cache) if name}
    assert used == {*mcu.caches}
    assert all(is_power_of_two(memory.width) for memory in mcu.memories.values())


@every_mcu
def test_wait_states_rise_with_the_clock_to_the_highest(mcu: Mcu) -> None:
    for name, steps in mcu.wait_states.items():
        clocks, waits = zip(*steps, strict=True)
        assert sorted({*clocks}) == [*clocks] and sorted({*waits}) == [*waits]
        assert (clocks[-1], waits[-1]) == (mcu.clock, mcu.memories[name].waits)


@every_mcu
def test_the_highest_clock_is_the_default(mcu: Mcu) -> None:
    assert mcu.at(mcu.clock) == mcu == MCUS[mcu.name]


@every_mcu
def test_rows_reach_worker_processes(mcu: Mcu) -> None:
    assert pickle.loads(pickle.dumps(mcu)) == mcu


def test_an_ideal_part_never_waits() -> None:
    part = ideal_mcu("cortex-m0plus")
    assert {memory.waits for memory in part.memories.values()} == {0}
    assert (part.cpu, part.caches) == ("cortex-m0plus", {})


@pytest.mark.parametrize(
    ("part", "words", "settings"),
    [
        ("stm32l4r5", {0x40022000: 0x705}, "flash: 5 wait states, prefetch on, cache for code and data"),
        ("stm32l4r5", {0x40022000: 0x401}, "flash: 1 wait state, prefetch off, cache for data"),
        ("stm32u575", {0x40022000: 0x004, 0x40030400: 0}, "flash: 4 wait states, prefetch off, no cache"),
        ("nrf5340", {}, MCUS["nrf5340"].settings()),
    ],
)
def test_a_part_has_the_settings_of_its_registers(part: str, words: dict[int, int], settings: str) -> None:
    assert MCUS[part].as_set(words.__getitem__).settings() == settings


def test_a_cache_of_the_core_that_is_off_serves_no_memory() -> None:
    part = MCUS["stm32h7a3"].as_set({0x52002000: 7, 0xE000ED14: 1 << 17}.__getitem__)
    assert part.memories["flash"].waits == 7
    assert {(each.fetch_cache, each.read_cache) for each in part.memories.values()} == {("icache", ""), ("", "")}
