"""The bytes of a model by device: those that only the NPU reads and writes, those of the core, and the workspace."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlfbuild.library import npu_symbol
from mlfbuild.library.keys import NPU_DEVICE
from mlfbuild.report.sizes.owners import ARENA, Owner, SizedSymbol

CORE, BOTH = "core", "both"
_OWN_MEMORY = re.compile(r"tvmgen_\w+_npu_workspace")


@dataclass(frozen=True)
class DeviceBytes:
    """The part of a model on one device."""

    device: str
    """``core``, ``ethos-u``, or ``both``."""
    flash: int
    ram: int


def parts_by_device(owner: Owner) -> tuple[DeviceBytes, ...]:
    """Return the bytes of ``owner`` by device; none if it has nothing for an NPU.

    Command streams, weights and the fast memory belong to the NPU. Core and NPU use the workspace in turns.
    """
    found: dict[str, list[SizedSymbol]] = {CORE: [], NPU_DEVICE: [], BOTH: []}
    for piece in owner.pieces:
        device = NPU_DEVICE if _is_for_npu(piece) else BOTH if piece.kind == ARENA else CORE
        found[device].append(piece)
    if not found[NPU_DEVICE]:
        return ()
    parts = (Owner(device, tuple(pieces)) for device, pieces in found.items())
    return tuple(DeviceBytes(part.name, part.flash, part.ram) for part in parts)


def _is_for_npu(piece: SizedSymbol) -> bool:
    # Symbols of the device's files, and their sizes.
    return piece.name.startswith(npu_symbol(piece.module, "")) or _OWN_MEMORY.fullmatch(piece.name) is not None
