"""Costs of the Cortex-M85: seven stages, two instructions per cycle in order, and the vectors of the Cortex-M55.

No latency of code on an M85 that can be built here is public, so the stated error is an estimate. Sources, by their
short names in comments:

- JNK: measurements with an RA8D1, https://github.com/jnk0le/random, "pipeline cycle test", doc/cortex_m85.md. They
  correct and complete the Software Optimization Guide (Arm 107950).
- LLVM: the scheduling model that Arm's engineers wrote, llvm/lib/Target/ARM/ARMScheduleM85.td.

Most arithmetic runs in any of the stages EX1 to EX3, the first one that its operands are ready for, so that two
instructions of a pair may depend on each other:

    ldr r0, [r1]        address in EX1, word in EX2
    add.n r2, r0        in EX3 of the same cycle
    add.n r3, r2        in EX3 of the next one

Vectors take two cycles in units like those of the M55, one begins in each cycle, and one instruction of the core that
comes before it can be issued with it. None can be issued in the second cycle of a vector load or store (JNK). Not
modelled: a third instruction (NOP, IT, predicted branches), the bytes that are fetched per cycle, the store buffer, and
conflicts of banks between a load and a store.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from mlfbuild.timing.cores.issue import InOrderCore, Step, block_costs, delays, tagged
from mlfbuild.timing.cores.m7 import banks, direction, place_of, taken, with_missed_ends
from mlfbuild.timing.cores.m55 import is_vector, loop_step, mve_step
from mlfbuild.timing.cores.operands import (
    BRANCHES,
    EXTENDS_AND_ADDS,
    MANY,
    MULTIPLIES,
    base_name,
    branch_step,
    inline_shift,
    loads,
    step_of,
    summed,
)
from mlfbuild.timing.costs import CoreTiming, DecodedInstruction
from mlfbuild.timing.listing import operand_parts

_DELAYS = delays("""
            ex1 ex2 ex3 sum any stored added scattered
    ex1     1   0   0   0   1   1      0     1
    ex2     2   1   0   0   2   1      0     1
    ex3     3   2   1   1   3   1      1     1
    word    2   1   0   1   2   1      1     1
    moved   5   4   3   3   5   3      2     3
    early   1   1   1   1   1   1      1     3
    vector  1   1   1   1   1   1      1     4
    gather  1   1   1   1   1   1      1     4
    late    2   2   2   2   2   1      2     4
    narrow  2   2   2   2   2   1      2     4
    product 3   3   3   3   3   2      3     5
    fused   4   4   4   4   4   3      2     6
    chained 5   5   5   5   5   4      2     7
    long    14  14  14  14  14  13     14    16
    double  5   5   5   5   5   4      5     7
""")
"""Latencies: JNK for registers of the core and addresses in vectors, LLVM for vectors and floats.

