"""Check early that the C compiler of a toolchain file is installed and supports the CPU; CMake's own report is long.

Also find out whether it has a C library for the core, which Linux distributions package separately.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import ToolNotFoundError
from mlfbuild.targets.cpus import advice, compiler_program, cpu_of_toolchain, toolchain_folder
from mlfbuild.targets.types import CLANG, GCC

if TYPE_CHECKING:
    import subprocess


HOST_COMPILERS = ("cc", "gcc", "clang")
"""Names that CMake looks up if CC is not set."""
# Far more than a compiler takes to start.
_SECONDS = 60


def require_compiler(toolchain: Path | None, definitions: Sequence[str] = ()) -> None:
    """Raise ``ToolNotFoundError`` if the C compiler of a toolchain file is missing or does not support the CPU.

    ``definitions`` are CMake cache entries ``NAME=VALUE``, which can name the compiler
    (``MLFBUILD_ARM_NONE_EABI_GCC=/opt/arm/bin/arm-none-eabi-gcc``). Without ``toolchain``, the compiler of this machine
    is checked. Toolchain files that are not part of mlfbuild are not checked.
    """
    if toolchain is None:
        _require_host_compiler()
        return
    # A toolchain file of a project may name any compiler, which only CMake can find out.
    row = cpu_of_toolchain(toolchain)
    if row is None:
        return
    cpu, compiler = row
    compiler_path(compiler_program(cpu, GCC), definitions)  # clang links with it
    path = compiler_path(compiler_program(cpu, compiler), definitions)
    words = ("--target=arm-none-eabi",) if compiler == CLANG else ()
    # Compiling an empty file shows what counts, whatever version the compiler states.
    if not _compiles(path, (*words, *cpu.flags)):
        raise ToolNotFoundError(
            "compiler-too-old", place=cpu.name, reason=f"{path} cannot compile for it", hint=advice(cpu, compiler)
        )


def compiler_path(tool: str, definitions: Sequence[str] = ()) -> Path:
    """Return the program that builds use for ``tool``; ``definitions`` are those of ``require_compiler``.

    Raises ``ToolNotFoundError``.
    """
    from mlfbuild.core import find_tool, tool_variable

    # CMake's NAME=VALUE or NAME:TYPE=VALUE.
    parts = (text.partition("=") for text in definitions)
    entries = {name.partition(":")[0]: value for name, _, value in parts}
    return find_tool(tool, entries.get(tool_variable(tool)))


def _require_host_compiler() -> None:
    import shutil

    if "CC" not in os.environ and not any(shutil.which(name) for name in HOST_COMPILERS):
        hint = "install one (Debian: apt-get install gcc libc6-dev) or set CC to its path"
        raise ToolNotFoundError(
            "no-host-compiler", place="cc", reason="no C compiler for this machine found", hint=hint
        )


@functools.cache
def _compiles(path: Path, flags: tuple[str, ...]) -> bool:
    """Return whether the compiler accepts ``flags``; True if it does not start, which CMake reports."""
    # Syntax only: the check must not depend on an assembler, a linker or a C library.
    done = _run(path, *flags, "-fsyntax-only", str(toolchain_folder() / "empty.c"))
    return done is None or done.returncode == 0


def _run(*command: str | Path) -> subprocess.CompletedProcess[str] | None:
    """Return the finished ``command``; ``None`` if it does not start, or does not end."""
    import subprocess

    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def has_c_library(gcc: Path, flags: Sequence[str]) -> bool:
    """Return whether ``gcc`` with ``flags`` for a core finds a C library: newlib, or picolibc by its specs file.

    False also if the compiler does not start, which other checks report.
    """
    # With the flags of a core, GCC searches the folder of its multilib first.
    return any(_finds(gcc, flags, name) for name in ("libc.a", "picolibc.specs"))


def _finds(gcc: Path, flags: Sequence[str], name: str) -> bool:
    """Return whether GCC finds the file ``name``: it prints the path of a file that it finds, or else the bare name."""
    done = _run(gcc, *flags, f"-print-file-name={name}")
    return done is not None and Path(done.stdout.strip()).is_absolute()
