"""Decode the instructions of a listing of Arm's Thumb code: their registers, transfers and targets.

The registers follow from the position of operands: the first one is written and the others are read, and the tables
below have the instructions for which that is wrong. Names are those of Arm's manuals for unified syntax.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from mlfbuild.timing.costs import DecodedInstruction
from mlfbuild.timing.listing import Instruction, listed_registers, operand_parts, registers_in

FLAGS = "flags"
"""The condition flags, with those of DSP instructions (GE)."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CONDITIONS = _words("eq ne cs hs cc lo mi pl vs vc hi ls ge lt gt le al")
_INTEGER = _words(
    """adc add addw adr and asr asrl b bfc bfi bic bkpt bl blx blxns bx bxns cbnz cbz cinc cinv clrex clrm clz cmn cmp
    cneg cpsid cpsie csel cset csetm csinc csinv csneg dls dlstp dmb dsb eor isb lctp ldm ldmdb ldmia ldr ldrb ldrbt
    ldrd ldrex ldrexb ldrexh ldrh ldrht ldrsb ldrsbt ldrsh ldrsht ldrt le letp lsl lsll lsr lsrl mla mls mov movt movw
    mrs msr mul mvn neg nop orn orr pkhbt pkhtb pld pli pop push qadd qadd16 qadd8 qasx qdadd qdsub qsax qsub qsub16
    qsub8 rbit rev rev16 revsh ror rrx rsb sadd16 sadd8 sasx sbc sbfx sdiv sel sev shadd16 shadd8 shasx shsax shsub16
    shsub8 smlabb smlabt smlad smladx smlal smlalbb smlalbt smlald smlaldx smlaltb smlaltt smlatb smlatt smlawb smlawt
    smlsd smlsdx smlsld smlsldx smmla smmlar smmls smmlsr smmul smmulr smuad smuadx smulbb smulbt smull smultb smultt
    smulwb smulwt smusd smusdx sqrshr sqrshrl sqshl sqshll srshr srshrl ssat ssat16 ssax ssub16 ssub8 stm stmdb stmia
    str strb strbt strd strex strexb strexh strh strht strt sub subw svc sxtab sxtab16 sxtah sxtb sxtb16 sxth tbb tbh
    teq tst uadd16 uadd8 uasx ubfx udf udiv uhadd16 uhadd8 uhasx uhsax uhsub16 uhsub8 umaal umlal umull uqadd16 uqadd8
    uqasx uqrshl uqrshll uqsax uqshl uqshll uqsub16 uqsub8 urshr urshrl usad8 usada8 usat usat16 usax usub16 usub8
    uxtab uxtab16 uxtah uxtb uxtb16 uxth wfe wfi wls wlstp yield"""
)
"""Mnemonics of the core. Those of its FPU and of MVE begin with ``v`` and end before a condition or predicate."""
# Only these may end with an `s` that sets flags; that of `mls` or `vmls` belongs to the name.
_SETS_FLAGS = _words("adc add and asr bic eor lsl lsr mov mul mvn neg orr orn ror rrx rsb sbc sub")
_COMPARES = frozenset({"cmp", "cmn", "tst", "teq"})
_GREATER_OR_EQUAL = re.compile(r"[su](add|sub)(8|16)|[su](asx|sax)")
"""Instructions that write the flags GE, which ``sel`` reads."""
_NO_RESULT = _COMPARES | _words("pld pli msr tbb tbh bx bxns cbz cbnz b svc nop udf bkpt it cpsie cpsid dmb dsb isb")
_TWO_RESULTS = re.compile(
    r"ldrd|[us]mull|[us]mlal\w*|umaal|smlsldx?|lsll|lsrl|asrl|\w+shll|\w+shrl|uqrshll|sqrshrl"
    r"|vr?ml[as]ldavh?\w*|vr?mlalvh?a?|vaddlva?"
)
_READS_RESULT = re.compile(
    r"movt|bfi|bfc|[us]mlal\w*|umaal|smlsldx?|lsll|lsrl|asrl|\w+shll|\w+shrl|s?q?r?sh[lr]|[su]q?r?sh[lr]|uqrshl|sqrshr"
    r"|vf?n?ml[as](l[tb])?|vfn?m[as]|vmla|vmlas|vfmas|vr?ml[as]\w*avh?ax?|vmlava|vr?mlalvh?a|vaddl?va"
    r"|vabav|vsri|vsli|vmovn[tb]|vqmovu?n[tb]|v\w*shru?n[tb]|vq?r?dmladhx?|vq?r?dmlsdhx?|vqr?dmlas?h|vcmlaq?|letp|le|vcadd"
    r"|vins|vpnot|vmaxn?ma|vminn?ma|v(max|min)(nm)?a?v"
)
"""Accumulating and inserting instructions: the result is also an operand."""
# The short form of the assembler language: `adds r0, r1` is `adds r0, r0, r1`.
_SHORT = _words("adc add and asr bic eor lsl lsr mul orr orn ror sbc sub rsb qadd qsub sdiv udiv")
"""With two operands, the first one is the result and an operand."""
_TARGET = re.compile(r"([0-9a-f]+)(?: <|$)")
_BRANCHES = frozenset({"b", "bl", "cbz", "cbnz", "le", "letp", "wls", "wlstp"})
_WIDE = re.compile(r"\.(w|n)$")
# `vcls` would otherwise be `vc` with the condition `ls`, and `vmovlt` a `vmovl` in a VPT block.
_OWN_SUFFIX = re.compile(
    r"vp[st]*t[te]*|vj?cvt[a-z]?|vmov[ln]t|vqmovu?nt|vq?r?shru?nt|vshllt|vq?d?mullt|vpnot|vcmpe|vmls|vnmls|vcls"
)
"""Names of the FPU and MVE that end as a condition or predicate does."""