- ``ex1``, ``ex2``, ``ex3``: the stage that makes or uses a value; the next stage can use it in the same cycle.
- ``word``, ``sum``: EX2, and EX3 for sums of products and vectors, which cannot use a loaded word in the same cycle.
- ``moved``: from a vector to the core, as sums across vectors are (LLVM: 4, and 2 for the next sum: ``added``).
- Others are those of the Cortex-M55.
"""

_DIVIDE = 7
"""LLVM, WriteDIV: the core stalls. The real time depends on the operands."""
_MISSED, _MISSED_EARLY, _EARLY_FLAGS = Fraction(6), Fraction(4), 2
"""The end of a loop. JNK: 5 to 7 cycles, and 3 or 4 if the flags are set early enough; LLVM: 7 and 4."""

_SHIFTS = re.compile(r"lsl|lsr|asr|ror|[su]bfx|rev(16|sh)?|rbit")
_BITWISE = frozenset({"and", "orr", "eor", "bic", "orn", "mvn", "tst", "teq"})
_SLOT_0 = re.compile(r"[su]xt(b|h|b16)|clz|sel|bf[ci]|pkh(bt|tb)|[su]h?(add|sub)(8|16)|[su]h?(asx|sax)")
"""LLVM, M85UnitSlot0, and vectors and arithmetic with floats: one of them per cycle."""
_SATURATES = re.compile(r"[su]sat(16)?|u?q(add|sub)(8|16)?|u?q(asx|sax)|qd(add|sub)|usada?8")
_LATE = re.compile(r"cs(el|inc|inv|neg|et|etm)|cinc|cinv|cneg|[su]q?r?sh[lr]l?|asrl|lsll|lsrl|uqrshll?|sqrshrl?")
"""LLVM, M85UnitLShift: in EX3, one per cycle."""
_ALONE = re.compile(
    r"mrs|msr|dmb|dsb|isb|svc|bkpt|cps\w*|\w*ex[bh]?|lda\w*|stl\w*|clrex|clrm|wf[ei]|sev|udf|v(mrs|msr)"
)

_SUMS = re.compile(r"v(r?ml|fn?m|qr?dml|n?ml|cml|addl?v|abav)\w*")
_FLOATS = ((re.compile(r"vn?ml[as]"), "chained"), (re.compile(r"vfn?m[as]s?|vcmla"), "fused"),
           (re.compile(r"vn?mul|vcmul"), "product"), (re.compile(r"vadd|vsub|vcadd|vabd"), "late"))  # fmt: skip
_DOUBLE_CYCLES = {"vadd": 6, "vsub": 6, "vmul": 8, "vnmul": 8, "vdiv": 29, "vsqrt": 29}
"""LLVM; multiply-accumulates take 14."""
_IN_VECTOR_UNIT = re.compile(r"s\d+")
"""Registers of MVE and the FPU, as ``pieces`` names them."""


def _step(instruction: DecodedInstruction) -> Step:
    name = base_name(instruction)
    loop = loop_step(instruction, name)
    if loop is not None:
        return loop
    if name.startswith("v"):
        return _beside_core(instruction, name)
    step = _core_step(instruction, name)
    return replace(step, waits=frozenset({"core"}))


def _core_step(instruction: DecodedInstruction, name: str) -> Step:
    if instruction.transfers:
        return _transfer(instruction, name)
    if name in BRANCHES or "pc" in instruction.writes:
        return branch_step(instruction, {"branch", direction(instruction)})
    if MULTIPLIES.fullmatch(name):
        return step_of(instruction, "ex3", "ex2", special=summed(instruction), tags={"product"})
    if name in {"udiv", "sdiv"}:
        return step_of(instruction, "ex2", "ex1", cycles=_DIVIDE, tags={"alone"})
    if _ALONE.fullmatch(name):
        return step_of(instruction, "ex3", "ex1", tags={"alone"})
    if _LATE.fullmatch(name):
        return step_of(instruction, "ex3", "ex3", tags={"late"})
    if _SATURATES.fullmatch(name):
        return step_of(instruction, "ex3", "ex1" if "sat" in name else "ex2", tags={"slot 0"})
    if EXTENDS_AND_ADDS.fullmatch(name):
        return step_of(instruction, "ex2", "ex2", special={2: "ex1"}, tags={"slot 0"})
    if _SLOT_0.fullmatch(name):
        return step_of(instruction, "ex2", "ex2", tags={"slot 0"})
    return _flexible(instruction, name)


def _flexible(instruction: DecodedInstruction, name: str) -> Step:
    """Return the step of arithmetic that runs in the first stage that its operands are ready for (JNK)."""
    tags = {"either slot"}
    if _SHIFTS.fullmatch(name):
        return step_of(instruction, "ex2", "ex2", tags=tags, stages=(("ex1", "ex1"),))
    parts = operand_parts(instruction.operands)
    shifted = len(parts) - (2 if inline_shift(instruction) else 1)
    if instruction.size == 4 and shifted > 0 and not parts[shifted].startswith("#"):
        # The last operand passes a shifter in the stage before, also if it is not shifted.
        special = {shifted: "ex2"}
        return step_of(instruction, "ex3", "ex3", special=special, tags=tags, stages=(("ex1", "ex2"),))
    stages = (("ex2", "ex2"),) if name in _BITWISE else (("ex1", "ex1"), ("ex2", "ex2"))
    return step_of(instruction, "ex3", "ex3", tags=tags, stages=stages)


def _transfer(instruction: DecodedInstruction, name: str) -> Step:
    """Return the step of a load or store of the core, two of which are issued together; lists are issued alone."""
    many = MANY.fullmatch(name) is not None or _ALONE.fullmatch(name) is not None
    loaded, branches = loads(name), "pc" in instruction.writes
    tags = {"load" if loaded else "store", *(("alone",) if many else ()), *(("return",) if branches else ())}
    return step_of(
        instruction, "word" if many or name in {"ldr", "ldrd", "ldrt"} else "ex3", "ex3", address="ex1", base="ex1",
        cycles=-(-instruction.transfers // 2), lists=2, tags=tags | ({"wide"} if instruction.transfers > 1 else set()),
        branches=branches, place=place_of(instruction) if loaded and not many else None,
    )  # fmt: skip


def _beside_core(instruction: DecodedInstruction, name: str) -> Step:
    """Return the step of a vector or a float: that of the Cortex-M55 with the latencies and pairs of this core."""
    step, vector = mve_step(instruction, name), is_vector(instruction, name)
    floats = ".f" in instruction.mnemonic
    slower = next((how for names, how in _FLOATS if names.fullmatch(name)), "") if floats else ""
    moved = "ex1" if instruction.transfers else "moved" if vector else "ex3"
    written = {register for register, _ in step.writes} if _SUMS.fullmatch(name) else set()
    of_core = "ex1" if instruction.transfers else "sum"
    step = replace(
        step,
        reads=[
            (r, "added" if r in written else use if _IN_VECTOR_UNIT.fullmatch(r) else of_core) for r, use in step.reads
        ],
        writes=[(r, slower or how if _IN_VECTOR_UNIT.fullmatch(r) else moved) for r, how in step.writes],
    )
    return _paired(step, instruction, name) if vector else _scalar(step, instruction, name)


def _paired(step: Step, instruction: DecodedInstruction, name: str) -> Step:
    """Return the step of a vector with what it keeps busy; addresses in vectors stop all other instructions (JNK)."""
    if not instruction.transfers:
        return replace(step, tags=tagged(instruction, {"vector", "slot 0"}))
    tags = {"vector", "wide", "load" if loads(name) else "store"}
    if any(use == "scattered" for _, use in step.reads):
        return replace(step, cycles=step.blocks["memory"], tags=tagged(instruction, {*tags, "alone"}))
    return replace(step, blocks={**step.blocks, "core": step.blocks["memory"]}, tags=tagged(instruction, tags))


def _scalar(step: Step, instruction: DecodedInstruction, name: str) -> Step:
    if instruction.transfers:
        kind = "load" if loads(name) else "store"
        tags = {kind, *(("alone",) if MANY.fullmatch(name) else ("wide",) if instruction.transfers > 1 else ())}
        # Two words of the FPU can be moved in a cycle, but none beside a vector.
        return replace(step, waits=step.waits | {"core"}, blocks={}, tags=tagged(instruction, tags))
    if "f64" not in instruction.mnemonic or name in {"vmov", "vcmp", "vcmpe", "vabs", "vneg"}:
        tags = {"slot 0", *(("alone",) if _ALONE.fullmatch(name) else ())}
        return replace(step, tags=tagged(instruction, tags))
    return replace(step, cycles=_DOUBLE_CYCLES.get(name, 14), tags=tagged(instruction, {"alone"}))


_ONE_PER_CYCLE = frozenset({"slot 0", "product", "late", "branch"})


def _together(first: Step, second: Step) -> Fraction | None:
    """Return the mean cost of issuing two steps in one cycle; ``None`` if the core never does."""
    tags, both = first.tags | second.tags, first.tags & second.tags
    transfers = both & {"load", "store"}
    if "alone" in tags or "vector" in first.tags or both & _ONE_PER_CYCLE or (transfers and "wide" in tags):
        return None
    return banks(first, second) if "load" in both else Fraction(0)


CORTEX_M85 = CoreTiming(
    core="cortex-m85",
    costs=with_missed_ends(
        block_costs(InOrderCore(delays=_DELAYS, together=_together, taken=taken), _step),
        _MISSED, _MISSED_EARLY, _EARLY_FLAGS,
    ),
    unaligned=Fraction(1),
    bus=8,
    error=40,
    sources=(
        "measurements with an RA8D1, https://github.com/jnk0le/random, pipeline cycle test, doc/cortex_m85.md",
        "scheduling model by Arm's engineers, llvm/lib/Target/ARM/ARMScheduleM85.td",
        "branches to registers and forward branches: the estimates of the Cortex-M7",
        "stated error: an estimate, more than that of the Cortex-M55",
    ),
)  # fmt: skip
