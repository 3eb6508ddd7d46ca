"""Firmware images run on QEMU."""

from mlfbuild.verify.emulator.qemu import RunResult, run_elf

__all__ = ["RunResult", "run_elf"]
