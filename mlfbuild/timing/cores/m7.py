"""Costs of the Cortex-M7: six stages, two instructions per cycle in order, an early and a late arithmetic unit.

Arm publishes no timings. Sources, by their short names in comments:

- JNK: measurements with an STM32H743, https://github.com/jnk0le/random, "pipeline cycle test", doc/cortex_m7.md.
- LLVM: the scheduling model that Arm's engineers wrote, llvm/lib/Target/ARM/ARMScheduleM7.td.
- QUI: measurements with an STM32H730, https://www.quinapalus.com/cm7cycles.html.

Stages are EX1 (addresses, shifts, early arithmetic), EX2 (late arithmetic, words from memory, multiplication), EX3
(sums of products, bytes and half words from memory) and EX4 (data to store). Two loads are issued together if they
access different banks, the even and the odd words (JNK). Where addresses are not known to differ in that, half a cycle
is charged. A PLD takes the time of a load and starts to fill a line, which is an assumption. Not modelled: the number
of bytes that are fetched per cycle; the store buffer, which writes bytes at a rate of one in 2 to 4 cycles if many
follow each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from mlfbuild.timing.cores.issue import InOrderCore, Step, block_costs, delays, tagged
from mlfbuild.timing.cores.operands import (
    EXTENDS_AND_ADDS,
    MANY,
    MULTIPLIES,
    base_name,
    inline_shift,
    is_shifted_constant,
    loads,
    step_of,
    summed,
    uses,
)
from mlfbuild.timing.costs import BlockCosts, CoreTiming, Cost, DecodedInstruction, WorkKind
from mlfbuild.timing.listing import operand_parts

_DELAYS = delays("""
              early late beside factor sum stored fp fp_factor fp_sum fp_stored moved
    early     1     0    0      0      0   0      1  1         1      0         1
    late      2     1    1      1      0   0      1  1         1      0         1
    reversed  2     0    0      0      0   0      1  1         1      0         1
    word      2     1    2      2      1   0      1  1         1      0         1
    narrow    3     2    2      2      1   0      1  1         1      0         1
    product   3     2    2      2      1   0      1  1         1      0         1
    saturated 3     2    2      2      1   0      1  1         1      0         1
    fp        3     3    3      3      3   1      3  3         3      1         3
    fused     5     5    5      5      5   3      5  5         3      3         5
    chained   6     6    6      6      6   4      6  6         3      4         6
    fp_word   2     2    2      2      2   1      1  1         3      1         2
    moved     3     3    3      3      3   1      3  3         3      1         3
    double    4     4    4      4      4   2      4  4         3      2         4
""")
"""JNK for all rows but ``saturated`` (LLVM, M7WriteShSIMD2 and M7WriteSIMD2) and ``double`` (LLVM, WriteFPALU64).

- ``early``: the result of EX1 is in time for EX2 of the same cycle. ``add``, ``sub``, ``mov`` and shifts run there if
  their operands are ready, else in EX2 (``late``).
- ``reversed``: ``rev`` and ``rbit`` run in EX1, but addresses and shifts cannot use their result in the next cycle.
- ``word``: in the cycle after its load, late arithmetic can use a word, but neither multiplications can, nor
  instructions that need another operand early (``beside``).
