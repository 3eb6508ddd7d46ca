"""The bytes of a model by device: those that only the NPU reads and writes, and those of the core."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mlfbuild.library import npu_symbol
from mlfbuild.library.keys import NPU_DEVICE
from mlfbuild.report.sizes.owners import Owner, SizedSymbol

CORE = "core"
_OWN_MEMORY = re.compile(r"tvmgen_\w+_npu_workspace")


@dataclass(frozen=True)
class DeviceBytes:
    """The part of a model on one device."""

    device: str
    """``core`` or ``ethos-u``."""
    flash: int
    ram: int


def parts_by_device(owner: Owner) -> tuple[DeviceBytes, ...]:
    """Return the bytes of ``owner`` that the core and the NPU have, in bytes; none if it has nothing for an NPU.

    The NPU has its command streams and weights, and memory of its own. The workspace, in which both work, counts for
    the core.
    """
    whole = Owner(owner.name, tuple(piece for piece in owner.pieces if _is_for_npu(piece)))
    if not whole.pieces:
        return ()
    core = DeviceBytes(CORE, owner.flash - whole.flash, owner.ram - whole.ram)
    return core, DeviceBytes(NPU_DEVICE, whole.flash, whole.ram)


def _is_for_npu(piece: SizedSymbol) -> bool:
    # Symbols of the device's files, and their sizes.
    return piece.name.startswith(npu_symbol(piece.module, "")) or _OWN_MEMORY.fullmatch(piece.name) is not None
