"""The rules for predefined macros, checked with the macros of real compilers."""

import re
import subprocess
from collections.abc import Callable

import pytest

from mlfbuild.targets import CPUS, Cpu, macro_rules

Dump = Callable[..., str]
ROWS = [(cpu, compiler) for cpu in CPUS.values() for compiler in cpu.compilers]


@pytest.fixture(scope="session")
def dump(tool: Callable[[str], str], newest_clang: dict[str, str]) -> Dump:
    """The macros of a compiler with some flags; empty where it does not know them."""

    def run(compiler: str, *flags: str) -> str:
        command = (
            [newest_clang["MLFBUILD_CLANG"], "--target=arm-none-eabi"] if compiler == "clang" else [tool(compiler)]
        )
        words = [*command, *flags, "-dM", "-E", "-x", "c", "/dev/null"]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout

    return run


def program(cpu: Cpu, compiler: str) -> str:
    if compiler == "clang":
        return compiler
    return "arm-none-eabi-gcc" if cpu.is_arm else "riscv64-unknown-elf-gcc"


def judged(cpu: Cpu, macros: str) -> str:
    """What the first broken rule says; empty where none is."""
    broken = (rule for rule in macro_rules(cpu) if bool(re.search(rule.pattern, macros)) != rule.wanted)
    return next((rule.otherwise for rule in broken), "")


@pytest.mark.parametrize(("cpu", "compiler"), ROWS, ids=lambda value: getattr(value, "name", value))
def test_every_compiler_fits_its_own_cpu_and_no_other(dump: Dump, cpu: Cpu, compiler: str) -> None:
    macros = dump(program(cpu, compiler), *cpu.flags)
    if not macros:
        assert (cpu.name, compiler) == ("cortex-m85", "gcc"), "newer than Debian 12's GCC"
        return
    fitting = {other.name for other in CPUS.values() if not judged(other, macros)}
    expected = {other.name for other in CPUS.values() if runs_on(cpu, other)}
    assert fitting == expected, f"mlfbuild/targets/data/cpus.toml: the columns of {cpu.name} do not fit its flags"


def runs_on(cpu: Cpu, other: Cpu) -> bool:
    """Return whether code for ``cpu`` runs on ``other``, by the columns of the table, such as M4 code on an M7."""
    same = [(row.architecture, row.float_abi, "mve" in row.features) for row in (cpu, other)]
    single = [any("-sp-" in flag for flag in row.flags) for row in (cpu, other)]
    return same[0] == same[1] and single != [False, True]


@pytest.mark.parametrize(
    ("cpu", "compiler", "flags", "words"),
    [
        ("cortex-m55", "arm-none-eabi-gcc", "-mcpu=cortex-m4 -mfloat-abi=hard",
         "does not compile for armv8.1-m.main, the architecture of cortex-m55"),
        ("cortex-m55", "arm-none-eabi-gcc", "-mcpu=cortex-m33 -mfloat-abi=hard",
         "compiles without MVE (Helium), which cortex-m55 has"),
        ("cortex-m33", "clang", "-mcpu=cortex-m55 -mfloat-abi=hard",
         "compiles for MVE (Helium), which cortex-m33 does not have"),
        ("cortex-m4", "arm-none-eabi-gcc", "-mcpu=cortex-m4 -mfloat-abi=softfp",
         "passes floats in integer registers (soft or softfp) like cortex-m4+nofp, cortex-m4 in FPU registers (hard)"),
        ("cortex-m4+nofp", "arm-none-eabi-gcc", "-mcpu=cortex-m4 -mfloat-abi=hard",
         "passes floats in FPU registers (hard), cortex-m4+nofp in integer registers (soft)"),
        ("cortex-m4", "arm-none-eabi-gcc", "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16",
         "compiles for an FPU with double precision, cortex-m4 has single precision only"),
        ("cortex-m4", "clang", "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-d16",
         "compiles for an FPU with double precision, cortex-m4 has single precision only"),
        ("cortex-m3", "arm-none-eabi-gcc", "", "does not compile for armv7-m, the architecture of cortex-m3"),
        ("cortex-m3", "gcc", "", "does not compile for armv7-m, the architecture of cortex-m3"),
        ("host", "arm-none-eabi-gcc", "-mcpu=cortex-m4", "compiles for bare metal, not for this machine"),
        ("host", "riscv64-unknown-elf-gcc", "-march=rv32imc -mabi=ilp32",
         "compiles for bare metal, not for this machine"),
        ("rv32imc", "riscv64-unknown-elf-gcc", "", "does not compile for 32-bit RISC-V, as rv32imc is"),
        ("rv32imc", "riscv64-unknown-elf-gcc", "-march=rv32imfc -mabi=ilp32f",
         "passes floats in FPU registers, rv32imc has no FPU"),
    ],
)  # fmt: skip
def test_a_wrong_compiler_is_refused_with_a_reason(dump: Dump, cpu: str, compiler: str, flags: str, words: str) -> None:
    macros = dump(compiler, *flags.split())
    assert macros
    assert judged(CPUS[cpu], macros) == words


@pytest.mark.parametrize(
    ("cpu", "compiler", "flags"),
    [
        ("cortex-m4+nofp", "arm-none-eabi-gcc", "-mcpu=cortex-m4 -mfloat-abi=softfp -mfpu=fpv4-sp-d16"),
        ("cortex-m33+nofp", "arm-none-eabi-gcc", "-march=armv8-m.main+fp+dsp -mfloat-abi=softfp -mcmse"),  # pico-sdk
        ("cortex-m7", "arm-none-eabi-gcc", "-mcpu=cortex-m7 -mfloat-abi=hard -mfpu=fpv5-sp-d16"),
        ("cortex-m33", "clang", "-mcpu=cortex-m33+nodsp -mfloat-abi=hard -mfpu=fpv5-sp-d16"),
        ("cortex-m4", "arm-none-eabi-gcc", "-march=armv7e-m -mfloat-abi=hard -mfpu=fpv4-sp-d16"),
        ("rv32imc", "riscv64-unknown-elf-gcc", "-march=rv32imac -mabi=ilp32"),
        ("host", "gcc", "-O2"),
    ],
)
def test_a_device_with_fewer_features_is_accepted(dump: Dump, cpu: str, compiler: str, flags: str) -> None:
    macros = dump(compiler, *flags.split())
    assert macros
    assert judged(CPUS[cpu], macros) == ""
