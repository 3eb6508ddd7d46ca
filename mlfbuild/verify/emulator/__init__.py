"""Run firmware images on QEMU, and build test firmware for its boards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.verify.emulator.counter import (
        OUTSIDE as OUTSIDE,
        REST as REST,
        CountedBlock as CountedBlock,
        CountedCall as CountedCall,
        Counting as Counting,
        counting_plugin as counting_plugin,
    )
    from mlfbuild.verify.emulator.harness import build_harness as build_harness
    from mlfbuild.verify.emulator.qemu import (
        EmulatorRun as EmulatorRun,
        emulator_command as emulator_command,
        run_elf as run_elf,
    )
    from mlfbuild.verify.emulator.run import checked_runs as checked_runs, run_on_board as run_on_board
else:
    __getattr__ = lazy_attributes(__name__)
