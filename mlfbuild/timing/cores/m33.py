"""Costs of the Cortex-M33: three stages, one instruction per cycle, with few exceptions.

Arm publishes no timings. Sources, by their short names in comments:

- JNK: measurements with an RP2350, https://github.com/jnk0le/random, "pipeline cycle test", doc/cortex_m33.md.
- SLO: measurements with an RP2350, https://github.com/slothy-optimizer/slothy, targets/arm_v7m/cortex_m33.py; seven of
  eight kernels within 5 % of a model of them, the other one 6 %.

Neither measured divisions and square roots: they are those of the Cortex-M4 (Technical Reference Manual, DDI 0439B).
"""

from __future__ import annotations

import re
from fractions import Fraction

from mlfbuild.timing.cores.issue import InOrderCore, Step, block_costs, delays, refilled, tagged
from mlfbuild.timing.cores.operands import (
    BRANCHES,
    EXTENDS_AND_ADDS,
    MULTIPLIES,
    base_name,
    branch_step,
    inline_shift,
    is_shifted_constant,
    loads,
    step_of,
    summed,
)
from mlfbuild.timing.costs import CoreTiming, DecodedInstruction, WorkKind

_DELAYS = delays("""
             any sum added stored fp fp_stored
    one      1   1   1     1      1  1
    two      2   1   1     1      2  2
    word     2   1   2     1      2  1
    fp       2   2   2     2      2  2
    fused    3   3   3     3      3  4
    fp_word  1   1   1     1      1  1
""")
"""JNK for all rows but ``fp``.

- ``two``: multiplications, shifted operands, DSP instructions. A following multiplication can add to the result.
- ``word``: loads. A multiplication can add to the result, and a store can store it, in the next cycle.
- ``fp``: additions and multiplications, as on the Cortex-M4, where they take "one cycle longer if their result is
  consumed by the following instruction".
"""

_DIVIDE = 7
"""Cortex-M4: 2 to 12, depending on the operands; the middle."""
_DSP = re.compile(
    r"pkh(bt|tb)|u?q?(add|sub)(8|16)|[su]h?(add|sub)(8|16)|[su]h?(asx|sax)|u?q(asx|sax)|qd?(add|sub)|[su]sat(16)?"
    r"|usada?8"
)
"""JNK: extensions with addition take two cycles. SLO: UADD16, USUB16, PKHBT and PKHTB do. Others as LLVM's model of the
Cortex-M55, where SXTB16 without addition takes one (ARMScheduleM55.td)."""
_FUSED = re.compile(r"vfn?m[as]|vn?ml[as]")
_FLOAT_CYCLES = {"vdiv": 14, "vsqrt": 14}
"""Cortex-M4, table 7-1."""
_REFILL = Fraction(1)
"""JNK: a taken branch takes one cycle more, and another one if its flags are set in the same cycle."""
_REFILL_LOAD = Fraction(2)
"""A branch to an address from memory: an estimate."""


def _step(instruction: DecodedInstruction) -> Step:
    name = base_name(instruction)
    # First, because they also transfer a word, and would be taken for loads.
    if name in {"tbb", "tbh"}:
        return Step(kind=WorkKind.BRANCH, cycles=2, branches=True, tags=frozenset({"loads"}))
    if instruction.transfers:
        return _transfer(instruction, name)
    if name.startswith("v"):
        return _float_step(instruction, name)
    if name in BRANCHES or "pc" in instruction.writes:
        return branch_step(instruction, {"joins"})
    if name in {"it", "nop"}:
        return Step(kind=WorkKind.ARITHMETIC, tags=tagged(instruction, {"joins"}))
    return _integer_step(instruction, name)


def _integer_step(instruction: DecodedInstruction, name: str) -> Step:
    flags = {"flags"} & instruction.writes
    if MULTIPLIES.fullmatch(name):  # JNK: MULS of 16 bits, which sets flags, takes two cycles
        return step_of(instruction, "two", special=summed(instruction), tags=flags, cycles=1 + len(flags))
    if EXTENDS_AND_ADDS.fullmatch(name):
        return step_of(instruction, "two", special={1: "added"}, tags=flags)
    if is_shifted_constant(instruction):  # JNK: two cycles if it sets flags
        return step_of(instruction, "two", tags=flags, cycles=1 + len(flags))
    shift = inline_shift(instruction)
    if _DSP.fullmatch(name) or (shift and shift != "lsl"):  # SLO: LSL is for free, LSR, ASR and ROR are not
        return step_of(instruction, "two", tags=flags)
    return step_of(instruction, "one", tags=flags, cycles=_DIVIDE if name in {"udiv", "sdiv"} else 1)


def _transfer(instruction: DecodedInstruction, name: str) -> Step:
    """Return the step of a load or store, which moves one word per cycle (JNK, also pairs, lists and the FPU)."""
    floats = name.startswith("v")
    branches = "pc" in instruction.writes
    return step_of(
        instruction, "fp_word" if floats else "word", "fp_stored" if floats else "stored", address="any", base="one",
        cycles=instruction.transfers, lists=1, branches=branches,
        # A load into the FPU needs its register file, which a multiply-accumulate keeps busy.
        waits=frozenset({"fpu"} if floats else ()),
        tags={"loads"} if branches and loads(name) else (),
    )  # fmt: skip


def _float_step(instruction: DecodedInstruction, name: str) -> Step:
    """Return the step of the FPU; after a multiply-accumulate it can do nothing else for two cycles (JNK)."""
    fused = _FUSED.fullmatch(name) is not None
    cycles = _FLOAT_CYCLES.get(name, 1)
    moves = name in {"vmov", "vmrs", "vmsr"}
    # Two commas and more: `vmov r0, r1, d0` and `vmov s0, s1, r0, r1`.
    if name == "vmov" and instruction.operands.count(",") > 1:  # two registers of the core: as on the Cortex-M4
        cycles = 2
    how = "fused" if fused else "one" if moves else "fp"
    blocks = {"fpu": 3 if fused else cycles}
    return step_of(instruction, how, "fp", cycles=cycles, waits=frozenset({"fpu"}), blocks=blocks)


def _together(first: Step, second: Step) -> Fraction | None:
    """JNK: two instructions of 16 bits, of which the second one is a branch, ``it`` or ``nop``."""
    return Fraction(0) if "narrow" in first.tags & second.tags and "joins" in second.tags else None


def _taken(step: Step, partner: Step | None) -> Fraction:
    return _REFILL_LOAD if "loads" in step.tags else refilled(_REFILL, partner)


CORTEX_M33 = CoreTiming(
    core="cortex-m33",
    costs=block_costs(InOrderCore(delays=_DELAYS, together=_together, taken=_taken), _step),
    unaligned=Fraction(1),
    error=11,
    sources=(
        "measurements with an RP2350, https://github.com/jnk0le/random, pipeline cycle test, doc/cortex_m33.md",
        "measurements with an RP2350, https://github.com/slothy-optimizer/slothy, targets/arm_v7m/cortex_m33.py",
        "divisions and square roots: Cortex-M4 Technical Reference Manual (DDI 0439B)",
        "loads to PC: estimates",
    ),
)
