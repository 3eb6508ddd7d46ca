"""Waits for memories and caches, against numbers that are counted by hand for small programs."""

import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from mlfbuild.core.errors import MlfError
from mlfbuild.targets import BOARDS, Board, Mcu, MemoryCache, TimedMemory
from mlfbuild.timing import CycleCount
from mlfbuild.verify.emulator import OUTSIDE, REST, Counting, run_elf
from support.examples import first_on_push

BOARD = BOARDS["mps2-an386"]
PROGRAM = """
    .syntax unified
    .thumb
    .global main, run, op
    .text
    .word {ram} + 0x1000, main
    .thumb_func
main:
    ldr r0, =0xE000ED88  @ CPACR: the FPU and MVE
    ldr r1, [r0]
    orr r1, #0xF00000
    str r1, [r0]
    dsb
    isb
    bl run
after:
    movs r0, #0x18
    ldr r1, =0x20026
    bkpt 0xab
    .ltorg
    .balign 64
    .thumb_func
run:                @ a line of 16 bytes: six instructions, so that a prefetch ends before the call
    push {{r4, lr}}
    nop
    nop
    nop
    nop
    nop
    bl op
    pop {{r4, pc}}
    .balign 64
    .thumb_func
op:
    {body}
    bx lr
end_op:
    .balign 64
    .word 0
constants:
    .space 1024, 1
    .set variables, {ram} + 0x2000
"""
Counted = Callable[..., CycleCount]


@pytest.fixture
def counted(tmp_path: Path, tool: Callable[..., str]) -> Counted:
    """Return a function that runs ``op`` with a body and returns its cycles on a part."""
    tool("arm-none-eabi-gcc", "arm-none-eabi-nm", "qemu-system-arm", "gcc")

    def count(body: str, flash: TimedMemory, ram: TimedMemory | None = None, **caches: MemoryCache) -> CycleCount:
        memories = {"flash": flash, "sram": ram or TimedMemory(4 << 20)}
        return run(linked(tmp_path, body), part_with(memories, caches), tmp_path)

    return count


def part_with(
    memories: Mapping[str, TimedMemory],
    caches: Mapping[str, MemoryCache] = MappingProxyType({}),
    cpu: str = "cortex-m4",
) -> Mcu:
    return Mcu("part", "Part", cpu, 100_000_000, memories, caches)


def linked(folder: Path, body: str, *options: str, cpu: str = "cortex-m4", ram: int = BOARD.ram.origin) -> Path:
    source, image = folder / "program.s", folder / "program.elf"
    source.write_text(PROGRAM.format(body=body, ram=hex(ram)))
    command = ["arm-none-eabi-gcc", f"-mcpu={cpu}", "-mthumb", "-nostdlib", "-Wl,-Ttext=0", "-Wl,--entry=main"]
    subprocess.run([*command, *options, source, "-o", image], check=True)
    return image


def run(image: Path, part: Mcu, folder: Path, board: Board = BOARD) -> CycleCount:
    names = subprocess.run(["arm-none-eabi-nm", image], check=True, capture_output=True, text=True).stdout
    at = {name: int(address, 16) for address, _, name in (line.split() for line in names.splitlines())}
    table = [
        (at["main"], at["after"] + 1, OUTSIDE), (at["run"], at["op"] - 1, REST), (at["op"], at["end_op"] - 1, 1)
    ]  # fmt: skip
    counting = Counting(image, table, folder, board=board, mcu=part)
    assert run_elf(image, board, plugin=counting.plugin, timeout=60).exit_status == 0
    (cycles,) = (call.cycles for call in counting.calls() if call.number == 1)
    assert cycles is not None
    return cycles


FLASH = TimedMemory(4 << 20, width=16, waits=5)
NARROW = "\n".join(["nop"] * 64)
WIDE = "\n".join(["nop.w"] * 32)
LOOP = "movs r0, #10\n.balign 16\n1:\n{body}\nsubs r0, #1\nbne 1b"


