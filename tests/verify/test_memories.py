"""The memories that the plugin simulates wait as the manuals of the parts say."""

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import mlfbuild
from mlfbuild.core import find_tool
from mlfbuild.targets import MCUS, Mcu, MemoryCache, MemoryKeys, TimedMemory, TimingKeys

MHZ = 1_000_000
FLASH, SRAM = 0, 1 << 28
Access = tuple[str, int]
Waits = Callable[..., list[int]]


L4R5 = MCUS["stm32l4r5"].changed(TimingKeys(memories={"flash": MemoryKeys(prefetch=False)}))


def description(mcu: Mcu) -> list[str]:
    """The lines of counter.c for ``mcu``, its memories 256 MiB apart."""
    numbers = {name: at for at, name in enumerate(mcu.caches)} | {"": -1}
    lines = [
        f"cache {c.size} {c.line} {c.sector or c.line} {c.ways} {c.policy} {c.hit} {c.miss} {int(c.write_back)}"
        for c in mcu.caches.values()
    ]
    for at, each in enumerate(mcu.memories.values()):
        burst = each.waits if each.burst < 0 else each.burst
        caches = f"{numbers[each.fetch_cache]} {numbers[each.read_cache]}"
        place = f"{at << 28:x} {(at << 28) + each.size - 1:x}"
        lines.append(
            f"memory {place} {each.width} {each.waits} {burst} {each.write_waits} {each.hidden_waits} "
            f"{each.fetch_waits} {int(each.prefetch)} {caches}"
        )
    return lines


@pytest.fixture(scope="module")
def waits(tmp_path_factory: pytest.TempPathFactory) -> Waits:
    """Return the waits of accesses, each of which begins ``gap`` cycles after the one before it ended."""
    program = tmp_path_factory.mktemp("memories") / "memories"
    folder = Path(mlfbuild.__file__).parent / "verify/emulator"
    source = Path(__file__).with_name("memories.c")
    subprocess.run([find_tool("cc") or "cc", "-O1", "-I", folder, source, "-o", program], check=True)

    def run(mcu: Mcu, accesses: Sequence[Access], gap: int = 100) -> list[int]:
        lines = [*description(mcu), f"gap {gap}", *(f"{kind} {address:x}" for kind, address in accesses)]
        text = "".join(f"{line}\n" for line in lines)
        output = subprocess.run([program], input=text, capture_output=True, text=True, check=True).stdout
        return [int(line) for line in output.split()]

    return run


def each(kind: str, start: int, size: int, step: int = 4) -> list[Access]:
    return [(kind, address) for address in range(start, start + size, step)]


@pytest.mark.parametrize(("clock", "wait"), [(20, 0), (80, 3), (120, 5)])
def test_l4r5_waits_for_each_64_bits_of_new_code(waits: Waits, clock: int, wait: int) -> None:
    mcu = L4R5.at(clock * MHZ)
    assert waits(mcu, each("fetch", FLASH, 24)) == [wait, 0] * 3


@pytest.mark.parametrize(("gap", "wait"), [(1, 1), (2, 0)])
def test_a_word_of_code_in_ram_takes_two_cycles_on_the_system_bus(waits: Waits, gap: int, wait: int) -> None:
    """Cortex-M3 Technical Reference Manual, 14.5.6."""
    assert waits(L4R5, each("fetch", SRAM, 16), gap) == [1, wait, wait, wait]
    assert waits(L4R5, each("read", SRAM, 16), gap) == [0] * 4


def test_l4r5_reads_128_bits_with_a_single_bank(waits: Waits) -> None:
    mcu = MCUS["stm32l4r5-single-bank"]
    assert waits(mcu, each("read", FLASH, 32)) == [5, 0, 0, 0] * 2


@pytest.mark.parametrize(("kind", "size"), [("fetch", 1024), ("read", 256)])
def test_l4r5_caches_what_was_read_once(waits: Waits, kind: str, size: int) -> None:
    fits, too_large = each(kind, FLASH, size, 8), each(kind, FLASH, 2 * size, 8)
    assert waits(L4R5, fits + fits) == [5] * len(fits) + [0] * len(fits)
    assert waits(L4R5, too_large + too_large) == [5] * 2 * len(too_large)


def test_l4r5_replaces_lines_of_32_bytes_and_reads_8_of_them(waits: Waits) -> None:
    lines = [("read", FLASH + at * 64) for at in range(9)]
    assert waits(L4R5, lines[:8] * 2) == [5] * 8 + [0] * 8
    assert waits(L4R5, lines * 2) == [5] * 18, "nine lines, although their 72 bytes would fit"
    other_parts = [("read", address + 8) for _, address in lines[:8]]
    assert waits(L4R5, [*lines[:8], *other_parts, *lines[:8]]) == [5] * 16 + [0] * 8


def test_l4r5_has_caches_for_instructions_and_data_but_one_flash(waits: Waits) -> None:
    assert waits(L4R5, [("fetch", FLASH), ("read", FLASH)]) == [5, 5]
    reads = [("read", FLASH), ("read", FLASH + 8)]
    assert waits(L4R5, reads, gap=0) == [5, 6], "the first one ends a cycle after its data are there"


def test_l4r5_caches_prefetched_code_only_if_the_core_waits_for_it(waits: Waits) -> None:
    mcu = MCUS["stm32l4r5"]
    prefetching = replace(mcu, memories={**mcu.memories, "flash": replace(mcu.memories["flash"], prefetch=True)})
    loop = each("fetch", FLASH, 32, 8)
    assert waits(prefetching, loop * 2, gap=2) == [5, 4, 4, 4, 0, 0, 0, 0]
    found = waits(prefetching, loop * 4, gap=6)
    runs = [found[at : at + 4] for at in range(0, 16, 4)]
    assert runs == [[5, 0, 0, 0], [0, 5, 0, 0], [0, 0, 5, 0], [0, 0, 0, 5]], "one more line misses in each run"
    assert waits(prefetching, loop * 5, gap=6)[16:] == [0, 0, 0, 0]


