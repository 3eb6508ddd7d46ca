"""List what a target can name: processor cores, boards and microcontrollers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mlfbuild.targets import (
    BOARDS,
    CPUS,
    MCUS,
    DevelopmentBoard,
    KnownPart,
    Mcu,
    all_boards,
    all_parts,
    model_of,
    part_called,
)


@dataclass(frozen=True)
class KnownTarget:
    """A word of the project file, and what mlfbuild knows about it; sizes in bytes, 0 if unknown."""

    key: str
    """``cpu``, ``board`` or ``mcu``."""
    name: str
    cpu: str
    mcu: str = ""
    """Microcontroller of a board."""
    flash: int = 0
    ram: int = 0
    cycles: bool = False
    """Whether its cycles are modelled."""
    server: str = ""
    """GDB server for the debugger on a board; ``qemu`` for an emulated board."""
    usb: str = ""
    """Regular expression for USB vendor and product of the serial port of a board's debugger."""
    title: str = ""


def known_targets(patterns: tuple[str, ...] = ()) -> list[KnownTarget]:
    """Return all of them, or those that match one of ``patterns`` (``*`` and ``?`` as in a shell).

    A pattern matches the beginning of a name or of a board's microcontroller. A pattern that matches none of them may
    match the middle of a name, and otherwise of a title: ``raspberry pi``.
    """
    found = list(_all())
    if not patterns:
        return found
    chosen: list[KnownTarget] = []
    for words in map(str.lower, patterns):
        pattern = words.replace("_", "-")
        chosen += (
            [each for each in found if _begins(each, f"{pattern}*")]
            or [each for each in found if fnmatchcase(each.name, f"*{pattern}*")]
            or [each for each in found if fnmatchcase(each.title.lower(), f"*{words}*")]
        )
    return [each for each in found if each in chosen]


def _begins(target: KnownTarget, pattern: str) -> bool:
    return fnmatchcase(target.name, pattern) or fnmatchcase(target.mcu, pattern)


def _all() -> Iterator[KnownTarget]:
    for cpu in CPUS.values():
        yield KnownTarget("cpu", cpu.name, cpu.name, title=cpu.title)
    for emulated in BOARDS.values():
        yield KnownTarget(
            "board", emulated.name, emulated.cpu, "", emulated.flash.size, emulated.ram.size,
            server="qemu", title="emulated by QEMU",
        )  # fmt: skip
    for board in all_boards().values():
        yield _board(board)
    for mcu in MCUS.values():
        yield _mcu(mcu, mcu.title, cycles=True)
    for part in all_parts().values():
        if part.name not in MCUS:
            yield _mcu(part, cycles=model_of(part.name) is not None)


def _board(board: DevelopmentBoard) -> KnownTarget:
    part = part_called(board.mcu)
    assert part is not None  # a test holds the tables together
    flash = part.memory.flash.size if part.memory.flash else 0
    return KnownTarget(
        "board", board.board, part.cpu, board.mcu, flash, part.memory.ram.size, model_of(board.mcu) is not None,
        board.server, board.usb, board.title,
    )  # fmt: skip


def _mcu(mcu: Mcu | KnownPart, title: str = "", *, cycles: bool) -> KnownTarget:
    flash = mcu.memory.flash.size if mcu.memory and mcu.memory.flash else 0
    ram = mcu.memory.ram.size if mcu.memory else 0
    return KnownTarget("mcu", mcu.name, mcu.cpu, flash=flash, ram=ram, cycles=cycles, title=title)
