"""CPU and board tables, and where the files that belong to them lie."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from mlfbuild.errors import ToolNotFoundError, UsageError
from mlfbuild.targets.boards import BOARDS
from mlfbuild.targets.cpus import CPUS
from mlfbuild.targets.types import Board, Cpu, Memory

__all__ = [
    "BOARDS",
    "CPUS",
    "RUNTIME",
    "Board",
    "Cpu",
    "Memory",
    "board_called",
    "cmake_folder",
    "cpu_called",
    "require_compiler",
    "toolchain_file",
]

_PACKAGE = Path(__file__).resolve().parent.parent

RUNTIME = _PACKAGE / "runtime"
"""The folder of C that firmware links: ``board/`` and ``verify/``."""

_HOST_COMPILERS = ("cc", "gcc", "clang")
"""Where CMake, too, looks where CC is not set."""

_Entry = TypeVar("_Entry")


def _find(table: Mapping[str, _Entry], what: str, name: str) -> _Entry:
    if name in table:
        return table[name]
    import difflib

    near = difflib.get_close_matches(name, table, n=1)
    hint = f'did you mean "{near[0]}"?' if near else f"known: {', '.join(table)}"
    raise UsageError(f"{name}: unknown {what} ({hint})")


def cpu_called(name: str) -> Cpu:
    """Return the CPU called ``name``; raises ``UsageError`` with the nearest name there is."""
    return _find(CPUS, "cpu", name)


def board_called(name: str) -> Board:
    """Return the board called ``name``; raises ``UsageError`` with the nearest name there is."""
    return _find(BOARDS, "board", name)


def cmake_folder() -> Path:
    """Return the folder of the CMake files: inside the package where it is installed, beside it in a clone."""
    installed = _PACKAGE / "cmake"
    return installed if installed.is_dir() else _PACKAGE.parent / "cmake"


def toolchain_file(cpu: Cpu) -> Path | None:
    """Return the CMake toolchain file that comes with mlfbuild for ``cpu``; ``None`` for the host's own compiler."""
    return None if cpu.toolchain is None else cmake_folder() / "toolchains" / cpu.toolchain


def require_compiler(toolchain: Path | None) -> None:
    """Raise ``ToolNotFoundError`` where the C compiler of a toolchain file is missing.

    CMake would say so too, among many lines. ``None`` is this machine's own compiler; what somebody else's toolchain
    file needs is for that file to say.
    """
    import shutil

    from mlfbuild.process import find_tool

    if toolchain is None:
        if "CC" not in os.environ and not any(shutil.which(name) for name in _HOST_COMPILERS):
            raise ToolNotFoundError(
                "cc: no C compiler for this machine found; install one (Debian: apt-get install gcc libc6-dev) or set "
                "CC to its path"
            )
    elif toolchain.resolve().parent == (cmake_folder() / "toolchains").resolve():
        find_tool("arm-none-eabi-gcc")
