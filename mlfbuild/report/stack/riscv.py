"""Effects of instructions of 32-bit RISC-V in GNU objdump's syntax, with aliases: ``add sp,sp,-16``, ``j``, ``ret``.

An instruction without a rule changes its first register; stores and branches change none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlfbuild.report.stack import steps
from mlfbuild.report.stack.steps import SP, StackCall, StackStep, State, Value, Words
from mlfbuild.timing import Instruction

_ADDRESS = re.compile(r"([0-9a-f]+)(?: <|$)")
_NUMBER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)")
# Instructions without a destination register.
_STORES = frozenset({"sb", "sh", "sw", "sd", "fsw", "fsd", "fence", "fence.i", "ebreak", "nop", "wfi"})
_BRANCH = re.compile(r"b(eq|ne|lt|ge|gt|le)u?z?")
_STOPS = frozenset({"unimp", "mret", "sret", "ret"})
# RISC-V calling convention (psABI): ra, t0 to t6 and a0 to a7 are not preserved.
_LOST_BY_CALLS = ("ra", *(f"t{number}" for number in range(7)), *(f"a{number}" for number in range(8)))


def decode(instruction: Instruction, state: State, words: Words) -> StackStep:  # noqa: ARG001  # one type for all processors
    """Return the effect of an instruction (``Decoder``)."""
    # Compressed instructions have the operands of the full ones, so the prefix makes no difference.
    name = instruction.mnemonic.removeprefix("c.")
    operands = [text.strip() for text in instruction.operands.split(",")]
    if name in _STOPS:
        return StackStep(state, falls=False)
    if _BRANCH.fullmatch(name):
        return StackStep(state, jumps=_target(operands[-1]))
    if name == "j":
        return StackStep(state, falls=False, jumps=_target(operands[-1]))
    if name in {"jal", "jalr", "jr"}:
        return _jump(name, instruction, operands, state)
    if name.startswith(("cm.", ".")):  # Zcmp pushes and pops; instructions that objdump does not know
        return StackStep(steps.without(state, [SP]))
    if name in _STORES:
        return StackStep(state)
    return StackStep(steps.changed(state, operands[0], _result(name, operands, state)))


def _jump(name: str, instruction: Instruction, operands: Sequence[str], state: State) -> StackStep:
    """Return the effect of ``jal`` and ``jalr``: a call if they store the return address in ``ra``."""
    # `jal label` and `jalr rs` are short for a link to ra (pseudoinstructions of the RISC-V manual).
    link = "zero" if name == "jr" else operands[0] if len(operands) > 1 else "ra"
    where = instruction.address
    if name == "jal":
        target = next(iter(_target(operands[-1])), None)
    else:
        # After AUIPC objdump adds the target: jalr 24(ra) # 8000123c <run>
        found = _ADDRESS.match(instruction.comment)
        register = operands[-1].partition("(")[2].rstrip(")") or operands[-1]
        # With an offset, the target is a sum that only objdump's comment has.
        value = state.get(register)
        target = int(found[1], 16) if found else value if isinstance(value, int) and "(" not in operands[-1] else None
        # `jr ra` returns, unless AUIPC has just put an address into ra: that is a far tail call.
        if link == "zero" and register == "ra" and target is None:
            return StackStep(state, falls=False)
    if link == "ra":
        return StackStep(steps.without(state, _LOST_BY_CALLS), calls=(StackCall(where, target),))
    if link != "zero":  # t0: functions of libgcc that save registers for others (-msave-restore)
        return StackStep(steps.without(state, [SP]))
    return StackStep(state, falls=False, jumps=() if target is None else (target,), through_register=target is None)


def _target(operand: str) -> tuple[int, ...]:
    found = _ADDRESS.match(operand)
    return (int(found[1], 16),) if found else ()


def _result(name: str, operands: Sequence[str], state: State) -> Value | None:
    """Return the result of an arithmetic instruction, as far as it is known."""
    values = [_value(operand, state) for operand in operands]
    if name in {"li", "mv"}:
        return values[1]
    if name == "lui":
        return values[1] << 12 & 0xFFFFFFFF if isinstance(values[1], int) else None
    if name in {"add", "addi"}:
        return steps.added(values[1], values[2])
    if name == "sub":
        return steps.subtracted(values[1], values[2])
    if name == "neg":
        return steps.subtracted(0, values[1])
    if name in {"and", "andi"}:
        # ANDI with a negative mask aligns downwards: -16 clears the low four bits.
        return steps.aligned(values[1], ~values[2] & 0xFFFFFFFF) if isinstance(values[2], int) else None
    return None


def _value(operand: str, state: State) -> Value | None:
    if operand == "zero":
        return 0
    return int(operand, 0) & 0xFFFFFFFF if _NUMBER.fullmatch(operand) else state.get(operand)
