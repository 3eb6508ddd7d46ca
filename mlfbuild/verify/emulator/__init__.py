"""Run firmware images on QEMU, and build test firmware for its boards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.verify.emulator.counter import (
        OUTSIDE, REST, CountedBlock, CountedCall, Counting, MarkedFunction, MarkedRuns, MarkRole, counting_plugin,
    )
    from mlfbuild.verify.emulator.harness import build_harness
    from mlfbuild.verify.emulator.qemu import EmulatorRun, emulator_command, run_elf
    from mlfbuild.verify.emulator.run import checked_runs, run_on_board
else:
    __getattr__ = lazy_attributes(__name__)
