"""List what a target can name: processor cores, boards and microcontrollers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from mlfbuild import targets


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
            [each for each in found if any(fnmatchcase(name, f"{pattern}*") for name in (each.name, each.mcu))]
            or [each for each in found if fnmatchcase(each.name, f"*{pattern}*")]
            or [each for each in found if fnmatchcase(each.title.lower(), f"*{words}*")]
        )
    return [each for each in found if each in chosen]


def _all() -> Iterator[KnownTarget]:
    for cpu in targets.CPUS.values():
        yield KnownTarget("cpu", cpu.name, cpu.name, title=cpu.title)
    for emulated in targets.BOARDS.values():
        yield KnownTarget(
            "board", emulated.name, emulated.cpu, "", emulated.flash.size, emulated.ram.size,
            server="qemu", title="emulated by QEMU",
        )  # fmt: skip
    for board in targets.all_boards().values():
        known = targets.part_called(board.mcu)
        assert known is not None  # a test holds the tables together
        flash, ram = _sizes(known.memory)
        yield KnownTarget(
            "board", board.board, known.cpu, board.mcu, flash, ram, targets.model_of(board.mcu) is not None,
            board.server, board.usb, board.title,
        )  # fmt: skip
    for mcu in targets.MCUS.values():
        yield _mcu(mcu, mcu.title, cycles=True)
    for part in targets.all_parts().values():
        if part.name not in targets.MCUS:
            yield _mcu(part, cycles=targets.model_of(part.name) is not None)


def _mcu(mcu: targets.Mcu | targets.KnownPart, title: str = "", *, cycles: bool) -> KnownTarget:
    flash, ram = _sizes(mcu.memory)
    return KnownTarget("mcu", mcu.name, mcu.cpu, flash=flash, ram=ram, cycles=cycles, title=title)


def _sizes(memory: targets.DeviceMemoryKeys | None) -> tuple[int, int]:
    """Return the bytes of flash and RAM, 0 if unknown."""
    return (memory.flash.size if memory.flash else 0, memory.ram.size) if memory else (0, 0)
