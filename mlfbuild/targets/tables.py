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
    import difflib

    near = difflib.get_close_matches(name, table, n=1) if what != "mcu" else []  # a similar one has another core
    reason = f'unknown {what} (did you mean "{near[0]}"?)' if near else f"unknown {what}"
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


def keys_of_device(name: str) -> Mapping[str, str] | None:
    """Return the keys of a target that is the device ``name``; ``None`` if no table has this name.

    A core gives ``cpu``, a board that QEMU emulates ``cpu`` and ``board``, a microcontroller ``mcu``.
    """
    if name in CPUS:
        return {"cpu": name}
    if name in BOARDS:
        return {"cpu": BOARDS[name].cpu, "board": name}
    from mlfbuild.targets.mcus import MCUS  # long tables that most commands do not use
    from mlfbuild.targets.parts import part_called

    return {"mcu": name} if name in MCUS or part_called(name) else None


def board_called(name: str) -> Board:
    """Return the board called ``name``; raises ``UsageError`` with the nearest name."""
    return _find(BOARDS, "board", name)


def mcu_called(name: str) -> Mcu:
    """Return the microcontroller called ``name``.

    Raises ``UsageError`` with all names. It suggests no near one, unlike for CPUs and boards: a part with a similar
    name may have another core.
    """
    from mlfbuild.targets.mcus import MCUS  # a long table that most commands do not use

    return _find(MCUS, "mcu", name)
