"""List what a target can name: processor cores, emulated boards and microcontrollers."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from mlfbuild.targets import BOARDS, CPUS, MCUS, all_parts


@dataclass(frozen=True)
class KnownTarget:
    """A word of the project file, and what mlfbuild knows about it; sizes in bytes, 0 if unknown."""

    key: str
    """``cpu``, ``board`` or ``mcu``."""
    name: str
    cpu: str
    flash: int = 0
    ram: int = 0
    cycles: bool = False
    """Whether its cycles are modelled."""
    title: str = ""


def known_targets(patterns: tuple[str, ...] = ()) -> list[KnownTarget]:
    """Return all of them, or those whose name begins with one of ``patterns`` (``*`` and ``?`` as in a shell)."""
    found = [KnownTarget("cpu", cpu.name, cpu.name, title=cpu.title) for cpu in CPUS.values()]
    found += [
        KnownTarget("board", board.name, board.cpu, board.flash.size, board.ram.size, title="emulated by QEMU")
        for board in BOARDS.values()
    ]
    for mcu in MCUS.values():
        flash = mcu.memory.flash.size if mcu.memory and mcu.memory.flash else 0
        ram = mcu.memory.ram.size if mcu.memory else 0
        found.append(KnownTarget("mcu", mcu.name, mcu.cpu, flash, ram, cycles=True, title=mcu.title))
    for part in all_parts().values():
        if part.name not in MCUS:
            modelled = any(part.name.startswith(name) for name in MCUS)
            flash = part.memory.flash.size if part.memory.flash else 0
            found.append(KnownTarget("mcu", part.name, part.cpu, flash, part.memory.ram.size, cycles=modelled))
    chosen = tuple(f"{pattern.lower()}*" for pattern in patterns)
    return [each for each in found if not chosen or any(fnmatchcase(each.name, pattern) for pattern in chosen)]