def lines(number: int) -> str:
    """Return a loop of ten passes over ``number`` lines of 16 bytes."""
    return LOOP.format(body="\n".join(["nop"] * (8 * number - 2)))


@pytest.mark.parametrize(
    ("body", "flash", "waits"),
    first_on_push(
        [
            (NARROW, FLASH, 9 * 5),  # eight lines, and that with the return
            (NARROW, replace(FLASH, waits=0), 0),
            (NARROW, replace(FLASH, width=8), 17 * 5),
            (NARROW, replace(FLASH, prefetch=True), 5),  # eight cycles for a line hide the six of the next one
            (WIDE, replace(FLASH, prefetch=True), 5 + 8 * 2),  # four cycles do not
        ]
    ),
)
def test_straight_code_waits_for_each_line(counted: Counted, body: str, flash: TimedMemory, waits: int) -> None:
    cycles = counted(body, flash)
    assert cycles.waiting == waits
    assert cycles.arithmetic == body.count("nop")
    assert cycles.branches == 3  # bx lr


@pytest.mark.parametrize(
    ("cache", "waits"),
    first_on_push(
        [
            (MemoryCache(64, 16, 4), 5 + 3 * 5 + 5),  # the line before the loop, its lines once, the return
            (
                MemoryCache(32, 16, 2),
                5 + 10 * 3 * 5 + 5,
            ),  # too small: with LRU, each line is gone when it is needed again
            (MemoryCache(64, 16, 4, hit=1), 6 + 3 * 6 + 9 * 3 + 6),
            (MemoryCache(64, 16, 4, miss=2), 7 + 3 * 7 + 7),
            (MemoryCache(64, 16, 1), 5 + 3 * 5 + 5),  # direct-mapped: no two of the lines share a set
            # Lines of 32 bytes take two reads, and the loop begins in the middle of one: one more wait, because the
            # second read takes six cycles and the code before the loop five (MOVS, and padding of four NOPs)
            (MemoryCache(128, 32, 4), 5 + 1 + 5 + 5),
        ],
        2,
    ),
)
def test_a_loop_that_fits_the_cache_waits_once(counted: Counted, cache: MemoryCache, waits: int) -> None:
    assert counted(lines(3), replace(FLASH, fetch_cache="cache"), cache=cache).waiting == waits


@pytest.mark.sweep
def test_a_prefetched_line_enters_the_cache_if_the_core_waits_for_it(counted: Counted) -> None:
    """The core waits a cycle for the first line of the loop; the others miss after the one before them is cached."""
    flash = replace(FLASH, prefetch=True, fetch_cache="cache")
    assert counted(NARROW, flash, cache=MemoryCache(1024, 16, 64)).waiting == 5
    assert counted(lines(3), flash, cache=MemoryCache(16, 16, 1)).waiting == 5 + 1 + 9 * 5
    assert counted(lines(3), flash, cache=MemoryCache(64, 16, 4)).waiting == 5 + 1 + 2 * 5


@pytest.mark.sweep
def test_round_robin_and_pseudo_random_replacement_are_other_orders_than_lru(counted: Counted) -> None:
    caches = {policy: MemoryCache(64, 16, 4, policy) for policy in ("lru", "round-robin", "pseudo-random")}
    found = {
        policy: counted(lines(5), replace(FLASH, fetch_cache="cache"), cache=cache).waiting
        for policy, cache in caches.items()
    }
    assert found["lru"] == found["round-robin"] == 5 + 10 * 5 * 5 + 5
    assert found["pseudo-random"] < found["lru"]
    again = counted(lines(5), replace(FLASH, fetch_cache="cache"), cache=caches["pseudo-random"])
    assert again.waiting == found["pseudo-random"]


SLOW = replace(FLASH, waits=5, fetch_cache="code")
"""A flash whose code is always in the cache after the first pass."""
CODE = MemoryCache(1024, 32, 32)
FROM_FLASH, FROM_RAM = "ldr r1, =constants", "ldr r1, =variables"


