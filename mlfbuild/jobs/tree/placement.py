"""Put sections of models into memory regions of the firmware's linker script: the files of the folder ``placement``.

The script for GNU ld is generated; the other files come from ``runtime/placement``. The script is passed after that of
the firmware, whose regions it uses and which it does not change. It does not use ``INSERT`` to order sections, because
that would also move everything read before, including the firmware's script.

Arenas that models share are sections at one address, in no segment: the loader of an emulator refuses segments that
overlap. A section behind them has as many bytes as the largest, and a segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlfbuild.core import read_bytes
from mlfbuild.jobs.tree.build_text import rendered
from mlfbuild.library.keys import shared_section, symbol_stem
from mlfbuild.targets import RUNTIME

PLACEMENT_FOLDER = "placement"
"""The folder of these files in a target's folder."""
LINKER_SCRIPT = "mlf_placement.ld"
_FILES = RUNTIME / "placement"
_HEAP_STARTS = ("end", "_end", "__end__", "__heap_start", "__HeapBase")
"""Symbols of linker scripts for the end of all variables, at which a heap begins."""


@dataclass(frozen=True)
class SharedArenas:
    """The arenas of models that never run at the same time, in sections that begin at the same address."""

    names: tuple[str, ...]
    """The sections."""
    filler: str
    """The section behind them, which has as many bytes as the largest."""
    stem: str
    """The name of its segment, and the stem of the symbol of its first byte."""

    @property
    def largest(self) -> str:
        """The bytes of the largest arena, as an expression of the linker."""
        found = "0"
        for name in self.names:
            found = f"MAX(SIZEOF({name}), {found})"
        return found


@dataclass(frozen=True)
class PlacedSection:
    """A section in a memory region of the firmware's linker script."""

    name: str
    region: str
    memory: bool
    """Whether it has a workspace or a state, for which the image has no bytes; otherwise it has constants."""
    shared_by: tuple[tuple[str, ...], ...] = ()
    """Groups of models that never run at the same time: the arenas of a group in it begin at the same address."""

    @property
    def shared(self) -> tuple[SharedArenas, ...]:
        """The arenas of each group, which are behind those of the group before."""
        return tuple(
            SharedArenas(
                tuple(shared_section(self.name, model) for model in models),
                f"{self.name}.shared{f'.{number}' if number > 1 else ''}",
                f"{self.stem}_shared{f'_{number}' if number > 1 else ''}",
            )
            for number, models in enumerate(self.shared_by, 1)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The sections in its place: itself, and those of the arenas."""
        return (self.name, *(name for arenas in self.shared for name in arenas.names))

    @property
    def stem(self) -> str:
        """The stem of its symbols, and the name of its segment."""
        return symbol_stem(self.name)

    @property
    def start(self) -> str:
        """The symbol of its first byte."""
        return f"__{self.stem}_start"

    @property
    def end(self) -> str:
        """The symbol after its last byte."""
        return f"__{self.stem}_end"


def placement_files(sections: Sequence[PlacedSection], *, on_board: bool) -> dict[str, bytes]:
    """Return the files of a target's folder that place ``sections``; none if there are no sections.

    ``on_board`` is whether the firmware uses the script of a board of mlfbuild, which defines the image's segments.
    """
    if not sections:
        return {}
    # Sorted, because the order of a folder's entries differs between file systems, and the record keeps it.
    files = {path.name: read_bytes(path, "file of the placement") for path in sorted(_FILES.iterdir())}
    files[LINKER_SCRIPT] = _script(sections, on_board).encode()
    return {f"{PLACEMENT_FOLDER}/{name}": content for name, content in sorted(files.items())}


def _script(sections: Sequence[PlacedSection], on_board: bool) -> str:
    # Reversed, so that the first section of a region is what remains.
    first = {section.region: section.name for section in reversed(sections)}
    return rendered(
        LINKER_SCRIPT, sections=sections, on_board=on_board, first=sorted(first.items()), heap_starts=_HEAP_STARTS
    )
