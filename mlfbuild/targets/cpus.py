"""The table of CPUs, and the CMake toolchain files that follow from it, one for each CPU and compiler.

They are in ``cmake/toolchains``; a test compares them with the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mlfbuild.targets.data_files import rows
from mlfbuild.targets.types import CLANG, GCC, Cpu

_DEBIAN_CLANG = 14
"""The version of Debian 12's package clang."""
CPUS: Mapping[str, Cpu] = MappingProxyType(dict(rows("cpus", Cpu)))
"""Every CPU by its name in the project file."""


def toolchain_text(cpu: Cpu, compiler: str) -> str:
    """Return the CMake toolchain file for ``cpu`` with ``compiler``, a key of ``cpu.compilers``.

    The result is the text of the file; it sets the flags of the core and includes the file that the compiler's
    toolchains share. ``make generate`` writes it.
    """
    # What all CPUs of a compiler have in common is in a shared file, which is not generated.
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
    """Return the usual name of the program that is ``compiler`` for ``cpu``.

    Builds may use another one: see ``compiler_path``, which honours ``MLFBUILD_<NAME>`` and CMake's cache entries.
    """
    if compiler == CLANG:
        return CLANG
    return "arm-none-eabi-gcc" if cpu.is_arm else "riscv64-unknown-elf-gcc"


def advice(cpu: Cpu, compiler: str) -> str:
    """Return the hint for a program that is ``compiler`` but does not support ``cpu``.

    It names the environment variable with the path of the compiler, the oldest version that knows the core, and the
    other compilers of the table.
    """
    from mlfbuild.core import tool_variable

    variable = tool_variable(compiler_program(cpu, compiler))
    names = {GCC: "GCC", CLANG: "clang"}
    versions = {family: f"{names[family]} {version} or later" for family, version in cpu.compilers.items()}
    if cpu.compilers.get(CLANG, 0) > _DEBIAN_CLANG:
        versions[CLANG] += " (Debian 12: apt-get install clang-19)"
    wanted = versions.pop(compiler)
    others = "".join(f", or use {text}" for text in versions.values())
    return f"set {variable} to the path of {wanted}{others}"


_PACKAGE = Path(__file__).resolve().parent.parent


def cmake_folder() -> Path:
    """Return the folder of the CMake files: inside an installed package, next to the package in a clone."""
    installed = _PACKAGE / "cmake"
    return installed if installed.is_dir() else _PACKAGE.parent / "cmake"


def toolchain_folder() -> Path:
    """Return the folder of the toolchain files."""
    return cmake_folder() / "toolchains"


def toolchain_file(cpu: Cpu, compiler: str | None = None) -> Path | None:
    """Return the toolchain file for ``cpu`` with ``compiler``, a key of ``cpu.compilers`` (default: its first).

    ``None`` for the host's own compiler.
    """
    name = cpu.toolchain if compiler is None else cpu.toolchain_with(compiler)
    return None if name is None else toolchain_folder() / name


def shared_toolchain_files() -> tuple[Path, ...]:
    """Return the files that the toolchain files of mlfbuild include, sorted.

    The lock file and caches depend on them: a change of one may change what every toolchain file compiles.
    """
    # Whatever is in the folder and not the file of a CPU is included by one.
    own = {cpu.toolchain_with(compiler) for cpu in CPUS.values() for compiler in cpu.compilers}
    return tuple(sorted(path for path in toolchain_folder().glob("*.cmake") if path.name not in own))


def cpu_of_toolchain(toolchain: Path) -> tuple[Cpu, str] | None:
    """Return the CPU and the compiler of a toolchain file of mlfbuild, ``None`` for any other file.

    The folder decides: a copy of such a file in a project is a file of the project.
    """
    # A user's own file may have any of our names and be for another core.
    if toolchain.resolve().parent != toolchain_folder().resolve():
        return None
    rows = ((cpu, compiler) for cpu in CPUS.values() for compiler in cpu.compilers)
    return next(((cpu, compiler) for cpu, compiler in rows if cpu.toolchain_with(compiler) == toolchain.name), None)
