"""Costs of the Cortex-M3.

Source: Cortex-M3 Technical Reference Manual (DDI 0337I), table 3-1; loads, stores and branches are those of
``three_stages``. Where the manual states a range that depends on operands, the middle is taken.
"""

from __future__ import annotations

from mlfbuild.timing.cores.three_stages import three_stage_core
from mlfbuild.timing.costs import DecodedInstruction

# Ranges of the manual are behind the numbers; all other instructions take one cycle.
_CYCLES = {
    "mla": 2, "mls": 2,
    "umull": 4, "smull": 4,  # 3 to 5
    "umlal": 5, "smlal": 5,  # 4 to 7, early with small operands
    "udiv": 7, "sdiv": 7,  # 2 to 12, depending on leading zeros and ones
    "mrs": 2, "msr": 2,
    "isb": 4, "dsb": 2, "dmb": 2,
}  # fmt: skip


def _arithmetic(instruction: DecodedInstruction, _before: DecodedInstruction | None) -> int:
    return _CYCLES.get(instruction.mnemonic, 1)


CORTEX_M3 = three_stage_core(
    "cortex-m3",
    _arithmetic,
    updates_overlap=False,
    error=10,
    sources=("Cortex-M3 Technical Reference Manual (DDI 0337I), table 3-1, Load/store timings",),
)
