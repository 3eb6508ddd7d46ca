"""The table of boards that QEMU emulates. The regions are those of the linker scripts in ``runtime/board``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mlfbuild.targets.types import Board, MemoryRegion

_MIB = 1024 * 1024


def _board(
    name: str,
    cpu: str,
    flash: tuple[int, int],
    ram: tuple[int, int],
    runs: tuple[str, ...] = (),
    options: tuple[str, ...] = (),
    emulator: str = "qemu-system-arm",
    **others: tuple[int, int],
) -> Board:
    further = tuple(MemoryRegion(region, *place) for region, place in others.items())
    return Board(name, cpu, MemoryRegion("FLASH", *flash), MemoryRegion("RAM", *ram), further, runs, emulator, options)


_SSRAM = ((0x00000000, 4 * _MIB), (0x20000000, 4 * _MIB))

BOARDS: Mapping[str, Board] = MappingProxyType(
    {
        board.name: board
        for board in (
            _board("mps2-an385", "cortex-m3", *_SSRAM, ("cortex-m0", "cortex-m0plus"), PSRAM=(0x21000000, 16 * _MIB)),
            _board("mps2-an386", "cortex-m4", *_SSRAM, PSRAM=(0x21000000, 16 * _MIB)),
            _board("mps2-an500", "cortex-m7", *_SSRAM, PSRAM=(0x60000000, 16 * _MIB)),
            _board(
                "mps2-an505",
                "cortex-m33",
                (0x10000000, 4 * _MIB),
                (0x38000000, 4 * _MIB),
                ("cortex-m23",),
                PSRAM=(0x80000000, 16 * _MIB),
            ),
            _board(
                "mps3-an547",
                "cortex-m55",
                (0x38000000, 8 * _MIB),
                (0x31000000, 4 * _MIB),
                ("cortex-m85",),
                ITCM=(0x00000000, _MIB // 2),
                DTCM=(0x30000000, _MIB // 2),
                DDR=(0x70000000, 256 * _MIB),
            ),
            _board(
                "vexpress-a9",
                "cortex-a9",
                (0x40000000, 64 * _MIB),
                (0x60000000, 128 * _MIB),
                options=("-audiodev", "none,id=none", "-global", "pl041.audiodev=none"),  # instead of a sound card
                SRAM=(0x48000000, 32 * _MIB),
            ),
            _board(
                "virt",
                "rv32imc",
                (0x80000000, 64 * _MIB),
                (0x84000000, 64 * _MIB),
                options=("-bios", "none"),
                emulator="qemu-system-riscv32",
            ),
        )
    }
)
"""Every board by QEMU's machine name."""
