"""The CMake toolchain files of mlfbuild: one for each CPU and compiler of the table."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.targets.cpus import CPUS
from mlfbuild.targets.types import Cpu

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
    """Return the files that the toolchain files of mlfbuild include, sorted."""
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
