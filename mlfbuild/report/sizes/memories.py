"""The bytes of an image in each memory that its target names: of the whole image, and of each model.

All allocated sections count that have addresses in the memory: code, constants, variables, and what a linker script
reserves. Initialised variables count twice, at their address at run time and at that of their initial values.

A memory's addresses are those that ``origin`` or the board says, and those of its region in the linker map: some
memories have two addresses (SRAM2 of an STM32L4 at 0x10000000 and 0x20040000), and both count. If neither is known, it
is the region that has the memory's section, or the section itself if the script has no regions. What nothing locates is
a ``problem`` and no size: a budget must not pass because a name was not found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mlfbuild.core import Diagnostic
from mlfbuild.project import TargetMemory
from mlfbuild.report.sizes.image import Image, Section
from mlfbuild.report.sizes.linker_map import InputSection, LinkerMap
from mlfbuild.report.sizes.owners import module_of

_Range = tuple[int, int]
"""First address, and the one after the last."""
_MAIN = "ram"


@dataclass(frozen=True)
class MemoryUse:
    """The use of a memory by an image, in bytes."""

    name: str
    size: int
    """Of the memory; 0 if unknown."""
    used: int = 0
    models: Mapping[str, int] = field(default_factory=dict)
    """By model, without models that take nothing."""
    sections: Mapping[str, int] = field(default_factory=dict)
    """By output section, or load address of one."""
    problem: str = ""
    """Why its use is not known; empty if it is."""
    outside: bool = False
    """Whether that is because arenas of models are at other addresses."""

    def bytes_of(self, model: str) -> int:
        """Return the bytes of ``model``, or of the whole image for an empty name."""
        return self.models.get(model, 0) if model else self.used


def memory_uses(
    memories: Sequence[TargetMemory], image: Image, linked: LinkerMap, modules: Mapping[str, str]
) -> tuple[MemoryUse, ...]:
    """Return the use of each of ``memories``; ``modules`` has the model by the name of each of its modules."""
    return tuple(_use(memory, image, linked, modules) for memory in memories)


def memory_faults(uses: Sequence[MemoryUse]) -> Iterator[Diagnostic]:
    """Yield a fault for each memory whose arenas are elsewhere, or that has fewer bytes than the image takes of it."""
    for use in uses:
        if use.outside:
            hint = "link mlf::placement, or correct origin, section or regions of the target"
            yield Diagnostic("arena-elsewhere", place=f"memory {use.name}", reason=use.problem, hint=hint)
        # A linker script may give the region more bytes than the project file gives the memory.
        if 0 < use.size < use.used:
            reason = f"the image takes {use.used:,} bytes of {use.size:,}"
            hint = "correct size in memories of the target, or limit models with their key memories"
            yield Diagnostic("memory-overflows", place=f"memory {use.name}", reason=reason, hint=hint)


def _use(memory: TargetMemory, image: Image, linked: LinkerMap, modules: Mapping[str, str]) -> MemoryUse:
    ranges = _ranges(memory, image, linked)
    problem = _problem(memory, ranges, linked)
    if problem:
        return MemoryUse(memory.name, memory.size, problem=problem, outside=bool(ranges))
    sections = {
        section.name: size
        for section in image.sections
        if (size := sum(_within(span, ranges) for span in _spans(section, section.address, section.size)))
    }
    outputs = {section.name: section for section in image.sections}
    models: dict[str, int] = {}
    for part in linked.sections:
        model, output = modules.get(module_of(part)), outputs.get(part.output)
        if model is not None and output is not None:
            size = sum(_within(span, ranges) for span in _spans(output, part.address, part.size))
            models[model] = models.get(model, 0) + size
    found = {model: size for model, size in models.items() if size}
    return MemoryUse(memory.name, memory.size, sum(sections.values()), found, sections)


def _spans(section: Section, address: int, size: int) -> Iterator[_Range]:
    """Yield the addresses of ``size`` bytes of ``section``: at run time, and those of their initial values."""
    yield address, address + size
    if section.copied:
        load = section.load_address + address - section.address
        yield load, load + size


def _within(span: _Range, ranges: Sequence[_Range]) -> int:
    return sum(max(0, min(span[1], end) - max(span[0], start)) for start, end in ranges)


def _ranges(memory: TargetMemory, image: Image, linked: LinkerMap) -> list[_Range]:
    """Return the addresses of ``memory``, without overlaps; empty if they are not known."""
    found = [] if memory.origin is None else [(memory.origin, memory.origin + memory.size)]
    regions = {region.name: region for region in linked.regions}
    lower = {name.lower(): region for name, region in regions.items()}
    named = regions.get(memory.region) or lower.get(memory.name)
    if named is not None:
        found.append((named.start, named.end))
    if not found:
        inside = [part.address for part in _arenas(memory, linked)]
        found = [(each.start, each.end) for each in linked.regions if any(each.start <= at < each.end for at in inside)]
    if not found and memory.main and _MAIN in lower:
        found = [(lower[_MAIN].start, lower[_MAIN].end)]
    if not found and not linked.regions:
        found = [(each.address, each.address + each.size) for each in image.sections if each.name == memory.section]
    return _joined(found)


def _joined(ranges: Sequence[_Range]) -> list[_Range]:
    joined: list[_Range] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _arenas(memory: TargetMemory, linked: LinkerMap) -> list[InputSection]:
    return [part for part in linked.sections if part.name == memory.section]


def _problem(memory: TargetMemory, ranges: Sequence[_Range], linked: LinkerMap) -> str:
    if not ranges:
        what = f"no region {memory.region} and no section {memory.section}"
        return f"its addresses are not known: origin is not given, and the link has {what}"
    arenas = [] if memory.read_only else _arenas(memory, linked)
    if arenas and not any(_within((part.address, part.address + 1), ranges) for part in arenas):
        where = ", ".join(f"{start:#010x} to {end - 1:#010x}" for start, end in ranges)
        return f"its section {memory.section} is at {arenas[0].address:#010x}, outside of {where}"
    return ""
