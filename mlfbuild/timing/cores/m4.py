"""Costs of the Cortex-M4 with its FPU.

Source: Cortex-M4 Technical Reference Manual (DDI 0439B), table 3-1 for the core, table 7-1 for the FPU; loads, stores
and branches are those of ``three_stages``. Integer multiplications, DSP and saturating instructions take one cycle.
"""

from __future__ import annotations

import re

from mlfbuild.timing.cores.three_stages import three_stage_core
from mlfbuild.timing.costs import DecodedInstruction

_DIVIDE = 7
"""Table 3-1: 2 to 12, depending on the operands' leading zeros and ones; the middle."""
_CYCLES = {
    "udiv": _DIVIDE, "sdiv": _DIVIDE,
    "mrs": 2, "msr": 2,  # 1 or 2
    "isb": 4, "dsb": 2, "dmb": 2,  # 1 + B: barriers wait for outstanding accesses
    # Table 7-1
    "vmla": 3, "vmls": 3, "vfma": 3, "vfms": 3, "vnmla": 3, "vnmls": 3, "vfnma": 3, "vfnms": 3,
    "vdiv": 14, "vsqrt": 14,
}  # fmt: skip
_ACCUMULATES = re.compile(r"vf?n?ml?[as]|vf?n?m[as]")
_COMPUTES = re.compile(r"v(add|sub|n?mul|div|sqrt|cvt\w?|f?n?m[as]|n?ml[as])")
"""Table 7-1, note: these "take one cycle longer if their result is consumed by the following instruction"."""


def _arithmetic(instruction: DecodedInstruction, before: DecodedInstruction | None) -> int:
    name = instruction.mnemonic.partition(".")[0]
    cycles = _CYCLES.get(name, 1)
    if name == "vmov" and len(instruction.operands.split(",")) > 2:  # two registers of the core
        cycles = 2
    return cycles + int(before is not None and _waits_for_result(name, instruction, before))


def _waits_for_result(name: str, instruction: DecodedInstruction, before: DecodedInstruction) -> bool:
    """Return whether the instruction needs the float result of the one before it.

    Table 7-1, note: multiply-accumulates "consume their addend one cycle later", so the addend has no such wait.
    """
    if not _COMPUTES.fullmatch(before.mnemonic.partition(".")[0]):
        return False
    needed = instruction.reads
    if _ACCUMULATES.fullmatch(name):
        # The first operand is both the result and the addend, which is read a cycle later.
        needed = frozenset(part.strip() for part in instruction.operands.split(",")[1:])
    return bool(before.writes & needed)


CORTEX_M4 = three_stage_core(
    "cortex-m4",
    _arithmetic,
    updates_overlap=True,
    error=7,
    sources=(
        "Cortex-M4 Technical Reference Manual (DDI 0439B), tables 3-1 and 7-1, Load/store timings",
        "branches: measurements with an STM32L4, https://compendium.i-0.nl, Branch timing",
    ),
)