def data_waits(counted: Counted, setup: str, body: str, flash: TimedMemory, **caches: MemoryCache) -> int:
    """Return the waits of ten passes of ``body`` beyond those of ten passes without loads and stores."""
    inside = "{}\n.balign 64\n" + LOOP + "\nbx lr\n.ltorg"
    quiet = "\n".join(["nop"] * 4)
    both = (inside.format(setup, body=f"{quiet}\n{each}\n{quiet}") for each in (body, body.replace("[r1", "[sp")))
    found = [counted(each, flash, code=CODE, **caches).waiting for each in both]
    return found[0] - found[1]


@pytest.mark.parametrize(
    ("load", "waits"),
    first_on_push(
        [
            ("ldr r2, [r1]", 5),
            ("ldrb r2, [r1]", 5),
            ("ldrd r2, r3, [r1]", 2 * 5),
            ("ldr r2, [r1]\nldr r3, [r1, #4]", 2 * 5),
        ]
    ),
)
def test_a_load_from_flash_waits_and_one_from_ram_does_not(counted: Counted, load: str, waits: int) -> None:
    assert data_waits(counted, FROM_FLASH, load, SLOW) == 10 * waits
    assert data_waits(counted, FROM_RAM, load, SLOW) == 0


def test_load_multiple_waits_for_each_word(counted: Counted) -> None:
    waiting = [
        counted(f"ldr r1, ={place}\nldm r1, {{r0, r2, r3, r4}}\nbx lr\n.ltorg", replace(FLASH, fetch_cache=""))
        for place in ("constants", "variables")
    ]
    assert waiting[0].waiting - waiting[1].waiting == 4 * 5
    assert waiting[0].memory == waiting[1].memory == 2 + 5


def test_loads_overlap_only_in_the_same_memory(counted: Counted) -> None:
    """Two literals and a word of `constants`, all in flash, and the last word."""
    body = "ldr r1, ={}\nldr r2, =constants\nnop\nldr r0, [r2]\nldr r3, [r1]\nbx lr\n.ltorg"
    flash, ram = TimedMemory(4 << 20), TimedMemory(4 << 20)
    assert counted(body.format("constants"), flash, ram).memory == 2 + 1 + 2 + 1
    assert counted(body.format("variables"), flash, ram).memory == 2 + 1 + 2 + 2
    assert counted(body.format("variables"), flash, flash).memory == 2 + 1 + 2 + 1


def test_loads_through_a_cache_wait_once_for_a_line(counted: Counted) -> None:
    flash = replace(SLOW, read_cache="data")
    loads = "ldr r2, [r1]\nldr r3, [r1, #12]\nldr r4, [r1, #16]"
    assert data_waits(counted, FROM_FLASH, loads, flash, data=MemoryCache(64, 16, 4)) == 2 * 5


@pytest.mark.parametrize(
    ("store", "waits"), first_on_push([("str r2, [r1]", 3), ("stm r1, {r2, r3}", 6), ("ldr r2, [r1]", 0)])
)
def test_stores_wait_if_no_buffer_hides_it(counted: Counted, store: str, waits: int) -> None:
    ram = TimedMemory(4 << 20, write_waits=3)
    body = f"ldr r1, =variables\n{store}\nbx lr\n.ltorg"
    assert counted(body, replace(FLASH, waits=0), ram).waiting == waits


def test_written_lines_go_back_before_the_next_read(counted: Counted) -> None:
    """A cache of one line: each load from another line evicts the written one, whose memory is busy with it."""
    ram = TimedMemory(4 << 20, width=16, waits=4, write_waits=4, read_cache="data")
    line = MemoryCache(16, 16, 1, write_back=True)
    body = "ldr r1, =variables\nldr r2, [r1]\n{}\nldr r2, [r1, #16]\nldr r2, [r1, #32]\nbx lr\n.ltorg"
    flash = replace(FLASH, waits=0)
    clean, dirty = (counted(body.format(each), flash, ram, data=line) for each in ("mov r3, r2", "str r2, [r1]"))
    assert (
        clean.waiting == 4 + (3 + 4) + 4
    )  # the first one evicts the stack, which `run` wrote: three more for the next
    assert dirty.waiting == 4 + (2 + 4) + (4 + 4)  # the write of the line keeps the memory busy