_Shape = tuple[str, str, str, frozenset[str], frozenset[str], int, int | None]
"""The fields of a decoded instruction behind its address and size."""


def decoded(instruction: Instruction, size: int) -> DecodedInstruction:
    """Return the registers and the target of ``instruction``, which takes ``size`` bytes.

    ``target`` is ``None`` for all but direct branches. Unknown mnemonics do not fail: the rule of the module is used.
    """
    return DecodedInstruction(instruction.address, size, *_shape(instruction.mnemonic, instruction.operands))


def address_registers(instruction: DecodedInstruction) -> frozenset[str]:
    """Return the registers that a load or store computes its address from.

    For ``push`` and ``pop`` that is ``sp``, which objdump does not print.
    """
    return _address(instruction.mnemonic, instruction.operands)


def updates_base(instruction: DecodedInstruction) -> bool:
    """Return whether a load or store with one address writes that back.

    Both forms count: before the access (``[r0, #4]!``) and after it (``[r0], #4``). Lists and ``push`` do not.
    """
    return bool(_written_back(operand_parts(instruction.operands)))


# Code repeats itself: a large image has some thousand different texts of instructions.
@functools.lru_cache(maxsize=1 << 16)
def _address(name: str, operands: str) -> frozenset[str]:
    if name in {"push", "pop", "vpush", "vpop"}:
        return frozenset({"sp"})
    parts = operand_parts(operands)
    places = [part for part in parts if part.startswith("[")] or parts[:1]
    return frozenset(name for place in places for name in registers_in(place))


@functools.lru_cache(maxsize=1 << 16)
def _shape(text: str, operands: str) -> _Shape:
    name, condition, sets_flags = _name(text, " q" in f" {operands}")
    base = name.partition(".")[0]
    parts = operand_parts(operands)
    target = next((int(found[1], 16) for part in parts[-1:] if (found := _TARGET.match(part))), None)
    # Other last operands also look like addresses: `ldr r0, [pc, #4]` is printed with the label of its literal.
    if base not in _BRANCHES:
        target = None
    elif target is not None:
        parts = parts[:-1]
    reads, writes = _registers(base, parts)
    if sets_flags or base in _COMPARES or _GREATER_OR_EQUAL.fullmatch(base) or "APSR" in "".join(parts[:1]):
        writes.add(FLAGS)
    # A conditional instruction depends on the flags even if it names none.
    if condition or base in {"adc", "sbc", "rrx", "sel"} or base.startswith(("cs", "cinc", "cinv", "cneg")):
        reads.add(FLAGS)
    return name, condition, operands, frozenset(reads), frozenset(writes), _transfers(base, parts), target


def _name(text: str, helium: bool) -> tuple[str, str, bool]:
    """Return the mnemonic without width, condition and ``s``, the condition, and whether it sets flags."""
    # The mnemonic ends at the first dot; what follows are data types such as `.f32` or `.s8`.
    stem, _, types = _WIDE.sub("", text.lower()).partition(".")
    if types in {"w", "n"} or types.startswith(("w.", "n.")):
        types = types[2:]
    suffix = f".{types}" if types else ""
    if stem.startswith("v"):
        name, condition = _vector_name(stem, helium)
        return name + suffix, condition, False
    if stem.startswith("it") and set(stem[2:]) <= {"t", "e"}:
        return "it", "", False
    # Without a condition first: the last letters of teq, mls or svc are also conditions.
    for condition in ("", *([stem[-2:]] if stem[-2:] in _CONDITIONS else ())):
        rest = stem.removesuffix(condition)
        if rest in _INTEGER:
            return rest + suffix, condition, False
        if rest.endswith("s") and rest[:-1] in _SETS_FLAGS:
            return rest[:-1] + suffix, condition, True
    return stem + suffix, "", False


def _vector_name(stem: str, helium: bool) -> tuple[str, str]:
    """Return the name and the condition of an instruction of the FPU, or of MVE without ``t`` or ``e``."""
    if _OWN_SUFFIX.fullmatch(stem):
        return stem, ""
    if helium:
        return stem.removesuffix("t").removesuffix("e"), ""
    return (stem[:-2], stem[-2:]) if stem[-2:] in _CONDITIONS else (stem, "")


