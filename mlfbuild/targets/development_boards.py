"""Boards that people own: microcontroller, debugger, and the names that the debugger's programs use.

``data/development_boards.csv`` has a row for each board, with its source; ``scripts/boards.py`` wrote it. In contrast
to ``BOARDS``, no emulator runs them and mlfbuild has no start-up code for them: a board gives a target its ``mcu``, and
its runner the command of the GDB server.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from mlfbuild.targets.boards import BOARDS
from mlfbuild.targets.cpus import CPUS
from mlfbuild.targets.data_files import csv_rows
from mlfbuild.targets.parts import KnownPart, all_parts, part_called

_SAME_IN_JLINK = ("stm32", "nrf52", "r7fa")
"""Parts that have the same name in J-Link and probe-rs, as the table of boards shows; a test compares them."""


@dataclass(frozen=True)
class DevelopmentBoard:
    """A row of the table; empty texts for what is not known."""

    board: str
    """Name in a project file, in lower case with hyphens: ``nucleo-f446re``."""
    title: str
    """The maker's name."""
    mcu: str
    """Part as on the chip, in lower case."""
    debugger: str
    """Kind of debugger on the board: ``stlink``, ``jlink``, ``cmsis-dap``."""
    server: str
    """GDB server for the debugger: a key of ``GDB_SERVERS``. Empty if the board has no debugger."""
    openocd: str
    """OpenOCD's target: ``stm32f4x``."""
    jlink: str
    """SEGGER's name of the part."""
    pyocd: str
    """Target type of pyOCD."""
    usb: str
    """Regular expression for USB vendor and product of the debugger's serial port: ``0483:374B``."""
    source: str
    """Repository and commit that the row is from."""


@cache
def all_boards() -> Mapping[str, DevelopmentBoard]:
    """Return every board by its name."""
    return {row["board"]: DevelopmentBoard(**row) for row in csv_rows("development_boards")}


@cache
def _by_letters() -> Mapping[str, DevelopmentBoard]:
    return {_letters(name): board for name, board in all_boards().items()}


def _letters(name: str) -> str:
    return "".join(each for each in name.lower() if each.isalnum())


def development_board(name: str) -> DevelopmentBoard | None:
    """Return the board called ``name``, whose case, hyphens and underscores do not matter; ``None`` without one.

    A name that QEMU's machines have is none of these boards.

    >>> development_board("NUCLEO_F446RE").mcu
    'stm32f446ret6'
    """
    return None if name in BOARDS else _by_letters().get(_letters(name))


def close_boards(name: str) -> list[str]:
    """Return up to three boards, emulated ones too, whose names are close to ``name`` or contain it.

    For hints about unknown names. Names that contain ``name`` come first, then those that differ in few letters.
    """
    names = [*BOARDS, *all_boards()]
    part = _letters(name)
    containing = [each for each in names if len(part) > 2 and part in _letters(each)]
    close = difflib.get_close_matches(name.lower().replace("_", "-"), names, n=3)
    return list(dict.fromkeys([*containing, *close]))[:3]


def keys_of_device(name: str) -> Mapping[str, str] | None:
    """Return the keys of a target that is the device ``name``, such as ``{"mcu": "nrf52840"}``; ``None`` without one.

    A core gives ``cpu``, a board that QEMU emulates ``cpu`` and ``board``, a board that people own ``board``, and a
    microcontroller ``mcu``.
    """
    from mlfbuild.targets.mcus import MCUS  # a long table

    if name in CPUS:
        return {"cpu": name}
    if name in BOARDS:
        return {"cpu": BOARDS[name].cpu, "board": name}
    board = development_board(name)
    if board is not None:
        return {"board": board.board}
    return {"mcu": name} if name in MCUS or part_called(name) else None


def server_words(mcu: str, board: DevelopmentBoard | None) -> dict[str, str]:
    """Return the names of the part ``mcu``, which ``board`` may have, for the placeholders of ``GdbServer.start``.

    Names that are not known are missing.
    """
    part = part_called(mcu) or _first_of(mcu)
    chip = part.chip(mcu) if part else ""
    words = {
        "openocd": board.openocd if board else "",
        "jlink": (board.jlink if board else "") or (chip if mcu.lower().startswith(_SAME_IN_JLINK) else ""),
        "pyocd": (board.pyocd if board else "") or (part.pyocd_type(mcu) if part else ""),
        "chip": chip,
    }
    return {name: word for name, word in words.items() if word}


def _first_of(family: str) -> KnownPart | None:
    """Return the first part whose name begins with ``family``: a cycle model is for several."""
    beginning = family.lower().partition("-")[0]
    return next((part for name, part in all_parts().items() if name.startswith(beginning)), None)
