"""Where the memories of microcontrollers are: the regions for test firmware that is loaded through a debugger.

Each region is contiguous, and no larger than that of the smallest part that its row of ``MCUS`` describes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mlfbuild.targets.mcu_types import KIB, MIB
from mlfbuild.targets.types import MemoryRegion


@dataclass(frozen=True)
class MemoryMap:
    """The memories of a microcontroller after reset."""

    ram: MemoryRegion
    flash: MemoryRegion | None
    """``None`` if nothing can be started from flash without a boot stage of its vendor: everything is loaded into
    ``ram`` then."""
    source: str
    """Document with its section."""


def _map(source: str, ram: tuple[int, int], flash: tuple[int, int] | None = None) -> MemoryMap:
    return MemoryMap(MemoryRegion("RAM", *ram), MemoryRegion("FLASH", *flash) if flash else None, source)


_FLASH_ST = 0x0800_0000
_SRAM = 0x2000_0000
_L4R5 = _map(
    "RM0432 (STM32L4+), Memory organization: SRAM1 (192 KiB), SRAM2 (64 KiB, also at 0x20030000) and SRAM3 (384 KiB)",
    (_SRAM, 640 * KIB),
    (_FLASH_ST, 2 * MIB),
)
MEMORY_MAPS: Mapping[str, MemoryMap] = MappingProxyType(
    {
        "stm32l4r5": _L4R5,
        "stm32l4r5-single-bank": _L4R5,
        "stm32f746": _map(
            "RM0385 (STM32F75x and STM32F74x), Memory organization: DTCM (64 KiB), SRAM1 (240 KiB) and SRAM2 (16 KiB)",
            (_SRAM, 320 * KIB),
            (_FLASH_ST, 1 * MIB),
        ),
        "stm32h7a3": _map(
            "RM0455 (STM32H7A3/7B3 and STM32H7B0), Memory organization: AXI SRAM1 to SRAM3",
            (0x2400_0000, 1 * MIB),
            (_FLASH_ST, 2 * MIB),
        ),
        "stm32u575": _map(
            "RM0456 (STM32U5), Memory organization: SRAM1 (192 KiB), SRAM2 (64 KiB) and SRAM3 (512 KiB), with TrustZone"
            " off (TZEN cleared, as on delivery)",
            (_SRAM, 768 * KIB),
            (_FLASH_ST, 2 * MIB),
        ),
        "stm32g0b1": _map(
            "RM0444 (STM32G0x1), Embedded SRAM: 144 KiB, of which 128 KiB remain if an option bit enables parity",
            (_SRAM, 128 * KIB),
            (_FLASH_ST, 512 * KIB),
        ),
        "nrf52840": _map("nRF52840 Product Specification, Memory: Data RAM, Flash", (_SRAM, 256 * KIB), (0, 1 * MIB)),
        "nrf5340": _map(
            "nRF5340 Product Specification, Application core memory map: Data RAM, Flash",
            (_SRAM, 512 * KIB),
            (0, 1 * MIB),
        ),
        "rp2040": _map(
            "RP2040 Datasheet, Address map: SRAM, striped and unstriped banks; code in the flash at 0x10000000 requires"
            " a second-stage boot loader",
            (_SRAM, 264 * KIB),
        ),
        "rp2350": _map(
            "RP2350 Datasheet, Address map: SRAM; the boot ROM starts only images with its image definition from flash",
            (_SRAM, 520 * KIB),
        ),
    }
)
"""By name of the microcontroller. Parts whose start from reset needs the vendor's security or boot configuration have
no row: their targets name the memories in ``runner.memory``."""
