"""The pipelines of Arm's Cortex-M cores, a file each: costs of instructions without waits for memories.

    CORE_TIMINGS["cortex-m4"].costs(instructions, False)    the cost of each instruction of a basic block

Each file has its costs as tables or functions that can be read beside the manual or the measurements they are from.
M3 and M4 add their arithmetic to the rules for loads, stores and branches in ``three_stages``. M7, M33 and M55 describe
instructions as steps, which ``issue`` issues in order; ``operands`` says how instructions use their registers.

A core sees one block at a time: results that are not ready at the end of a block do not delay the next one. A cost
includes no wait states, and does not depend on the values of operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.timing.cores.registry import CORE_TIMINGS, core_timing, modelled_error
else:
    __getattr__ = lazy_attributes(__name__)
