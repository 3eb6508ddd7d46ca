"""Start an image that is loaded, wherever it is."""

from __future__ import annotations

from mlfbuild.runners.firmware import Firmware
from mlfbuild.runners.types import Runner

_THUMB = 1 << 24
"""Bit of xPSR."""


def start_image(runner: Runner, firmware: Firmware) -> None:
    """Reset the device, and let it stand before the first instruction of ``firmware``.

    The core begins with the image itself if it is at the address where the device starts. If it is in RAM, or behind a
    boot loader or boot ROM, its stack pointer and its entry are set instead.
    """
    runner.reset()
    vectors = firmware.vectors()
    if vectors is not None and runner.registers()["pc"] & ~1 != firmware.entry:
        runner.set_registers({"sp": vectors[1][0], "pc": firmware.entry, "xpsr": _THUMB})
