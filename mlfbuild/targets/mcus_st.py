"""The rows of ST's microcontrollers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlfbuild.targets.mcu_types import KIB, MHZ, MIB, Mcu, MemoryCache, TimedMemory, paragraphs


def _steps(*highest: int) -> Sequence[tuple[int, int]]:
    """Return the steps of a flash that needs one more wait state above each clock, given in MHz."""
    return tuple((clock * MHZ, waits) for waits, clock in enumerate(highest))


def _quad_spi(divider: int, fetch_cache: str, read_cache: str) -> TimedMemory:
    """Return a serial flash on four lines whose clock is the core's by ``divider``.

    It takes 8 clocks of command, 8 of address and mode, 4 of latency, and 8 for each word.
    """
    first, further = 28 * divider - 1, 8 * divider - 1
    return TimedMemory(16 * MIB, 4, first, burst=further, fetch_cache=fetch_cache, read_cache=read_cache)


_QUAD_SPI = """
    External flash is a quad SPI one, memory-mapped, at {clock}: 28 clocks for the first word of a line and 8 for each
    further one. Bursts that continue with the next line are not modelled.
"""


def _stm32l4r5(name: str, title: str, width: int, bank: str) -> Mcu:
    """Return a row for a mode of the flash: two banks that read 8 bytes, or one that reads 16."""
    return Mcu(
        name,
        title,
        "cortex-m4",
        120 * MHZ,
        {
            "flash": TimedMemory(2 * MIB, width, 5, fetch_cache="icache", read_cache="dcache"),
            "sram": TimedMemory(640 * KIB),
        },
        {
            "icache": MemoryCache(1 * KIB, 32, 32, sector=width),
            "dcache": MemoryCache(256, 32, 8, sector=width),
        },
        {"flash": _steps(20, 40, 60, 80, 100, 120)},
        paragraphs("""
            RM0432 (STM32L4+), Embedded flash memory: read access latency in voltage range 1 (boost mode above 80 MHz);
            the same table is in ST's stm32l4xx_ll_utils.c.

            RM0432 and RM0440 (STM32G4, the same accelerator), ART Accelerator: instruction cache of 32 lines of 4 x 64
            bits (2 x 128 bits with a single bank), data cache of 8 such lines, both LRU; a miss copies what the flash
            reads at once.

            RM0432, FLASH_ACR: reset value 0x600, both caches on and prefetch off. Zephyr of 2022 keeps it
            (soc/arm/st_stm32/stm32l4), today it turns prefetch on too.
        """),
        (
            bank,
            *paragraphs("""
                Prefetch is off.

                The caches are fully associative, and a miss fills a quarter of a line (half of one with a single bank).
                The manual does not name sets and ways; of the readings that it permits, this is the closest to the
                latencies of the STM32L4R5 in docs/performance.md.

                SRAM1, SRAM2 and SRAM3 are one memory without wait states.
            """),
        ),
        error=3,
    )


_U575 = Mcu(
    "stm32u575",
    "STM32U575 and STM32U585",
    "cortex-m33",
    160 * MHZ,
    {
        "flash": TimedMemory(2 * MIB, 16, 4, fetch_cache="icache", read_cache="icache"),
        "sram": TimedMemory(768 * KIB),
        "external": _quad_spi(2, "icache", "icache"),
    },
    {"icache": MemoryCache(8 * KIB, 16, 2, miss=1)},
    {"flash": _steps(32, 64, 96, 128, 160)},
    paragraphs("""
        RM0456 (STM32U5), Embedded flash memory: 128-bit reads, read access latency in voltage range 1; the same table
        is in ST's stm32u5xx_ll_utils.c.

        RM0456, Instruction cache: 8 KiB, 2 ways, lines of 16 bytes, for instructions and constants that the core reads
        on the C-AHB bus; no wait states on a hit, critical word first, pseudo-LRU, which is LRU for two ways.

        Zephyr, soc/st/stm32/stm32u5x: turns the cache on and leaves the prefetch of the flash off, its reset value.
    """),
    (
        "Prefetch of the flash is off; it is an option in STM32CubeMX.",
        "A miss takes one cycle for the look-up before the cache reads the flash.",
        "SRAM has no wait states.",
        *paragraphs(_QUAD_SPI.format(clock="half the core's clock, remapped so that the cache serves it")),
    ),
    error=5,
)

_L1 = paragraphs("""
    Both caches are on, and SRAM is write-back and write-allocate, which is the default memory map of the core. Zephyr
    turns them on, in STM32CubeMX they are an option.

    Lines are replaced pseudo-randomly.

    A miss takes 5 cycles for the bus interface of the core and the bus matrix, besides those of the memory. No public
    document has the number.
""")
_L1_SOURCE = """
    Arm Cortex-M7 Processor Technical Reference Manual (DDI 0489F), section 5.9, L1 caches: lines of 32 bytes, 2 ways
    for instructions and 4 ways for data; fills begin with the word that the core waits for.