def test_l4r5_never_waits_for_sram(waits: Waits) -> None:
    assert waits(MCUS["stm32l4r5"], [("read", SRAM), ("write", SRAM + 4), ("read", SRAM + 400)]) == [0, 0, 0]


def test_u575_caches_code_and_constants_together(waits: Waits) -> None:
    accesses = [("read", FLASH), ("read", FLASH + 12), ("fetch", FLASH + 8), ("fetch", FLASH + 16)]
    assert waits(MCUS["stm32u575"], accesses) == [5, 0, 0, 5], "4 wait states and a cycle of look-up"


def test_u575_replaces_the_line_that_was_used_least_recently(waits: Waits) -> None:
    way = 4096
    accesses = [("read", FLASH + at * way) for at in (0, 1, 0, 2, 0, 1)]
    assert waits(MCUS["stm32u575"], accesses) == [5, 5, 0, 5, 0, 5]


def test_g0b1_prefetches_the_next_line_while_four_instructions_are_executed(waits: Waits) -> None:
    lines = each("fetch", FLASH, 32, 8)
    assert waits(MCUS["stm32g0b1"], lines, gap=4) == [2, 0, 0, 0]
    assert waits(MCUS["stm32g0b1"], lines, gap=1) == [2, 2, 2, 2]


def test_g0b1_keeps_the_current_line_and_the_two_that_missed_last(waits: Waits) -> None:
    line = [("fetch", FLASH), ("fetch", FLASH + 8), ("fetch", FLASH + 8)]
    assert waits(MCUS["stm32g0b1"], line, gap=4) == [2, 0, 0], "a loop in a line that was prefetched"
    jumps = [("fetch", FLASH + at * 64) for at in (0, 1, 0, 1, 2, 0)]
    assert waits(MCUS["stm32g0b1"], jumps) == [2, 2, 0, 0, 2, 2]


def test_g0b1_has_no_buffer_for_data(waits: Waits) -> None:
    assert waits(MCUS["stm32g0b1"], [("read", FLASH), ("read", FLASH)]) == [1, 1], "of two, the core notices one"


def test_h7a3_fills_a_line_with_two_flash_words(waits: Waits) -> None:
    accesses = [("read", FLASH), ("read", FLASH + 12), ("read", FLASH + 16)]
    assert waits(MCUS["stm32h7a3"], accesses) == [11, 0, 0]
    assert waits(MCUS["stm32h7a3"], accesses, gap=1) == [11, 0, 5], "7 cycles after the first word, 2 of which passed"
    other_half = [("read", FLASH + 16), ("read", FLASH)]
    assert waits(MCUS["stm32h7a3"], other_half, gap=1) == [11, 6]


def test_h7a3_caches_sram_and_writes(waits: Waits) -> None:
    accesses = [("read", SRAM), ("read", SRAM + 28), ("write", SRAM + 64), ("read", SRAM + 68)]
    assert waits(MCUS["stm32h7a3"], accesses) == [5, 0, 0, 0]


def test_f746_reads_a_line_from_flash_at_once_and_from_sram_word_by_word(waits: Waits) -> None:
    assert waits(MCUS["stm32f746"], [("read", FLASH), ("read", FLASH + 28)], gap=1) == [12, 0]
    assert waits(MCUS["stm32f746"], [("read", SRAM), ("read", SRAM + 28)], gap=1) == [5, 6]


def test_nrf5340_caches_lines_of_128_bits(waits: Waits) -> None:
    assert waits(MCUS["nrf5340"], each("read", FLASH, 32)) == [10, 0, 0, 0] * 2
    assert waits(MCUS["nrf5340"].at(64 * MHZ), each("read", FLASH, 16)) == [5, 0, 0, 0]


def narrow(width: int, *caches: str) -> Mcu:
    names = dict(zip(("fetch_cache", "read_cache"), caches, strict=False))
    memory = TimedMemory(1 << 20, width, waits=10, burst=1, **names)
    return Mcu("narrow", "", "cortex-m4", MHZ, {"flash": memory}, {"l1": MemoryCache(64, 16, 4)} if caches else {})


@pytest.mark.parametrize("kind", ["fetch", "read"])
@pytest.mark.parametrize(("width", "wait"), [(4, 10), (2, 10 + 2), (1, 10 + 3 * 2)])
def test_a_word_takes_several_reads_of_a_narrow_memory(waits: Waits, kind: str, width: int, wait: int) -> None:
    assert waits(narrow(width), each(kind, FLASH, 8)) == [wait, wait]
    assert waits(narrow(width, "l1", "l1"), each(kind, FLASH, 8)) == [wait, 0]
    second = 10 + (8 // width - 1) * 2 - (wait + 1)
    assert waits(narrow(width, "l1", "l1"), each(kind, FLASH, 16), gap=1)[1] == second


def test_half_words_of_code_come_from_a_narrow_memory_together(waits: Waits) -> None:
    prefetching = narrow(1)
    prefetching = replace(prefetching, memories={"flash": replace(prefetching.memories["flash"], prefetch=True)})
    assert waits(narrow(1), each("fetch", FLASH, 8, 2)) == [16, 0] * 2
    assert waits(prefetching, each("fetch", FLASH, 8, 2)) == [16, 0, 0, 0]
