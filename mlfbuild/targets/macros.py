"""What the predefined macros of a C compiler say about the CPU that it compiles for.

Arm's are those of "Arm C Language Extensions" (ACLE), RISC-V's those of "RISC-V C API"; GCC and clang have both. The
rules are plain regular expressions, so that CMake can hold them against ``<compiler> <flags> -dM -E`` by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlfbuild.targets.types import Cpu

_ARCHITECTURES = {
    "armv6s-m": "6S?M",
    "armv7-m": "7M",
    "armv7e-m": "7EM",
    "armv7-a": "7A",
    "armv8-m.base": "8M_BASE",
    "armv8-m.main": "8(_1)?M_MAIN",
    "armv8.1-m.main": "8(_1)?M_MAIN",  # GCC 12 calls it 8M_MAIN, too: MVE tells them apart
}
"""The part between ``__ARM_ARCH_`` and ``__``."""


@dataclass(frozen=True)
class MacroRule:
    """One thing that a compiler's macros must say, or must not say, for a CPU."""

    pattern: str
    """Regular expression, in the words that Python and CMake share, to be searched in lines ``#define NAME VALUE``."""
    wanted: bool
    """Whether ``pattern`` must be found, or must not be."""
    otherwise: str
    """What is wrong where it is not so, as the end of a sentence about the compiler."""


def macro_rules(cpu: Cpu) -> tuple[MacroRule, ...]:
    """Return the rules for a compiler that makes code for ``cpu``; the first one that is broken says most.

    A device that differs from the CPU in what it has beside its architecture and its float ABI is no wrong mix, unless
    the compiler may use more than the CPU has.
    """
    return tuple(_rules(cpu))


def _rules(cpu: Cpu) -> Iterator[MacroRule]:
    if cpu.is_arm:
        yield from _arm(cpu)
    elif cpu.architecture.startswith("rv32"):
        yield MacroRule("#define __riscv_xlen 32", True, f"does not compile for 32-bit RISC-V, as {cpu.name} is")
        yield MacroRule(
            "#define __riscv_float_abi_soft ", True, f"passes floats in FPU registers, {cpu.name} has no FPU"
        )
    else:
        systems = "#define (__linux__|__unix__|__APPLE__|_WIN32|__CYGWIN__) "
        yield MacroRule(systems, True, "compiles for bare metal, not for this machine")


def _arm(cpu: Cpu) -> Iterator[MacroRule]:
    name = _ARCHITECTURES[cpu.architecture]
    architecture = f"does not compile for {cpu.architecture}, the architecture of {cpu.name}"
    yield MacroRule(f"#define __ARM_ARCH_{name}__ ", True, architecture)
    if "mve" in cpu.features:
        yield MacroRule("#define __ARM_FEATURE_MVE ", True, f"compiles without MVE (Helium), which {cpu.name} has")
    else:
        yield MacroRule("#define __ARM_FEATURE_MVE ", False, f"compiles for MVE (Helium), which {cpu.name} has not")
    hard = cpu.float_abi == "hard"
    passed = "integer registers (soft or softfp), {} in FPU registers (hard)"
    if not hard:
        passed = "FPU registers (hard), {} in integer registers (soft)"
    yield MacroRule("#define __ARM_PCS_VFP ", hard, f"passes floats in {passed.format(cpu.name)}")
    if hard and any("-sp-" in flag for flag in cpu.flags):  # bit 3 of __ARM_FP: double precision
        more = f"compiles for an FPU with double precision, {cpu.name} has single precision only"
        yield MacroRule("#define __ARM_FP (8|9|1[0-5]|0x[89a-fA-F])", False, more)
