"""Model the cycles of code on a microcontroller, from counts and addresses of an emulated run.

The types are in ``types``; see there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.timing.types import (
        BlockCosts as BlockCosts,
        CoreTiming as CoreTiming,
        Cost as Cost,
        DecodedInstruction as DecodedInstruction,
        WorkKind as WorkKind,
    )
else:
    __getattr__ = lazy_attributes(__name__)