- ``fused``, ``chained``: ``vfma`` and ``vmla``.
"""

_DIVIDE = 7
"""LLVM, WriteDIV. The real time depends on the operands."""
# Instructions that run in the early unit if their operands are ready, and otherwise in the late one.
_FLEXIBLE = frozenset({"add", "addw", "adr", "sub", "subw", "mov", "movw"})
_SHIFTS = frozenset({"lsl", "lsr", "asr", "ror"})
_REVERSES = frozenset({"rev", "rev16", "revsh", "rbit"})
_FIELDS = re.compile(r"[su]bfx|bf[ci]|pkh(bt|tb)|[su]xta(b|h|b16)")
_EXTENDS = re.compile(r"[su]xt(b|h|b16)|clz|sel|([su]h?)(add|sub)(8|16)|([su]h?)(asx|sax)")
_SATURATES = re.compile(r"[su]sat(16)?|u?q(add|sub)(8|16)?|u?q(asx|sax)|qd(add|sub)|usada?8")
# Instructions with effects on the state of the core, and exclusive accesses, are issued alone.
_ALONE = re.compile(r"mrs|msr|dmb|dsb|isb|svc|bkpt|cps\w*|\w*ex[bh]?|clrex|wf[ei]|sev|udf|vmrs|vmsr")
_EARLY_OPERANDS: Mapping[str, Mapping[int, str]] = {
    "bfi": {1: "early"}, "pkhbt": {2: "early"}, "pkhtb": {1: "early", 2: "early"},
}  # fmt: skip
_BRANCHES = frozenset({"b", "bl", "blx", "bx", "cbz", "cbnz"})
_FUSED = re.compile(r"vfn?m[as]")
_CHAINED = re.compile(r"vn?ml[as]")
_SINGLE_CYCLES = {"vdiv": 16, "vsqrt": 14}
_DOUBLE_CYCLES = {"vmul": 5, "vnmul": 5, "vdiv": 30, "vsqrt": 30}
"""JNK, operands with the same exponent; LLVM for VSQRT."""

_MISPREDICTED = Fraction(8)
"""A branch that ends a loop. JNK: 8 cycles, and 6 if the flags are set at least ``_EARLY_FLAGS`` cycles before."""
_MISPREDICTED_EARLY = Fraction(6)
_EARLY_FLAGS = 3
_RETURN = Fraction(3)
"""A branch to an address from a register or from memory: an estimate."""
_FORWARD = Fraction(1)
"""A taken forward branch: an estimate between none, if it is predicted, and 8."""


def _step(instruction: DecodedInstruction) -> Step:
    name = base_name(instruction)
    if name.startswith("v"):
        return _float_step(instruction, name)
    if name in {"tbb", "tbh"}:  # LLVM: alone, two cycles
        return Step(kind=WorkKind.BRANCH, cycles=2, tags=frozenset({"alone"}), branches=True)
    if instruction.transfers:
        return _transfer(instruction, name)
    if name in _BRANCHES or "pc" in instruction.writes:
        reads = tuple(uses(instruction, "late")) if name not in {"b", "cbz", "cbnz"} else ()
        tags = tagged(instruction, {"branch", direction(instruction)})
        return Step(kind=WorkKind.BRANCH, reads=reads, tags=tags, branches=True)
    if MULTIPLIES.fullmatch(name):
        return _arithmetic(instruction, "product", "factor", {"product"}, special=summed(instruction))
    if name == "pld":  # JNK: waits for its address as loads do
        return step_of(instruction, "late", "early", tags={"load"})
    if name in {"udiv", "sdiv"}:
        return _arithmetic(instruction, "late", "late", {"alone"}, cycles=_DIVIDE)
    if _ALONE.fullmatch(name):
        return _arithmetic(instruction, "saturated", "late", {"alone"})
    return _integer(instruction, name)


def _integer(instruction: DecodedInstruction, name: str) -> Step:
    """Return the step of arithmetic without multiplication, and of bit fields and DSP instructions.

    JNK: DSP and bit field instructions are only issued as the first one of a pair. Only one instruction of a pair can
    have a shifted operand or constant or move a bit field.
    """
    if name in _REVERSES:
        return _arithmetic(instruction, "reversed", "early", {"dsp", "shifter"})
    if _FIELDS.fullmatch(name):
        early = {2: "early"} if EXTENDS_AND_ADDS.fullmatch(name) else _EARLY_OPERANDS.get(name, {})
        general = "early" if name in {"ubfx", "sbfx"} else "beside"
        return _arithmetic(instruction, "late", general, {"dsp", "shifter"}, special=early)
    if _EXTENDS.fullmatch(name):
        return _arithmetic(instruction, "late", "late", {"dsp"})
    if _SATURATES.fullmatch(name):
        return _arithmetic(instruction, "saturated", "early" if "sat" in name else "late", {"dsp"})
    if inline_shift(instruction):
        shifted = {len(operand_parts(instruction.operands)) - 2: "early"}
        return _arithmetic(instruction, "late", "beside", {"shifter", "inline"}, special=shifted)
    if is_shifted_constant(instruction):
        return _arithmetic(instruction, "late", "late", {"shifter", "inline"})
    if name in _SHIFTS:
        return _arithmetic(instruction, "late", "late", {"shift", "either slot"}, early=True)
    return _arithmetic(instruction, "late", "late", set(), early=name in _FLEXIBLE)


def _arithmetic(
    instruction: DecodedInstruction, how: str, use: str, tags: set[str], early: bool = False, **more: Any
) -> Step:
    step = step_of(instruction, how, use, tags=tags, stages=(("early", "early"),) if early else (), **more)
    if "flags" not in instruction.writes:
        return step
    # Flags come from late arithmetic whichever unit has the result (JNK).
    results = [(register, way) for register, way in step.writes if register != "flags"]
    return replace(step, writes=(*results, ("flags", "late")), stages=())


def _transfer(instruction: DecodedInstruction, name: str) -> Step:
    """Return the step of a load or store; pairs and lists move two words per cycle and are issued alone (JNK)."""
    many = MANY.fullmatch(name) is not None or instruction.transfers > 1
    tags = {"load" if loads(name) else "store"} | ({"alone"} if many or _ALONE.fullmatch(name) else set())
    branches = "pc" in instruction.writes
    how = "word" if name in {"ldr", "ldrd", "ldrt", "ldrex"} or many else "narrow"
    return step_of(
        instruction, how, "stored", address="early", base="early", cycles=-(-instruction.transfers // 2), lists=2,
        tags={*tags, *({"return"} if branches else ())}, branches=branches,
        place=place_of(instruction) if loads(name) and not many else None,
    )  # fmt: skip


def _float_step(instruction: DecodedInstruction, name: str) -> Step:
    types = instruction.mnemonic.partition(".")[2]
    if instruction.transfers:
        return _float_transfer(instruction, name)
    if name == "vmov":
        return _float_move(instruction)
    if name in {"vmrs", "vmsr"}:
        return step_of(instruction, "late", "late", tags={"alone"})
    if _FUSED.fullmatch(name) or _CHAINED.fullmatch(name):
        # JNK: VADD, VLDM and others cannot be issued in the three cycles after a multiply-accumulate, nor VFMA in the
        # next one after VMLA, which rounds in a separate stage.
        fused = _FUSED.fullmatch(name) is not None
        cycles = 7 if "f64" in types else 1
        return step_of(
            instruction, "fused" if fused else "chained", "fp_factor", special={0: "fp_sum"}, cycles=cycles,
            tags={"fp", "multiply-accumulate"}, waits=frozenset({"rounding"} if fused else ()),
            blocks={"sum": cycles + 3} if fused else {"sum": cycles + 3, "rounding": 2},
        )  # fmt: skip
    how = "double" if "f64" in types else "late" if name in {"vcmp", "vcmpe"} else "fp"
    cycles = (_DOUBLE_CYCLES if how == "double" else _SINGLE_CYCLES).get(name, 1)
    waits = frozenset({"sum"} if name in {"vadd", "vsub"} else ())
    return step_of(instruction, how, "fp", tags={"fp"}, cycles=cycles, waits=waits)


def _float_move(instruction: DecodedInstruction) -> Step:
    parts = operand_parts(instruction.operands)
    if len(parts) > 2:  # two registers of the core
        return step_of(instruction, "moved", "moved", tags={"alone"})
    if parts[-1].startswith("#"):
        return replace(step_of(instruction, "moved", "moved", tags={"fp"}, waits=frozenset({"sum"})), reads=())
    # r0 to r12, lr and ip are registers of the core; s, d and q are those of the FPU.
    how = "late" if parts[0][0] in "rli" else "moved"
    return step_of(instruction, how, "moved", tags={"move"}, waits_as_second=frozenset({"sum"}))


def _float_transfer(instruction: DecodedInstruction, name: str) -> Step:
    many = instruction.transfers > 1 or MANY.fullmatch(name) is not None
    loaded = loads(name)
    tags = {"load" if loaded else "store", "move", *(("alone",) if many else ())}
    return step_of(
        instruction, "fp_word", "fp_stored", address="early", base="early", cycles=-(-instruction.transfers // 2),
        lists=2, tags=tags, waits=frozenset({"sum"} if many else ()), waits_as_second=frozenset({"sum"}),
        place=place_of(instruction) if loaded and not many else None,
    )  # fmt: skip


_PLACE = re.compile(r"\[(\w+)(?:, #(-?\d+))?\]")


def place_of(instruction: DecodedInstruction) -> tuple[str, int] | None:
    """Return the base register and offset of an address if they are known not to change, as ``Step.place`` has them."""
    for part in operand_parts(instruction.operands):
        place = _PLACE.fullmatch(part)
        if place is not None:
            return place[1], int(place[2] or 0)
    return None


def direction(instruction: DecodedInstruction) -> str:
    """Return the tag of a branch by which its cost is chosen: ``return``, ``always``, ``backward`` or ``forward``."""
    if instruction.target is None:
        return "return"
    if not instruction.condition and instruction.mnemonic not in {"cbz", "cbnz"}:
        return "always"
    return "backward" if instruction.target <= instruction.address else "forward"


_ONE_PER_CYCLE = frozenset({"store", "product", "dsp", "shifter", "fp", "branch"})


def _together(first: Step, second: Step) -> Fraction | None:
    """Return the mean cost of issuing two steps in one cycle; ``None`` if the core never does."""
    tags = first.tags | second.tags
    alone = "alone" in tags or first.tags & second.tags & _ONE_PER_CYCLE
    impossible = (
        alone
        or "dsp" in second.tags
        or {"product", "store"} <= tags
        or ("shift" in first.tags and "inline" in second.tags)
        or {"multiply-accumulate", "move"} <= tags
    )
    if impossible:
        return None
    return banks(first, second) if "load" in first.tags & second.tags else Fraction(0)


def banks(first: Step, second: Step) -> Fraction | None:
    """Return the cost of two loads in one cycle: none if one word is even and the other odd."""
    # Different base registers may point to any two banks: the mean of no cycle and one is charged.
    if first.place is None or second.place is None or first.place[0] != second.place[0]:
        return Fraction(1, 2)
    return Fraction(0) if (first.place[1] ^ second.place[1]) & 4 else None


def taken(step: Step, _partner: Step | None) -> Fraction:
    """Return the further cycles of a taken branch, by the tag that ``direction`` gives it."""
    if "return" in step.tags:
        return _RETURN
    return _FORWARD if "forward" in step.tags else Fraction(0)


def _across_branches(steps: Sequence[Step]) -> bool:
    """JNK: a predicted branch joins the instruction at its target after at least two 16-bit instructions."""
    return sum("narrow" in step.tags for step in steps[:-1]) >= 2


def with_missed_ends(predicted: BlockCosts, missed: Fraction, missed_early: Fraction, early: int) -> BlockCosts:
    """Return ``predicted``, the costs as if all branches were predicted, with the ends of loops, which are not.

    An end takes ``missed`` cycles more, or ``missed_early`` if the flags are set at least ``early`` cycles before.
    """

    def costs(block: Sequence[DecodedInstruction], loops: bool) -> Sequence[Cost]:
        found = predicted(block, loops)
        # Only a backward branch ends a loop; all others are predicted or charged by `taken` of the core.
        if direction(block[-1]) != "backward":
            return found
        known = _since_flags(block, found)
        end = missed_early if known is not None and known >= early else missed
        last = found[-1]
        # The branch of a loop is predicted to be taken: it costs more when it is not, so "taken" is negative.
        return [*found[:-1], Cost(last.cycles + end, last.taken - end, last.kind)]

    return costs


def _since_flags(block: Sequence[DecodedInstruction], found: Sequence[Cost]) -> Fraction | None:
    """Return the cycles from the branch back to the instruction that sets its flags; ``None`` without one."""
    since = Fraction(0)
    for instruction, cost in zip(reversed(block), reversed(found), strict=True):
        if "flags" in instruction.writes:
            return since
        since += cost.cycles
    return None


CORTEX_M7 = CoreTiming(
    core="cortex-m7",
    costs=with_missed_ends(
        block_costs(
            InOrderCore(delays=_DELAYS, together=_together, taken=taken, across_branches=_across_branches), _step
        ),
        _MISPREDICTED,
        _MISPREDICTED_EARLY,
        _EARLY_FLAGS,
    ),
    unaligned=Fraction(3),
    bus=8,
    error=12,
    preloads=True,
    sources=(
        "measurements with an STM32H743, https://github.com/jnk0le/random, pipeline cycle test, doc/cortex_m7.md",
        "scheduling model by Arm's engineers, llvm/lib/Target/ARM/ARMScheduleM7.td",
        "measurements with an STM32H730, https://www.quinapalus.com/cm7cycles.html",
        "branches to registers and forward branches: estimates",
    ),
)
