"""Look up CPUs, boards and microcontrollers by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

from mlfbuild.core import UsageError
from mlfbuild.targets.boards import BOARDS
from mlfbuild.targets.cpus import CPUS
from mlfbuild.targets.mcu_types import Mcu
from mlfbuild.targets.types import Board, Cpu

RUNTIME = Path(__file__).resolve().parent.parent / "runtime"
"""The folder of C that firmware links: ``board/`` and ``verify/``."""

_Entry = TypeVar("_Entry")


def _find(table: Mapping[str, _Entry], what: str, name: str) -> _Entry:
    if name in table:
        return table[name]
    # Only after a mistake: the import takes longer than the look-up.
    from mlfbuild.core import suggestion

    near = suggestion(name, table) if what != "mcu" else ""  # a similar one has another core
    reason = f"unknown {what}{near}"
    hint = "" if near else f"choose one of {', '.join(table)}"
    raise UsageError(f"unknown-{what}", place=name, reason=reason, hint=hint)


def cpu_called(name: str) -> Cpu:
    """Return the CPU called ``name``; raises ``UsageError`` with the nearest name."""
    return _find(CPUS, "cpu", name)


def emulated_board(cpu: Cpu) -> Board | None:
    """Return the first board that runs code for ``cpu``; ``None`` if there is none.

    Cores without a board of their own run on one whose core has all of their instructions (``Board.runs``). A core with
    ``+nofp`` uses the board of the whole core.
    """
    return next((board for board in BOARDS.values() if board.takes(cpu)), None)


def board_called(name: str) -> Board:
    """Return the emulated board called ``name``.

    Raises ``UsageError`` with the nearest name, or for a board that people own, with an emulated one that has its core.
    """
    if name not in BOARDS:
        from mlfbuild.targets.development_boards import development_board  # a table that most commands do not use
        from mlfbuild.targets.parts import part_called

        owned = development_board(name)
        part = part_called(owned.mcu) if owned else None
        emulated = emulated_board(CPUS[part.cpu]) if part else None
        if owned:
            hint = f"use {emulated.name}, which runs the same code" if emulated else ""
            raise UsageError("board-not-emulated", place=name, reason="QEMU does not emulate this board", hint=hint)
    return _find(BOARDS, "board", name)


def mcu_called(name: str) -> Mcu:
    """Return the microcontroller called ``name``.

    Raises ``UsageError`` with all names. It suggests no near one, unlike for CPUs and boards: a part with a similar
    name may have another core.
    """
    from mlfbuild.targets.mcus import MCUS  # a long table that most commands do not use

    return _find(MCUS, "mcu", name)
