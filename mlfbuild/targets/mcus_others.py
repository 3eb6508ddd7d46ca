"""The rows of other makers' microcontrollers."""

from __future__ import annotations

from mlfbuild.targets.mcu_types import KIB, MHZ, MIB, Mcu, MemoryCache, TimedMemory, paragraphs

_NRF5340 = Mcu(
    "nrf5340",
    "nRF5340, application core",
    "cortex-m33",
    128 * MHZ,
    {
        "flash": TimedMemory(1 * MIB, 16, 5, fetch_cache="cache", read_cache="cache"),
        "sram": TimedMemory(512 * KIB),
    },
    {"cache": MemoryCache(8 * KIB, 16, 2)},
    {"flash": ((64 * MHZ, 2), (128 * MHZ, 5))},
    paragraphs("""
        nRF5340 Product Specification, CACHE: instructions and data of the flash, 2 ways, LRU, lines of 128 bits.
        Memory: 8 KiB of cache, 1 MiB of flash, 512 KiB of RAM.

        Zephyr, CONFIG_NRF_ENABLE_CACHE: on by default. After reset the cache is off.
    """),
    paragraphs("""
        The flash needs 2 wait states at 64 MHz, as that of the nRF52840 (its Product Specification, CPU), and at
        128 MHz the 5 that the same time takes. No public document of the nRF5340 has the numbers.

        One read of the flash fills a line.

        RAM has no wait states.
    """),
    error=10,
)

OTHERS = (_NRF5340,)
"""In the order of the reference page."""
