"""Rules for the predefined macros of a C compiler, which show the CPU that it compiles for.

Arm's macros are those of "Arm C Language Extensions" (ACLE), RISC-V's those of "RISC-V C API"; GCC and clang have both.
The rules are plain regular expressions, so that CMake can search the output of ``<compiler> <flags> -dM -E`` for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlfbuild.targets.cpus import CPUS
from mlfbuild.targets.types import Cpu

# GCC and clang spell some of them differently.
_ARCHITECTURES = {
    "armv6s-m": "6S?M",
    "armv7-m": "7M",
    "armv7e-m": "7EM",
    "armv7-a": "7A",
    "armv8-m.base": "8M_BASE",
    "armv8-m.main": "8(_1)?M_MAIN",
    "armv8.1-m.main": "8(_1)?M_MAIN",  # GCC 12 also calls it 8M_MAIN; MVE is the difference
}
"""The part of a macro's name between ``__ARM_ARCH_`` and ``__``, as a regular expression."""


@dataclass(frozen=True)
class MacroRule:
    """A line that a compiler's macros must contain, or must not contain, for a CPU."""

    pattern: str
    """Regular expression in the syntax that Python and CMake share, to search in lines ``#define NAME VALUE``."""
    wanted: bool
    """Whether ``pattern`` must be found; if False, it must not be found."""
    otherwise: str
    """The fault if the rule does not hold, as the end of a sentence whose subject is the compiler."""


def macro_rules(cpu: Cpu) -> tuple[MacroRule, ...]:
    """Return the rules for a compiler that compiles for ``cpu``; the first broken rule describes the mistake best.

    A compiler that uses fewer features than the CPU has is accepted if architecture and float ABI are the same.
    """
    return tuple(_rules(cpu))


def _rules(cpu: Cpu) -> Iterator[MacroRule]:
    if cpu.is_arm:
        yield from _arm(cpu)
    elif cpu.architecture.startswith("rv32"):
        # The width of an integer register: riscv64-unknown-elf-gcc has 64 bits unless it gets -march.
        yield MacroRule("#define __riscv_xlen 32", True, f"does not compile for 32-bit RISC-V, as {cpu.name} is")
        yield MacroRule(
            "#define __riscv_float_abi_soft ", True, f"passes floats in FPU registers, {cpu.name} has no FPU"
        )
    else:
        systems = "#define (__linux__|__unix__|__APPLE__|_WIN32|__CYGWIN__) "
        # A cross compiler defines none of them.
        yield MacroRule(systems, True, "compiles for bare metal, not for this machine")


def _arm(cpu: Cpu) -> Iterator[MacroRule]:
    name = _ARCHITECTURES[cpu.architecture]
    architecture = f"does not compile for {cpu.architecture}, the architecture of {cpu.name}"
    # The architecture first: with a wrong one, all other rules would be broken as a consequence.
    yield MacroRule(f"#define __ARM_ARCH_{name}__ ", True, architecture)
    # GCC 12 has one name for Armv8-M and Armv8.1-M Mainline, so that MVE tells them apart.
    if "mve" in cpu.features:
        yield MacroRule("#define __ARM_FEATURE_MVE ", True, f"compiles without MVE (Helium), which {cpu.name} has")
    else:
        yield MacroRule(
            "#define __ARM_FEATURE_MVE ", False, f"compiles for MVE (Helium), which {cpu.name} does not have"
        )
    hard = cpu.float_abi == "hard"
    plain = f"{cpu.name}+nofp"
    same = f" like {plain}" if plain in CPUS else ""
    passed = f"integer registers (soft or softfp){same}, {{}} in FPU registers (hard)"
    if not hard:
        passed = "FPU registers (hard), {} in integer registers (soft)"
    yield MacroRule("#define __ARM_PCS_VFP ", hard, f"passes floats in {passed.format(cpu.name)}")
    if hard and any("-sp-" in flag for flag in cpu.flags):  # bit 3 of __ARM_FP: double precision
        more = f"compiles for an FPU with double precision, {cpu.name} has single precision only"
        yield MacroRule("#define __ARM_FP (8|9|1[0-5]|0x[89a-fA-F])", False, more)