def _registers(base: str, parts: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the registers that an instruction reads and writes."""
    if base in {"push", "vpush", "pop", "vpop"} or base.startswith(("ldm", "stm", "vldm", "vstm")):
        return _many_registers(base, parts)
    # The first operand of a store is read, against the rule of this module, except for the status of ``strex``.
    if base.startswith(("str", "vst")):
        named_in = (listed_registers(part) if part.startswith("{") else registers_in(part) for part in parts)
        data = [name for names in named_in for name in names]
        status = data[:1] if base.startswith("strex") else []
        return set(data[len(status) :]), {*status, *_written_back(parts)}
    if base.startswith("vld") and parts[:1] and parts[0].startswith("{"):  # vld20.8 {q0, q1}, [r0]
        return set(registers_in(parts[1])), set(listed_registers(parts[0])) | _written_back(parts)
    if base == "clrm":
        return set(), set(listed_registers(parts[0]))
    named = {name for part in parts for name in registers_in(part)}
    # The return address. What the called function changes is not known, and a block ends here.
    if base in {"bl", "blx", "blxns"}:
        return named, {"lr"}
    if base in _NO_RESULT or base.startswith("vpst"):
        return named, set()
    return _status_registers(base, parts, named) or _data_registers(base, parts)


def _many_registers(base: str, parts: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the registers of a load or store of a list; the address of ``push`` and ``pop`` is not printed."""
    stack = "push" in base or "pop" in base
    address = {"sp"} if stack else set(registers_in(parts[0]))
    back = address if stack or parts[0].endswith("!") else set()
    listed = set(listed_registers(parts[-1]))
    return (address, listed | back) if "ldm" in base or "pop" in base else (address | listed, back)


def _status_registers(base: str, parts: Sequence[str], named: set[str]) -> tuple[set[str], set[str]] | None:
    """Return the registers of moves and comparisons that have a status register; ``None`` for others."""
    if base == "vmrs":
        return {parts[1].lower()}, {FLAGS} if "APSR" in parts[0] else set(registers_in(parts[0]))
    if base == "vmsr":
        return set(registers_in(parts[1])), {parts[0].lower()}
    if base in {"vcmp", "vcmpe"}:
        return named, {"p0" if any(name.startswith("q") for name in named) else "fpscr"}
    return (named, {"p0"}) if base == "vctp" or base.startswith("vpt") else None


def _data_registers(base: str, parts: Sequence[str]) -> tuple[set[str], set[str]]:
    operands = [registers_in(part) for part in parts]
    results = _results(base, parts, operands)
    writes = {name for names in operands[:results] for name in names}
    reads = {name for names in operands[results:] for name in names}
    reads |= {name for part in parts[:results] if part.startswith("[") for name in registers_in(part)}
    # A move into one lane leaves the others of the register as they are, so it depends on them.
    lane = base == "vmov" and any("[" in part for part in parts[:results])
    if _READS_RESULT.fullmatch(base) or lane or (base in _SHORT and len(parts) == 2):
        reads |= writes
    return reads, writes | _written_back(parts)


def _results(base: str, parts: Sequence[str], operands: Sequence[Sequence[str]]) -> int:
    """Return the number of operands that are results."""
    if _TWO_RESULTS.fullmatch(base):
        return 2
    if base == "vmov" and len(parts) == 3:  # vmov r0, r1, d0; vmov d0, r0, r1
        return 1 if parts[0][:1] in "dq" else 2
    if base == "vmov" and len(parts) == 4:  # vmov s0, s1, r0, r1; vmov q0[2], q0[0], r0, r1
        return 2
    return 1 if operands else 0


def _written_back(parts: Sequence[str]) -> set[str]:
    """Return the base register of a load or store that changes it."""
    for at, part in enumerate(parts):
        if part.startswith("[") and (part.endswith("!") or at + 1 < len(parts)):
            return set(registers_in(part)[:1])
    return set()


def _transfers(base: str, parts: Sequence[str]) -> int:
    """Return the words that a load or store moves."""
    if base in {"push", "pop", "vpush", "vpop"} or base.startswith(("ldm", "stm", "vldm", "vstm")):
        return sum({"d": 2, "q": 4}.get(register[:1], 1) for register in listed_registers(parts[-1]))
    if re.match(r"v(ld|st)[24]\d", base):
        return 4
    if base in {"vldr", "vstr"}:
        return {"d": 2, "q": 4}.get(parts[0][:1], 1)
    # A vector of MVE has four words, whatever the size of its elements.
    if re.match(r"v(ld|st)r[bhwd]", base):
        return 4
    if base in {"ldrd", "strd"}:
        return 2
    # ``tbb`` and ``tbh`` load an offset from their table.
    return int(base.startswith(("ldr", "str")) or base in {"tbb", "tbh"})
