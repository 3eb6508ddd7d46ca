"""Firmware images run on QEMU."""

from mlfbuild.emulator.qemu import RunResult, run_elf

__all__ = ["RunResult", "run_elf"]
