"""CPU and board tables, where the files that belong to them lie, and the compilers that toolchain files name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from mlfbuild.core.errors import UsageError
from mlfbuild.targets.boards import BOARDS
from mlfbuild.targets.compilers import require_compiler
from mlfbuild.targets.cpus import CPUS
from mlfbuild.targets.macros import MacroRule, macro_rules
from mlfbuild.targets.macs import fewest_instructions, macs_an_instruction
from mlfbuild.targets.toolchains import cmake_folder, cpu_of_toolchain, shared_toolchain_files, toolchain_file
from mlfbuild.targets.types import CLANG, GCC, Board, Cpu, Memory

__all__ = [
    "BOARDS",
    "CLANG",
    "CPUS",
    "GCC",
    "RUNTIME",
    "Board",
    "Cpu",
    "MacroRule",
    "Memory",
    "board_called",
    "cmake_folder",
    "cpu_called",
    "cpu_of_toolchain",
    "fewest_instructions",
    "macro_rules",
    "macs_an_instruction",
    "require_compiler",
    "shared_toolchain_files",
    "toolchain_file",
]

RUNTIME = Path(__file__).resolve().parent.parent / "runtime"
"""The folder of C that firmware links: ``board/`` and ``verify/``."""

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