"""


def _l1(size: int) -> Mapping[str, MemoryCache]:
    """Return the two caches of a Cortex-M7, ``size`` bytes each."""
    return {
        "icache": MemoryCache(size, 32, 2, "pseudo-random", miss=5),
        "dcache": MemoryCache(size, 32, 4, "pseudo-random", miss=5, write_back=True),
    }


_H7A3 = Mcu(
    "stm32h7a3",
    "STM32H7A3 and STM32H7B3",
    "cortex-m7",
    280 * MHZ,
    {
        "flash": TimedMemory(2 * MIB, 16, 6, fetch_cache="icache", read_cache="dcache"),
        "sram": TimedMemory(1 * MIB, 8, fetch_cache="icache", read_cache="dcache"),
        "dtcm": TimedMemory(128 * KIB, 8),
        "itcm": TimedMemory(64 * KIB, 8),
        "external": _quad_spi(3, "icache", "dcache"),
    },
    _l1(16 * KIB),
    {"flash": _steps(44, 88, 132, 176, 220, 264, 280)},
    paragraphs(f"""
        RM0455 (STM32H7A3), Embedded flash memory: flash words of 128 bits, wait states in voltage scale 0; the same
        table is in ST's stm32h7xx_ll_utils.c.

        RM0455, Memory and bus architecture: 1 MiB of AXI SRAM, 64 KiB of ITCM, 128 KiB of DTCM; the core, the AXI bus
        and the flash have the same clock. Data sheet: caches of 16 KiB each.

        {_L1_SOURCE}
    """),
    (
        *_L1,
        "The data are in AXI SRAM, as in ST's linker scripts.",
        *paragraphs(_QUAD_SPI.format(clock="a third of the core's clock")),
    ),
    error=8,
)

_F746 = Mcu(
    "stm32f746",
    "STM32F746 and STM32F756",
    "cortex-m7",
    216 * MHZ,
    {
        "flash": TimedMemory(1 * MIB, 32, 7, fetch_cache="icache", read_cache="dcache"),
        "sram": TimedMemory(256 * KIB, 4, fetch_cache="icache", read_cache="dcache"),
        "dtcm": TimedMemory(64 * KIB, 8),
        "itcm": TimedMemory(16 * KIB, 8),
        "external": _quad_spi(2, "icache", "dcache"),
    },
    _l1(4 * KIB),
    {"flash": _steps(30, 60, 90, 120, 150, 180, 210, 216)},
    paragraphs(f"""
        RM0385 (STM32F75x and STM32F74x), Embedded flash memory: 256-bit reads, wait states at 2.7 V to 3.6 V.

        RM0385, System and memory overview: SRAM1 and SRAM2 (256 KiB) on the AHB bus matrix with the clock of the core,
        16 KiB of ITCM, 64 KiB of DTCM. Data sheet: caches of 4 KiB each.

        {_L1_SOURCE}
    """),
    (
        *_L1,
        *paragraphs(_QUAD_SPI.format(clock="half the core's clock")),
        *paragraphs("""
            Code is linked for the AXI interface of the flash at 0x08000000, as in ST's linker scripts. The ART
            Accelerator is on the other interface, ITCM, and has no effect.

            The data are in SRAM1 and SRAM2, as in Zephyr.
        """),
    ),
    error=8,
)

_G0B1 = Mcu(
    "stm32g0b1",
    "STM32G0B1 and STM32G0C1",
    "cortex-m0plus",
    64 * MHZ,
    {
        "flash": TimedMemory(512 * KIB, 8, 2, prefetch=True, fetch_cache="icache"),
        "sram": TimedMemory(144 * KIB),
    },
    {"icache": MemoryCache(16, 8, 2)},
    {"flash": _steps(24, 48, 64)},
    paragraphs("""
        RM0444 (STM32G0x1), Embedded flash memory: 64-bit reads, read access latency in voltage range 1.

        RM0444 and RM0490 (STM32C0, the same interface), FLASH read access: prefetch of the next line, instruction cache
        of two lines of 64 bits, LRU, on after reset; no data cache.

        Zephyr (soc/st/stm32/stm32g0x) and the HAL configuration that STM32CubeMX writes turn prefetch on.
    """),
    paragraphs("""
        Prefetch is on. Its reset value is off, and the errata sheet (ES0548) has a limitation for branches between the
        two banks.

        Each load from flash takes the wait states: the manual has no buffer for data.

        SRAM has no wait states; its parity is off.
    """),
    error=5,
)

ST = (
    _stm32l4r5(
        "stm32l4r5",
        "STM32L4R5 and its family, two banks of flash",
        8,
        "Option bit DBANK is set, as on delivery (apache/nuttx, pull request 4469): two banks, 64-bit reads.",
    ),
    _stm32l4r5(
        "stm32l4r5-single-bank",
        "STM32L4R5 and its family, one bank of flash",
        16,
        "Option bit DBANK is cleared: one bank, 128-bit reads.",
    ),
    _F746,
    _H7A3,
    _U575,
    _G0B1,
)
"""In the order of the reference page."""
