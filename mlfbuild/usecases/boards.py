"""List what a target can name: processor cores, emulated boards and microcontrollers."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from mlfbuild.targets import BOARDS, CPUS, MCUS, KnownPart, Mcu, all_parts, model_of


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
    found += [_mcu(mcu, mcu.title, cycles=True) for mcu in MCUS.values()]
    found += [
        _mcu(part, cycles=model_of(part.name) is not None) for part in all_parts().values() if part.name not in MCUS
    ]
    chosen = tuple(f"{pattern.lower()}*" for pattern in patterns)
    return [each for each in found if not chosen or any(fnmatchcase(each.name, pattern) for pattern in chosen)]


def _mcu(mcu: Mcu | KnownPart, title: str = "", *, cycles: bool) -> KnownTarget:
    flash = mcu.memory.flash if mcu.memory else None
    ram = mcu.memory.ram if mcu.memory else None
    return KnownTarget("mcu", mcu.name, mcu.cpu, flash.size if flash else 0, ram.size if ram else 0, cycles, title)
