"""The rows of other makers' microcontrollers."""

from __future__ import annotations

from mlfbuild.targets.mcu_types import KIB, MHZ, MIB, Mcu, MemoryCache, TimedMemory, paragraphs

_NRF52840 = Mcu(
    "nrf52840",
    "nRF52840",
    "cortex-m4",
    64 * MHZ,
    {"flash": TimedMemory(1 * MIB, 16, 2, fetch_cache="icache"), "sram": TimedMemory(256 * KIB)},
    {"icache": MemoryCache(2 * KIB, 16, 2, miss=1)},
    {},
    paragraphs("""
        nRF52840 Product Specification, CPU: up to 2 wait states for flash without the cache and 3 with it, none for
        RAM. NVMC: the cache is for instructions, and off after reset.

        Zephyr, CONFIG_NRF_ENABLE_ICACHE: on by default.
    """),
    paragraphs("""
        The instruction cache has 2 KiB, lines of 128 bits and 2 ways. No public document has its geometry.

        A load from flash takes 2 wait states: no public document describes a buffer for data.
    """),
    error=10,
)

_NRF5340 = Mcu(
    "nrf5340",
    "nRF5340, application core",
    "cortex-m33",
    128 * MHZ,
    {
        "flash": TimedMemory(1 * MIB, 16, 9, fetch_cache="cache", read_cache="cache"),
        "sram": TimedMemory(512 * KIB),
    },
    {"cache": MemoryCache(8 * KIB, 16, 2, miss=1)},
    {"flash": ((64 * MHZ, 4), (128 * MHZ, 9))},
    paragraphs("""
        nRF5340 Product Specification, CACHE: for instructions and data of the flash, 2 ways, LRU, lines of 128 bits.
        Memory: 8 KiB of cache, 1 MiB of flash, 512 KiB of RAM.

        Product Specification of the nRF91 series, which has the same core and generation of flash, CPU: up to 4 wait
        states for flash at 64 MHz without the cache and 5 with it, none for RAM.

        Zephyr, CONFIG_NRF_ENABLE_CACHE: on by default. After reset the cache is off.
    """),
    paragraphs("""
        The flash has the wait states of the nRF91 series at 64 MHz, and at 128 MHz the 9 that the same time takes. No
        document of the nRF5340 that we found has the numbers; ariel-os (pull request 1163) measured that the cache
        halves the time of a benchmark.

        One read of the flash fills a line.
    """),
    error=10,
)

_RP2040 = Mcu(
    "rp2040",
    "RP2040 with QSPI flash, as on the Pico",
    "cortex-m0plus",
    133 * MHZ,
    {
        "flash": TimedMemory(2 * MIB, 4, 49, fetch_cache="cache", read_cache="cache"),
        "sram": TimedMemory(264 * KIB),
    },
    {"cache": MemoryCache(16 * KIB, 8, 2)},
    {},
    paragraphs("""
        RP2040 Datasheet, XIP Cache: 16 KiB, 2 ways, lines of 8 bytes, one cycle for a hit, for instructions and data.

        pico-sdk, boot2_w25q080.S and the header of the board: quad reads of 32 bits with 8 clocks of address, 4 of
        latency and 8 of data at half the core's clock, which are 40 cycles.

        oberon-rtk.org, Flash Memory: about 400 ns for a load that misses at 125 MHz, which are 50 cycles.
    """),
    paragraphs("""
        Each half of a line takes 50 cycles at any clock, as the flash's clock is half the core's.

        The cache replaces the least recently used line: the datasheet does not name the policy.

        SRAM has no wait states, if the second core and DMA are idle.
    """),
    error=15,
)

_RP2350 = Mcu(
    "rp2350",
    "RP2350 with QSPI flash, as on the Pico 2",
    "cortex-m33",
    150 * MHZ,
    {
        "flash": TimedMemory(4 * MIB, 8, 83, fetch_cache="cache", read_cache="cache"),
        "sram": TimedMemory(520 * KIB),
    },
    {"cache": MemoryCache(16 * KIB, 8, 2)},
    {},
    paragraphs("""
        RP2350 Datasheet, External flash and PSRAM (XIP): 16 KiB of cache, 2 ways, lines of 8 bytes, for instructions
        and data.

        forums.raspberrypi.com, 12 January 2026: the boot ROM sets divider 3, so that a miss takes 12 clocks of address
        and latency and 16 of data, 84 cycles of the core.
    """),
    paragraphs("""
        A miss takes 84 cycles also if it follows the line before, for which the interface can continue its burst.

        The cache replaces the least recently used line: the policy is not documented.

        SRAM has no wait states, if the second core and DMA are idle.
    """),
    error=20,
)

_PSOC62 = Mcu(
    "psoc62",
    "PSoC 62 (CY8C62xA), Cortex-M4",
    "cortex-m4",
    150 * MHZ,
    {
        "flash": TimedMemory(2 * MIB, 16, 4, prefetch=True, fetch_cache="cache", read_cache="cache"),
        "sram": TimedMemory(1 * MIB),
    },
    {"cache": MemoryCache(8 * KIB, 16, 4)},
    {"flash": tuple((clock * MHZ, waits) for waits, clock in enumerate((29, 58, 87, 120, 150)))},
    paragraphs("""
        Infineon's Peripheral Driver Library (mtb-pdl-cat1), flashCtlMainWs0Freq to flashCtlMainWs4Freq: wait states at
        1.1 V. Cy_SysLib_SetWaitStates: none for SRAM on the fast clock.

        PSoC 6 data sheet: 128-bit flash access, a cache of 8 KiB for each core. Architecture TRM, flash controller: 4
        ways, prefetch.
    """),
    paragraphs("""
        Cache and prefetch are on, their reset values. The cache serves instructions and data, and replaces the least
        recently used line.
    """),
    error=10,
)

