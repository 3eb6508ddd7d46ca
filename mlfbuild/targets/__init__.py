"""CPU and board tables, and where the files that belong to them lie."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from mlfbuild.errors import UsageError
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
    "toolchain_file",
]

_PACKAGE = Path(__file__).resolve().parent.parent

RUNTIME = _PACKAGE / "runtime"
"""The folder of C that firmware links: ``board/`` and ``verify/``."""

_Entry = TypeVar("_Entry")


def _find(table: Mapping[str, _Entry], what: str, name: str) -> _Entry:
    if name in table:
        return table[name]
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
