"""Costs of the Cortex-M55: one instruction per cycle in order, and vectors of MVE in two halves.

Sources, by their short names in comments:

- HEL: Arm Helium Technology, M-Profile Vector Extension for Arm Cortex-M Processors, Reference Book (Jon Marsh, 2020,
  https://github.com/arm-university/Arm-Helium-Technology), with cycles of loops in sections 3.2, 8.5 and 9.1.
- LLVM: the scheduling model that Arm's engineers wrote from the Software Optimization Guide (Arm 102692),
  llvm/lib/Target/ARM/ARMScheduleM55.td.
- SLO: https://github.com/slothy-optimizer/slothy, targets/arm_v81m/cortex_m55r1.py, in part by Arm.
- SOG: rows of the Software Optimization Guide that changes to SLO quote (pull requests 403, 414, 417, 461, 464).

MVE has four units: loads and stores, integer, multiplication and float, and control. A vector takes two cycles in its
unit, but an instruction can begin in each cycle, so that an instruction of another unit overlaps with its second half
(HEL, figure 3.2). Half of a result is enough to begin with the next instruction:

    cycle              0    1    2    3    4    5
    vldrb.s8 q0        LS   LS
    vldrb.s8 q1                  LS   LS
    vmladava r2,q0,q1                 MUL  MUL        4 cycles per iteration, the next vldrb begins in cycle 4

The end of a loop (LE, LETP) costs nothing once the core has stored its place, which takes one refill per loop; that is
charged to DLS and WLS. Not modelled: loads just after vector stores in the same bank of the memory, which can take up
to two cycles more (HEL 3.2, SLO), and MVE instructions at odd half words.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from mlfbuild.timing.cores.issue import InOrderCore, Step, block_costs, delays, refilled
from mlfbuild.timing.cores.operands import (
    BRANCHES,
    EXTENDS_AND_ADDS,
    MULTIPLIES,
    base_name,
    branch_step,
    inline_shift,
    loads,
    step_of,
    uses,
)
from mlfbuild.timing.costs import CoreTiming, DecodedInstruction, WorkKind
from mlfbuild.timing.listing import operand_parts

_DELAYS = delays("""
            any stored shifted scattered
    one     1   1      2       5
    two     2   2      3       6
    early   1   1      2       5
    late    2   1      3       6
    narrow  3   3      4       7
    across  4   4      5       8
    word    2   2      3       6
    vector  1   1      2       5
    gather  2   2      3       6
    chained 4   4      5       8
    long    16  16     17      20
    double  15  15     16      19
""")
"""Latencies of the core (``one``, ``two``, ``word``: SOG) and of MVE and the FPU (others: LLVM).