_RA6M4 = Mcu(
    "ra6m4",
    "RA6M4",
    "cortex-m33",
    200 * MHZ,
    {
        "flash": TimedMemory(1 * MIB, 16, 3, fetch_cache="cache", read_cache="cache"),
        "sram": TimedMemory(256 * KIB, 4, 1, write_waits=1),
    },
    {"cache": MemoryCache(2 * KIB, 32, 4)},
    {
        "flash": ((50 * MHZ, 0), (100 * MHZ, 1), (150 * MHZ, 2), (200 * MHZ, 3)),
        "sram": ((100 * MHZ, 0), (200 * MHZ, 1)),
    },
    paragraphs("""
        Renesas' Flexible Software Package, bsp_feature.h of the RA6M4: wait states of code flash and SRAM by clock.

        RA6M4 data sheet: 1 MiB of code flash, 256 KiB of SRAM.
    """),
    paragraphs("""
        The cache on the code bus has 2 KiB, 4 ways, lines of 32 bytes, LRU, and the flash reads 128 bits at once: we
        found no public text of the manual that has these values.

        The SRAM needs its wait state for each access: the cache on the system bus is off.
    """),
    error=20,
)

_M467 = Mcu(
    "numaker-m467",
    "NuMicro M467, as on the NuMaker-M467HJ",
    "cortex-m4",
    200 * MHZ,
    {
        "flash": TimedMemory(1 * MIB, 16, 7, fetch_cache="cache", read_cache="cache"),
        "sram": TimedMemory(512 * KIB),
    },
    {"cache": MemoryCache(4 * KIB, 16, 4)},
    {"flash": tuple((25 * (waits + 1) * MHZ, waits) for waits in range(8))},
    paragraphs("""
        Nuvoton's M460 BSP, which sets FMC->CYCCTL to 8 cycles at 200 MHz: one cycle of flash access for each 25 MHz.

        docs.zephyrproject.org, NuMaker PFM M467: 200 MHz, 1 MiB of flash, 512 KiB of SRAM.
    """),
    paragraphs("""
        The flash reads 128 bits at once through a cache of 4 KiB, 4 ways, lines of 16 bytes, LRU: we found no public
        text of the manual that has these values.

        SRAM has no wait states.
    """),
    error=25,
)

_AN547 = Mcu(
    "mps3-an547",
    "Arm MPS3 board with FPGA image AN547 (Corstone-300)",
    "cortex-m55",
    32 * MHZ,
    {
        "itcm": TimedMemory(512 * KIB, 8),
        "dtcm": TimedMemory(512 * KIB, 8),
        "sram": TimedMemory(2 * MIB, 8, 1),
    },
    {},
    {},
    paragraphs("""
        Arm AN547, Corstone SSE-300 with Cortex-M55 and Ethos-U55 on MPS3: 32 MHz, 512 KiB of ITCM, 512 KiB of DTCM,
        2 MiB of SRAM in the FPGA.

        Arm Cortex-M55 Processor Technical Reference Manual, TCM interfaces: no wait states.
    """),
    paragraphs("""
        Code and constants are in ITCM and data in DTCM, whatever their size.

        SRAM in the FPGA takes one wait state; its caches are not modelled.
    """),
    error=5,
)

_ALIF_E8 = Mcu(
    "alif-e8",
    "Alif Ensemble E8, high-performance core",
    "cortex-m55",
    400 * MHZ,
    {
        "flash": TimedMemory(5632 * KIB, 16, 18, fetch_cache="icache", read_cache="dcache"),
        "dtcm": TimedMemory(1 * MIB, 8),
        "itcm": TimedMemory(256 * KIB, 8),
        "sram": TimedMemory(4 * MIB, 8, 5, burst=0, fetch_cache="icache", read_cache="dcache"),
    },
    {
        "icache": MemoryCache(32 * KIB, 32, 2, miss=5),
        "dcache": MemoryCache(32 * KIB, 32, 4, "pseudo-random", miss=5),
    },
    {},
    paragraphs("""
        docs.zephyrproject.org, Ensemble E8 Development Kit: Cortex-M55 at 400 MHz. The board's memory map: 5.5 MiB of
        MRAM for code and constants, 1 MiB of DTCM for data.

        Arm Cortex-M55 Processor Technical Reference Manual, L1 caches: lines of 32 bytes, 2 ways for instructions and 4
        for data.

        Alif's device pack, MPU_Load_Regions: the 4 MiB of SRAM at 0x02000000 are write-through.
    """),
    paragraphs("""
        A read of 128 bits of MRAM takes 18 wait states (45 ns) at 400 MHz, and one of SRAM 5; a miss takes 5 cycles for
        the buses besides. No public document has the numbers.

        The caches have 32 KiB each and are on; the one for data replaces lines pseudo-randomly. Data are in DTCM.
    """),
    error=25,
)

OTHERS = (_NRF52840, _NRF5340, _RP2040, _RP2350, _PSOC62, _RA6M4, _M467, _AN547, _ALIF_E8)
"""In the order of the reference page."""
