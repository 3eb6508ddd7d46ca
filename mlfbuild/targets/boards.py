"""The table of boards that QEMU emulates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from mlfbuild.core.keys import Keys
from mlfbuild.targets.data_files import rows
from mlfbuild.targets.part_keys import RegionKeys
from mlfbuild.targets.types import Board, MemoryRegion


@dataclass(frozen=True)
class _BoardKeys(Keys):
    """An entry of ``data/boards.toml``: a ``Board`` with its regions by name, ``FLASH`` and ``RAM`` first."""

    TITLE = "board"

    cpu: str
    regions: Mapping[str, RegionKeys]
    runs: tuple[str, ...] = ()
    emulator: str = "qemu-system-arm"
    options: tuple[str, ...] = ()


def _board(name: str, keys: _BoardKeys) -> Board:
    # The first two regions are what linker script and test firmware need of every board.
    flash, ram, *others = (MemoryRegion(region, each.origin, each.size) for region, each in keys.regions.items())
    return Board(name, keys.cpu, flash, ram, tuple(others), keys.runs, keys.emulator, keys.options)


BOARDS: Mapping[str, Board] = MappingProxyType({name: _board(name, keys) for name, keys in rows("boards", _BoardKeys)})
"""Every board by QEMU's machine name."""
