"""The memories of a target that its models and images use: their sections, and the RAM that an arena may take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mlfbuild.jobs.tree.placement import PlacedSection
from mlfbuild.library.keys import MEMORY_CLASSES
from mlfbuild.project import (
    ModelSpec,
    Project,
    TargetMemory,
    TargetSpec,
    chosen_memories,
    memories_of,
    only_memory,
    sharing_groups,
)
from mlfbuild.targets import BOARDS


def named_memories(project: Project, target: TargetSpec) -> tuple[TargetMemory, ...]:
    """Return the memories that the target, or a model or a budget on it, names."""
    if target.cpu == "host":
        return ()
    models = project.models_on(target.name)
    images = [each for each in project.firmware.values() if target.name in each.targets]
    budgets = [*(each.budget for each in models), *(each.budget for each in images)]
    names = {*target.memories, *(name for each in models for name in each.memories)}
    names |= {name for each in budgets for name in each.memories}
    return tuple(memory for memory in memories_of(target) if memory.name in names) if names else ()


def placed_sections(project: Project, target: TargetSpec) -> Iterator[PlacedSection]:
    """Yield the sections that the target assigns to memory regions."""
    models = project.models_on(target.name)
    placements = [model.placement for model in models]
    memory = {section for one in placements for kind, section in one.sections.items() if kind in MEMORY_CLASSES}
    arenas = {model.name: _arenas(model, target) for model in models}
    own = {each.section: each.region for memories in arenas.values() for each in memories if each.placed}
    used = {*own, *(section for one in placements for section in one.sections.values())}
    if target.npu is not None and target.npu.fast_section:
        memory.add(target.npu.fast_section)
        used.add(target.npu.fast_section)
    unused = {each.section for each in memories_of(target)} - used if target.memories else set()
    # A model may use memories of a board or a part that the target does not list.
    for section, region in {**own, **target.regions}.items():
        if section not in unused:
            here = [model for model in models if any(each.section == section for each in arenas[model.name])]
            turns = tuple(tuple(model.name for model in group) for group in sharing_groups(here))
            yield PlacedSection(section, region, section in memory or section in own, turns)


def _arenas(model: ModelSpec, target: TargetSpec) -> list[TargetMemory]:
    """Return the memories in which ``model`` may have arenas."""
    only = only_memory(model, target) if model.memories else None
    return [only] if only is not None else chosen_memories(model, target)


def ram_limit(model: ModelSpec, target: TargetSpec, shares: Mapping[str, int]) -> tuple[int | None, str]:
    """Return the size of the memory in which the workspace of ``model`` is placed, and its name unless it is a board's.

    The size is the model's share of a memory of the target, or that of the board. It is ``None`` without either, and
    for models in several memories, whose sizes the compiler keeps.
    """
    only = only_memory(model, target)
    if only is not None and only.name in shares:
        return shares[only.name], only.name
    if target.board is None or chosen_memories(model, target):
        return None, ""
    board = BOARDS[target.board]
    region = target.regions.get(model.placement.workspace or "")
    return board.ram.size if region is None else board.regions[region].size, ""
