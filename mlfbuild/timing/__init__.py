"""Model the cycles of code on a microcontroller, from counts and addresses of an emulated run.

The types are in ``types``; see there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.timing.blocks import BasicBlock as BasicBlock, basic_blocks as basic_blocks, branches as branches
    from mlfbuild.timing.cores import (
        CORE_TIMINGS as CORE_TIMINGS,
        core_timing as core_timing,
        modelled_error as modelled_error,
    )
    from mlfbuild.timing.description import (
        regions_of_part as regions_of_part,
        timing_description as timing_description,
    )
    from mlfbuild.timing.listing import (
        Disassembly as Disassembly,
        Instruction as Instruction,
        ListedFunction as ListedFunction,
    )
    from mlfbuild.timing.objdump import (
        LinkedCode as LinkedCode,
        damaged_image as damaged_image,
        disassembled as disassembled,
    )
    from mlfbuild.timing.result import CycleCount as CycleCount, cycle_count as cycle_count
    from mlfbuild.timing.types import (
        BlockCosts as BlockCosts,
        CoreTiming as CoreTiming,
        Cost as Cost,
        DecodedInstruction as DecodedInstruction,
        WorkKind as WorkKind,
    )
else:
    __getattr__ = lazy_attributes(__name__)
