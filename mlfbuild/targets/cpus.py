"""The table of CPUs. ``toolchain_text`` of its rows gives the files in ``cmake/toolchains``; a test compares them.

Names, flags and features are GCC's (``-mcpu``, "ARM Options"), and the versions are those of GCC's and LLVM's release
notes. If a core can have an FPU, its name means the core with the FPU, and the name with ``+nofp`` the core without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from mlfbuild.targets.types import CLANG, GCC, Cpu

_SUPPORTED = {GCC: 10, CLANG: 14}  # no MappingProxyType: jobs for worker processes have a Cpu and are pickled
"""The GCC that supports all cores without other versions in their rows, and the oldest clang that is tested."""


def _arm(name: str, title: str, architecture: str, features: set[str], *flags: str) -> Cpu:
    hard = bool(features & {"fpu"})
    words = (f"-mcpu={name}", "-mthumb", f"-mfloat-abi={'hard' if hard else 'soft'}", *flags)
    return Cpu(name, title, architecture, frozenset(features), "hard" if hard else "soft", words, _SUPPORTED)


_CORTEX_M85 = Cpu(
    "cortex-m85",
    "Cortex-M85 with MVE (Helium) for integers and floats",
    "armv8.1-m.main",
    frozenset({"dsp", "fpu", "mve"}),
    "hard",
    ("-mcpu=cortex-m85", "-mthumb", "-mfloat-abi=hard"),
    {GCC: 13, CLANG: 15},
    link_flags=("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard"),  # the same libraries
)
_RV32IMC = Cpu(
    "rv32imc",
    "RISC-V, 32 bits: integers, multiplication, compressed instructions",
    "rv32imc",
    frozenset(),
    "soft",
    ("-march=rv32imc", "-mabi=ilp32"),
    {GCC: 10},
)

CPUS: Mapping[str, Cpu] = MappingProxyType(
    {
        cpu.name: cpu
        for cpu in (
            _arm("cortex-m0", "Cortex-M0", "armv6s-m", set()),
            _arm("cortex-m0plus", "Cortex-M0+", "armv6s-m", set()),
            _arm("cortex-m3", "Cortex-M3", "armv7-m", set()),
            _arm(
                "cortex-m4", "Cortex-M4 with its single-precision FPU (M4F)", "armv7e-m", {"dsp", "fpu"},
                "-mfpu=fpv4-sp-d16",
            ),
            _arm("cortex-m4+nofp", "Cortex-M4 without an FPU", "armv7e-m", {"dsp"}),
            _arm("cortex-m7", "Cortex-M7 with the double-precision FPU", "armv7e-m", {"dsp", "fpu"}, "-mfpu=fpv5-d16"),
            _arm("cortex-m23", "Cortex-M23", "armv8-m.base", set()),
            _arm(
                "cortex-m33", "Cortex-M33 with DSP instructions and its single-precision FPU", "armv8-m.main",
                {"dsp", "fpu"}, "-mfpu=fpv5-sp-d16",
            ),
            _arm(
                "cortex-m55", "Cortex-M55 with MVE (Helium) for integers and floats", "armv8.1-m.main",
                {"dsp", "fpu", "mve"},
            ),
            _CORTEX_M85,
            _arm("cortex-a9", "Cortex-A9 with Neon", "armv7-a", {"dsp", "fpu", "neon"}, "-mfpu=neon"),
            _RV32IMC,
            Cpu("host", "this machine", "host", frozenset(), "", ()),
        )
    }
)  # fmt: skip
"""Every CPU by its name in the project file."""


def toolchain_text(cpu: Cpu, compiler: str) -> str:
    """Return the CMake toolchain file for ``cpu`` with ``compiler``, a key of ``cpu.compilers``."""
    shared = f"{compiler_program(cpu, GCC).removesuffix(GCC)}{compiler}.cmake"
    settings = {
        "CMAKE_SYSTEM_PROCESSOR": cpu.name,
        "MLFBUILD_CPU_FLAGS": " ".join(cpu.flags),
        "MLFBUILD_LINK_FLAGS": " ".join(cpu.link_flags) if compiler == CLANG else "",
        "MLFBUILD_ADVICE": f'"{advice(cpu, compiler)}"',
    }
    lines = [f"set({name} {value})" for name, value in settings.items() if value]
    return "\n".join([f"# {cpu.title}", *lines, f'include("${{CMAKE_CURRENT_LIST_DIR}}/{shared}")\n'])


def compiler_program(cpu: Cpu, compiler: str) -> str:
    """Return the usual name of the program that is ``compiler`` for ``cpu``."""
    if compiler == CLANG:
        return CLANG
    return "arm-none-eabi-gcc" if cpu.is_arm else "riscv64-unknown-elf-gcc"


def advice(cpu: Cpu, compiler: str) -> str:
    """Return the hint for a program that is ``compiler`` but does not support ``cpu``."""
    from mlfbuild.core import tool_variable

    variable = tool_variable(compiler_program(cpu, compiler))
    names = {GCC: "GCC", CLANG: "clang"}
    versions = {family: f"{names[family]} {version} or later" for family, version in cpu.compilers.items()}
    if cpu.compilers.get(CLANG, 0) > _SUPPORTED[CLANG]:  # that of Debian 12's package clang
        versions[CLANG] += " (Debian 12: apt-get install clang-19)"
    wanted = versions.pop(compiler)
    others = "".join(f", or use {text}" for text in versions.values())
    return f"set {variable} to the path of {wanted}{others}"
