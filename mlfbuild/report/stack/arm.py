"""Effects of instructions of 32-bit Arm cores, Thumb and Arm, in GNU objdump's unified syntax.

An instruction without a rule changes the registers that it names outside of brackets; stores and compares change none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mlfbuild.report.stack import steps
from mlfbuild.report.stack.steps import SP, Entries, StackCall, StackStep, State, Value, Words
from mlfbuild.timing import REGISTER_ALIASES, Instruction, listed_registers, operand_parts

# Only what can change the stack pointer, or a register that it is computed from, has a rule; a missed instruction makes
# registers unknown, never a stack too small.
_RULES = re.compile(
    r"(b|bl|bx|blx|cbn?z|tb[bh]|le(?:tp)?|wls(?:tp)?|udf|push|pop|vpush|vpop|stm(?:db|fd)|vstmdb|ldm(?:ia|fd|db)?|vldmia"
    r"|addw?|subw?|movw|movt|mov|mvn|bic|bfc|lsl|neg|rsb|ldr)(ns)?(s)?"
    r"(eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)?(?:\.[nw]|\.\d+)?"
)
# Stores, compares, hints and barriers, which write none of the registers that they name. Matched as prefixes, so that
# `strb`, `strd` and `vstr` need no entries. STREX and STLEX write their status to the first operand.
_ONLY_READ = re.compile(
    r"(?!st[rl]ex)(v?st|v?cmp|cm[np]|tst|teq|nop|it|dmb|dsb|isb|cps|pl[di]|wf[ie]|sev|vps?t|vmsr|msr)"
)
_EXCEPTION = re.compile(r"svc|bkpt|hlt")
_REGISTER = re.compile(r"r\d+|sp|lr|pc|ip|fp|sl|sb")
_NUMBER = re.compile(r"#(-?\d+)")
_BASE = re.compile(r"\[(\w+)(?:, #(-?\d+))?")
_ADDRESS = re.compile(r"([0-9a-f]+)(?: <|$)")
_LITERAL = re.compile(r"\(([0-9a-f]+)")
# AAPCS (IHI 0042), 6.1.1: a called function need not preserve these.
_LOST_BY_CALLS = ("r0", "r1", "r2", "r3", "r12", "lr")
_CASES = re.compile(r"<__gnu_thumb1_case_(?:([us])([qh])i|si)>")
"""Functions of libgcc that jump through a table of bytes, half words or words after the call."""


def decode(instruction: Instruction, state: State, words: Words) -> StackStep:
    """Return the effect of an instruction (``Decoder``).

    ``words`` reads the constants of literal pools. MSR to a stack pointer, and an instruction that objdump marks as
    undefined, make the stack pointer unknown; ``function`` then reports the address instead of a size.
    """
    operands = operand_parts(instruction.operands)
    rule = _RULES.fullmatch(instruction.mnemonic)
    # MSR MSP and MSR PSP replace the stack pointer by an address in another stack, whose depth has no meaning here.
    if _switches_stacks(instruction) or "UNDEFINED" in f"{instruction.operands}{instruction.comment}":
        step = StackStep(steps.without(state, [SP]))
    elif rule is None:
        step = StackStep(_others(instruction.mnemonic, operands, state))
    else:
        step = _control(rule[1], instruction, operands, state, words) or StackStep(
            _data(rule[1], instruction, operands, state, words)
        )
    # In an IT block: it may not be executed, and then the next one is.
    if rule is not None and rule[4]:
        step = replace(step, state=steps.joined(step.state, state), falls=True)
    return step


def _switches_stacks(instruction: Instruction) -> bool:
    register = instruction.operands.upper().partition(",")[0]
    # The suffix names the Non-secure copy of the register in Armv8-M with the Security Extension.
    return instruction.mnemonic.startswith("msr") and register.removesuffix("_NS") in {"MSP", "PSP"}


# Control -------------------------------------------------------------------------------------------------------------


def _control(
    name: str, instruction: Instruction, operands: Sequence[str], state: State, words: Words
) -> StackStep | None:
    """Return the effect of a branch, call or return; ``None`` for other instructions."""
    if name in {"bl", "blx"}:
        return _call(instruction, operands[-1], state)
    if name == "b":
        return StackStep(state, falls=False, jumps=tuple(_target(operands[-1])))
    # CBZ and CBNZ jump or fall through. LE and WLS (Armv8.1-M) keep the loop counter in lr, so a later `bx lr` could
    # otherwise be followed to a stale value.
    if name.startswith(("cb", "le", "wls")):
        return StackStep(steps.without(state, ["lr"]), jumps=tuple(_target(operands[-1])))
    # GCC emits UDF for __builtin_trap: nothing after it runs.
    if name == "udf":
        return StackStep(state, falls=False)
    if name in {"tbb", "tbh"}:
        return StackStep(
            state, falls=False, through_table=True, entries=Entries(2 if name == "tbh" else 1, signed=False)
        )
    if name == "bx":
        return _goes_to(operands[0], instruction, state)
    # A return: the depth after it belongs to the caller.
    if name.startswith(("pop", "ldm")) and "pc" in operands[-1]:
        return StackStep(state, falls=False)
    if operands[:1] == ["pc"]:
        return _sets_pc(name, instruction, operands, state, words)
    return None


def _call(instruction: Instruction, operand: str, state: State) -> StackStep:
    register = _register(operand)
    # Code for far functions (-mlong-calls) loads an address and calls it with BLX, which is a direct call again as
    # soon as the value is known.
    value = state.get(register) if register else next(_target(operand), None)
    call = StackCall(instruction.address, value & ~1 if isinstance(value, int) else None)
    step = StackStep(steps.without(state, _LOST_BY_CALLS), calls=(call,))
    # Functions of libgcc for Thumb-1, which has no TBB: they do not return, but jump through the table behind the BL.
    cases = _CASES.search(operand)
    if cases is None:
        return step
    # Tables of words (`_si`) have no format here, so they count as tables of unknown content.
    entries = Entries(1 if cases[2] == "q" else 2, signed=cases[1] == "s") if cases[1] else None
    return replace(step, falls=False, through_table=True, entries=entries)


def _goes_to(operand: str, instruction: Instruction, state: State) -> StackStep:
    """Return the effect of a jump to the address in a register; a jump to ``lr`` is a return."""
    register = _register(operand)
    if register == "pc":  # changes from Thumb to Arm
        return StackStep(state, falls=False, jumps=((instruction.address + 4) & ~3,))
    value = state.get(register)
    if isinstance(value, int):
        return StackStep(state, falls=False, jumps=(value & ~1,))
    return StackStep(state, falls=False, through_register=register != "lr")


def _sets_pc(name: str, instruction: Instruction, operands: Sequence[str], state: State, words: Words) -> StackStep:
    if name == "mov":
        return _goes_to(operands[1], instruction, state)
    # Veneers that the linker inserts for far targets: `ldr pc, [pc, #-4]`, followed by the address.
    if name == "ldr" and operands[1].startswith("[pc"):
        target = _literal(instruction, words)
        return StackStep(
            state, falls=False, jumps=() if target is None else (target & ~1,), through_table=target is None
        )
    if name == "ldr" and len(operands) == 3 and operands[1] == "[sp]":  # as pop {pc}
        return StackStep(state, falls=False)
    # From the stack: inline assembly pushed a label. `ldr pc, [r3]` without a scaled index calls a function.
    table = name != "ldr" or operands[1].startswith("[sp") or "lsl" in operands[1]
    return StackStep(state, falls=False, through_table=table, through_register=not table)


def _target(operand: str) -> Iterator[int]:
    found = _ADDRESS.match(operand)
    if found is not None:
        yield int(found[1], 16)


# Data ----------------------------------------------------------------------------------------------------------------


def _data(name: str, instruction: Instruction, operands: Sequence[str], state: State, words: Words) -> State:
    if name in {"push", "vpush", "pop", "vpop"}:
        # PUSH and POP name no base register: they are STMDB sp! and LDMIA sp!.
        return _moves_many(name, ["sp!", *operands], state)
    if name.startswith(("stm", "vstm", "ldm", "vldm")):
        return _moves_many(name, operands, state)
    register = _register(operands[0])
    if name == "ldr":
        # The write-back also happens if the loaded value is unknown.
        loaded = _literal(instruction, words) if operands[1].startswith("[pc") else None
        return steps.changed(_written_back(operands, state), register, loaded)
    return steps.changed(state, register, _result(name, operands, state))


def _moves_many(name: str, operands: Sequence[str], state: State) -> State:
    """Return the state after a push, pop or similar, of registers of the core or its FPU."""
    # The FPU's d registers have 8 bytes; its s registers and those of the core have 4.
    size = sum(8 if register.startswith("d") else 4 for register in listed_registers(operands[-1]))
    # LDMDB loads from below its base, as epilogues with a frame pointer do. What it loads is unknown.
    if name == "ldmdb":
        return steps.without(state, [*listed_registers(operands[-1]), _register(operands[0].removesuffix("!"))])
    down = "push" in name or "stm" in name
    if not down:
        state = steps.without(state, listed_registers(operands[-1]))
    base = operands[0]
    # Without write-back the base keeps its value.
    if not base.endswith("!"):
        return state
    register = _register(base.removesuffix("!"))
    return steps.changed(state, register, steps.added(state.get(register), -size if down else size))


def _result(name: str, operands: Sequence[str], state: State) -> Value | None:
    """Return the result of an arithmetic instruction, as far as it is known."""
    values = [_value(operand, state) for operand in operands]
    if len(operands) > 3:  # a shifted register
        return None
    one, other = (values[-2], values[-1]) if len(operands) > 1 else (None, None)
    if name == "movt":
        # MOVW and MOVT build a constant in two halves; MOVT keeps the lower one.
        return (one & 0xFFFF) | other << 16 if isinstance(one, int) and isinstance(other, int) else None
    if name.startswith("mov"):
        return other if len(operands) == 2 else None
    if name.startswith("add"):
        return steps.added(one, other)
    if name.startswith("sub"):
        return steps.subtracted(one, other)
    if name == "mvn":
        return steps.subtracted(0xFFFFFFFF, other)
    if name in {"neg", "rsb"}:
        # NEG is the older name of RSB with #0; with another minuend the result stays unknown.
        return steps.subtracted(0, one if name == "rsb" else other) if other == 0 or name == "neg" else None
    if name == "lsl":
        return steps.shifted(one, other)
    if name == "bic":
        return steps.aligned(one, other) if isinstance(other, int) else None
    start, count = one, other  # bfc: of the register itself
    # Only BFC from bit 0 aligns a value; with another start it clears bits in the middle.
    whole = start == 0 and isinstance(count, int)
    return steps.aligned(values[0], (1 << count) - 1) if whole and isinstance(count, int) else None


def _value(operand: str, state: State) -> Value | None:
    number = _NUMBER.fullmatch(operand)
    return int(number[1]) & 0xFFFFFFFF if number else state.get(_register(operand))


def _literal(instruction: Instruction, words: Words) -> int | None:
    found = _LITERAL.search(instruction.comment)
    return words(int(found[1], 16)) if found else None


def _others(mnemonic: str, operands: Sequence[str], state: State) -> State:
    """Return the state after an instruction without a rule."""
    # Write-back first: the base changes even if the instruction itself only stores.
    state = _written_back(operands, state)
    if _ONLY_READ.match(mnemonic):
        return state
    # A handler may return values in the registers that the core stacks at entry, as semihosting does in r0.
    if _EXCEPTION.match(mnemonic):
        return steps.without(state, _LOST_BY_CALLS)
    # Source registers are included: to forget a value that was only read costs precision, but is never wrong.
    named = [register for operand in operands if (register := _register(operand))]
    for operand in operands:
        if operand.startswith("{"):
            named += listed_registers(operand)
    # sp as a later operand is only read: add r0, sp, #8.
    return steps.without(state, [register for at, register in enumerate(named) if register != SP or at == 0])


def _written_back(operands: Sequence[str], state: State) -> State:
    """Return the state after an access that changes its base register: ``[sp, #-8]!``, ``[sp], #8``, ``r3!``."""
    for at, operand in enumerate(operands):
        base = _BASE.match(operand)
        if base is not None and operand.endswith("!"):
            # A register as the offset, `[r0, r1]!`, moves the base by an unknown amount.
            by = int(base[2]) if base[2] and operand == f"[{base[1]}, #{base[2]}]!" else None
            return _moved(state, _register(base[1]), by)
        # Post-indexed: the offset is the next operand.
        if base is not None and operand.endswith("]") and at + 1 < len(operands):
            number = _NUMBER.fullmatch(operands[at + 1])
            return _moved(state, _register(base[1]), int(number[1]) if number else None)
        # LDM and STM of other registers. The number of bytes is not computed, because their base is not the stack
        # pointer.
        if operand.endswith("!"):
            return steps.without(state, [_register(operand.removesuffix("!"))])
    return state


def _moved(state: State, register: str, by: int | None) -> State:
    return steps.changed(state, register, None if by is None else steps.added(state.get(register), by))


def _register(operand: str) -> str:
    """Return the canonical name of a core register; empty for other operands."""
    return REGISTER_ALIASES.get(operand, operand) if _REGISTER.fullmatch(operand) else ""