- ``early``, ``late``: results of the second and third stage; stores can take the latter a cycle earlier.
- ``narrow``: results of instructions that narrow elements (``vqmovn``, ``vshrn``), and of ``vmaxv`` of half words.
- ``across``: results of ``vmaxv`` and ``vminv`` of bytes.
- ``shifted``: a register that the instruction shifts is needed a cycle earlier (SOG; measured with an STM32N6,
  https://github.com/slothy-optimizer/slothy/issues/463).
- ``scattered``: vectors of addresses are needed four cycles earlier.
"""

_DIVIDE = 7
"""The middle of 2 to 12, as on the Cortex-M4: an estimate."""
_REFILL = Fraction(2)
"""A taken branch; another cycle if its flags are set in the same cycle. LLVM's MispredictPenalty is 3, with the branch.
The core does not predict branches."""
_LOOP_END = 3
"""The first execution of LE: as a taken branch."""
_JOINING = frozenset({"nop", "it", "b", "add", "sub", "mov", "uxtb", "uxth", "sxtb", "sxth"})
"""LLVM: of two instructions of 16 bits that are issued together, one is of these; ``add`` and ``sub`` only with
constants."""
_TWO_STAGES = re.compile(
    r"pkh(bt|tb)|q(add|sub)(8|16)?|qd(add|sub)|u?q(add|sub)(8|16)|u?q(asx|sax)|[su]h?(add|sub)(8|16)|[su]h?(asx|sax)"
    r"|[su]sat(16)?|usada?8|[su]q?r?sh[lr]l?|asrl|lsll|lsrl|uqrshll?|sqrshrl?"
)
_LOOP_STARTS = frozenset({"dls", "dlstp", "wls", "wlstp"})
_LOOP_ENDS = frozenset({"le", "letp"})

_CONTROL = re.compile(r"vpst\w*|vctp|vpnot|vmrs|vmsr")
_MULTIPLIER = re.compile(
    r"vr?ml[as]l?(da)?vh?a?x?|vml[as]s?|vmlas|v(q?r?d?mulh|mul)|vmull[bt]|vqdmull[bt]|vrmulh|vq?r?dmlad?hx?"
    r"|vq?r?dmls?d?hx?|vqr?dmlas?h|vqdmla?s?h|vadd(l?)va?|vcmp|vpt\w*|vfm[as]s?|vfmas|vc(mul|mla)|vcvt\w*|vrint\w*|v(max|min)nma?"
)
"""LLVM, M55UnitVecFPALU: multiplications, sums across vectors (``vmlav`` is ``vmladav`` in listings), comparisons; and
all arithmetic with floats."""
_LATE = re.compile(
    r"vml.*|vrml.*|v(q?r?d?mulh|mul)|vmull[bt]|vqdmull[bt]|vrmulh|vq.*ml.*|vaddl?va?|vfm.*|vc(mul|mla)|vcvt\w*|vrint\w*"
    r"|v[qr]shl|vqrshl|vqshlu|vrshr|vadc|vsbc|v(max|min)n?ma?va?"
)
_NARROWS = re.compile(r"vq?movu?n[bt]|vq?r?shru?n[bt]|vabav")
_FLOAT_LATENCY = {"vdiv": 16, "vsqrt": 16}
"""LLVM, M55WriteFloatE3Plus14; the unit does nothing else meanwhile (an estimate)."""


def _step(instruction: DecodedInstruction) -> Step:
    name = base_name(instruction)
    loop = loop_step(instruction, name)
    if loop is not None:
        return loop
    if name.startswith("v"):
        return mve_step(instruction, name)
    if instruction.transfers:
        return _transfer(instruction, name)
    if name in BRANCHES or "pc" in instruction.writes:
        return branch_step(instruction, _tags(instruction, name))
    return _integer_step(instruction, name)


def loop_step(instruction: DecodedInstruction, name: str) -> Step | None:
    """Return the step of the start or end of a loop, or of a branch with a table; ``None`` for others."""
    if name in _LOOP_ENDS:
        return Step(kind=WorkKind.BRANCH, cycles=0, branches=True, tags=frozenset({"loop end"}))
    if name in _LOOP_STARTS:
        return Step(
            kind=WorkKind.BRANCH, reads=tuple(uses(instruction, "any")), cycles=1 + _LOOP_END, branches=name[0] == "w"
        )
    if name in {"tbb", "tbh"}:
        return Step(kind=WorkKind.BRANCH, cycles=2, branches=True)
    return None


def mve_step(instruction: DecodedInstruction, name: str) -> Step:
    """Return the step of a vector or of a scalar of the FPU."""
    if is_vector(instruction, name):
        return _vector_step(instruction, name)
    return _float_step(instruction, name)


def is_vector(instruction: DecodedInstruction, name: str) -> bool:
    """Return whether an instruction whose name begins with ``v`` is of MVE, not of the FPU."""
    vectors = any(part.lstrip("{[").startswith("q") for part in operand_parts(instruction.operands))
    return vectors or _CONTROL.fullmatch(name) is not None or name.startswith("vpt")


def _integer_step(instruction: DecodedInstruction, name: str) -> Step:
    slow = MULTIPLIES.fullmatch(name) or EXTENDS_AND_ADDS.fullmatch(name) or _TWO_STAGES.fullmatch(name)
    shifted = {len(operand_parts(instruction.operands)) - 2: "shifted"} if inline_shift(instruction) else {}
    cycles = _DIVIDE if name in {"udiv", "sdiv"} else 1
    how, tags = "two" if slow else "one", _tags(instruction, name)
    return step_of(instruction, how, special=shifted, cycles=cycles, tags=tags)


def _transfer(instruction: DecodedInstruction, name: str) -> Step:
    """Return the step of a load or store of the core, which moves two words per cycle (SLO for pairs)."""
    return step_of(
        instruction, "word", "stored", address="any", base="one", cycles=-(-instruction.transfers // 2), lists=2,
        tags=_tags(instruction, name), branches="pc" in instruction.writes,
    )  # fmt: skip


def _float_step(instruction: DecodedInstruction, name: str) -> Step:
    """Return the step of a scalar of the FPU, which is that of MVE."""
    double = "f64" in instruction.mnemonic
    if instruction.transfers:
        cycles = -(-instruction.transfers // 2)
        return _in_unit(instruction, "memory", "late", cycles, address="any", base="one", cycles=cycles, lists=2)
    # Moves, comparisons and signs of a double need no arithmetic, and so no more time than those of a float.
    cycles = _FLOAT_LATENCY.get(name, 15 if double and name not in {"vmov", "vcmp", "vabs", "vneg"} else 1)
    how = "double" if cycles == 15 else "long" if cycles > 1 else "chained" if re.match(r"vn?ml", name) else "late"
    if name in {"vmov", "vcmp", "vcmpe", "vmrs", "vmsr"}:
        how = "early"
    return _in_unit(instruction, "multiplier", how, cycles)


def _vector_step(instruction: DecodedInstruction, name: str) -> Step:
    if instruction.transfers:
        return _vector_transfer(instruction, name)
    if _CONTROL.fullmatch(name):
        return _in_unit(instruction, "control", "early", 1)
    floats = ".f" in instruction.mnemonic
    operands = operand_parts(instruction.operands)
    late = _LATE.fullmatch(name) or (floats and name in {"vadd", "vsub"} and not operands[-1].startswith("q"))
    how = "narrow" if _NARROWS.fullmatch(name) else "late" if late else "early"
    if name == "vmov" and operands[-1].startswith("#"):
        return _in_unit(instruction, "multiplier", "late", 2)
    moves_to_core = name == "vmov" and operands[0].startswith("r")
    if _MULTIPLIER.fullmatch(name) or moves_to_core or (floats and name not in {"vmov", "vdup"}):
        return _in_unit(instruction, "multiplier", how, 2)
    if re.fullmatch(r"v(max|min)a?va?", name):
        how = {"8": "across", "16": "narrow"}.get(instruction.mnemonic.rpartition(".")[2][1:], "late")
    return _in_unit(instruction, "integer", how, 2)


def _in_unit(instruction: DecodedInstruction, unit: str, how: str, busy: int, use: str = "any", **more: Any) -> Step:
    """Return the step of an instruction that needs ``unit`` of MVE and keeps it for ``busy`` cycles."""
    return step_of(instruction, how, use, waits=frozenset({unit}), blocks={unit: busy}, **more)


_GATHERS = re.compile(r"\[(\w+, ?)?q\d")
_LANES = {"b": 16, "h": 8, "w": 4, "d": 2}


def _vector_transfer(instruction: DecodedInstruction, name: str) -> Step:
    """Return the step of a vector load or store: 8 bytes per cycle, two elements if their addresses are in a vector."""
    gathers = any(_GATHERS.match(part) for part in operand_parts(instruction.operands))
    cycles = 2
    if gathers:
        bits = re.search(r"\d+$", instruction.mnemonic)
        # The letter after ``vldr`` is the element in memory, the type that in the register: the wider one counts.
        lanes = min(_LANES.get(name[4:5], 4), 128 // int(bits[0]) if bits else 16)
        cycles = max(2, lanes // 2)
    how = ("gather" if gathers else "vector") if loads(name) else "one"
    address = "scattered" if gathers else "any"
    return _in_unit(instruction, "memory", how, cycles, "stored", address=address, base="one")


def _tags(instruction: DecodedInstruction, name: str) -> set[str]:
    joins = name in _JOINING and (name not in {"add", "sub"} or operand_parts(instruction.operands)[-1].startswith("#"))
    return ({"flags"} & instruction.writes) | {"joins"} if joins else {"flags"} & instruction.writes


def _together(first: Step, second: Step) -> Fraction | None:
    both = first.tags & second.tags
    return Fraction(0) if "narrow" in both and "joins" in first.tags | second.tags and first.cycles == 1 else None


def _taken(step: Step, partner: Step | None) -> Fraction:
    return Fraction(0) if "loop end" in step.tags else refilled(_REFILL, partner)


CORTEX_M55 = CoreTiming(
    core="cortex-m55",
    costs=block_costs(InOrderCore(delays=_DELAYS, together=_together, taken=_taken), _step),
    unaligned=Fraction(1),
    bus=8,
    error=30,
    sources=(
        "Arm Helium Technology, M-Profile Vector Extension for Arm Cortex-M Processors, sections 3.2, 8.5 and 9.1",
        "scheduling model from Arm's Software Optimization Guide (102692), llvm/lib/Target/ARM/ARMScheduleM55.td",
        "https://github.com/slothy-optimizer/slothy, targets/arm_v81m/cortex_m55r1.py",
        "branches and divisions: estimates",
    ),
)