def test_code_and_data_outside_the_part_are_refused(counted: Counted) -> None:
    with pytest.raises(MlfError) as error:
        counted("ldr r1, =0x40000000\nldr r1, [r1]\nbx lr\n.ltorg", FLASH)
    assert (error.value.code, "0x40000000" in str(error.value)) == ("cycles-not-modelled", True)


def test_data_in_a_memory_that_the_part_lacks_are_refused(tmp_path: Path, tool: Callable[..., str]) -> None:
    tool("arm-none-eabi-gcc")
    image = linked(tmp_path, 'nop\n.section .other, "aw"\n.word 1\n.text', "-Wl,--section-start=.other=0x21000000")
    with pytest.raises(MlfError) as error:
        run(image, part_with({"flash": FLASH, "sram": FLASH}), tmp_path)
    assert (error.value.code, error.value.place) == ("memory-not-in-part", str(image))


LOADS = [
    ("vldrb.u8 q0, [r1]", 2),  # 16 accesses of the emulator are two of the bus
    ("vldrw.u32 q0, [r1]", 2),
    ("vldrb.s32 q0, [r1]", 1),
    ("ldrd r2, r3, [r1]", 1),
    ("ldr r2, [r1]\nldr r3, [r1, #4]", 2),
    ("vstrw.32 q0, [r1]", 0),
]


@pytest.mark.parametrize(("cpu", "hidden"), [("cortex-m7", 5), ("cortex-m4", 0)])
def test_only_the_m7_preloads_a_line_while_it_executes_other_code(
    tmp_path: Path, tool: Callable[..., str], cpu: str, hidden: int
) -> None:
    tool("arm-none-eabi-gcc", "arm-none-eabi-nm", "qemu-system-arm", "gcc")
    board = BOARDS["mps2-an500" if cpu == "cortex-m7" else "mps2-an386"]
    memories = {
        "code": TimedMemory(4 << 20),
        "sram": TimedMemory(4 << 20, width=16, waits=5, read_cache="data"),
    }
    part = part_with(memories, {"data": MemoryCache(1024, 16, 4)}, cpu)
    text = "ldr r1, =variables\n{}\nldr r0, [r1]\n" + NARROW + "\nldr r2, [r1, #16]\nbx lr\n.ltorg"
    waiting = [
        run(linked(tmp_path, text.format(first), cpu=cpu, ram=board.ram.origin), part, tmp_path, board).waiting
        for first in ("nop.w", "pld [r1, #16]")
    ]
    assert waiting == [2 * 5, 2 * 5 - hidden]


@pytest.mark.parametrize(("body", "accesses"), first_on_push(LOADS))
def test_accesses_of_the_m55_are_those_of_its_bus_of_eight_bytes(
    tmp_path: Path, tool: Callable[..., str], body: str, accesses: int
) -> None:
    tool("arm-none-eabi-gcc", "arm-none-eabi-nm", "qemu-system-arm", "gcc")
    board, ram = BOARDS["mps3-an547"], TimedMemory(1 << 20, width=8, waits=10)
    memories = {"flash": TimedMemory(1 << 20), "sram": ram, "itcm": TimedMemory(1 << 20)}
    text = f"ldr r1, =variables\n{body}\nbx lr\n.ltorg"
    image = linked(tmp_path, text, cpu="cortex-m55", ram=board.ram.origin)
    assert run(image, part_with(memories, cpu="cortex-m55"), tmp_path, board).waiting == 10 * accesses
