"""Sections of models in test firmware, which runs on a board that may have other memory regions than the target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mlfbuild.core import write_if_changed
from mlfbuild.jobs.model_job import CompileJob, TargetJob
from mlfbuild.jobs.tree import PLACEMENT_FOLDER, PlacedSection, placement_files
from mlfbuild.library.keys import MEMORY_CLASSES, is_collected
from mlfbuild.project import memory_of_region


def run_placement(target: TargetJob, model: CompileJob, folder: Path, *, on_device: bool = False) -> Path | None:
    """Return the fragment that places sections on the board of a run, or ``on_device``; ``None`` without such sections.

    If the board is not the target's own, the fragment is written into ``folder``.
    """
    # A board that stands in for the target has none of its regions, so the sections are placed in regions of the board.
    if on_device or target.board is not None or target.run_board is None:
        return target.placement_fragment if target.placed else None
    sections = run_sections(target, model)
    for name, content in placement_files(sections, on_board=True).items():
        write_if_changed(folder / name, content)
    return folder / PLACEMENT_FOLDER / target.placement_fragment.name if sections else None


def run_sections(target: TargetJob, model: CompileJob) -> list[PlacedSection]:
    """Return the sections that are placed on the board of a run, in regions of this board.

    If the board is not the target's own, it has other regions: constants in the first memory of the microcontroller are
    in its flash, and all others in its last region, where the cycle model tells them apart by their addresses. On a
    board with flash and RAM only, the linker places them, because RAM has the heap.
    """
    board = target.run_board
    if target.board is not None or board is None:
        return list(target.placed)
    if not board.others:
        return []
    if target.mcu is None:  # its memories have no names but those of the project's regions
        flash, placed = "flash", [(section, section.region.lower()) for section in target.placed]
    else:
        flash, placed = next(iter(target.mcu.memories)), list(modelled_sections(target, model))
    return [
        replace(section, region=(board.flash if memory == flash and not section.memory else board.others[-1]).name)
        for section, memory in placed
    ]


def modelled_sections(target: TargetJob, model: CompileJob) -> Iterator[tuple[PlacedSection, str]]:
    """Yield the sections to be placed, each with its memory of the target's microcontroller.

    The firmware's own linker script places those that the target gives no region; they count as its second memory.
    Constants then count as its first one, in which a board's script puts them anyway.
    """
    mcu = target.mcu
    if mcu is None:
        return
    named = {memory.section: memory.name for memory in target.memories if memory.name in mcu.memories}
    for section in target.placed:
        memory = named.get(section.name) or memory_of_region(mcu, section.region)
        if memory is not None:
            yield section, memory
    known, second = {section.name for section in target.placed}, list(mcu.memories)[1]
    for kind, name in model.request.placement.sections.items():
        if target.board is None and kind in MEMORY_CLASSES and name not in known and not is_collected(name):
            yield PlacedSection(name, "", memory=True), second
