"""Compare the sections of models in an image with its memory regions, its heap and its stack."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mlfbuild.c_analysis import compared_objects
from mlfbuild.core import CheckFailedError, Diagnostic, listed, printable
from mlfbuild.jobs import COMPARED, check_models
from mlfbuild.library.cgen import WORKSPACE_SECTION
from mlfbuild.report.link.symbols import AddressRange, heap_of, stack_of, task_function
from mlfbuild.report.sizes.image import Image, Section
from mlfbuild.report.sizes.images import ImageSizes
from mlfbuild.report.sizes.linker_map import InputSection, LinkerMap, Region
from mlfbuild.report.sizes.memories import memory_faults
from mlfbuild.report.sizes.owners import CODE, DATA, TABLES, is_c_library, known_content, module_of


def conflict_faults(linked: LinkerMap, models: Mapping[str, str]) -> tuple[list[Diagnostic], list[str]]:
    """Return the global symbols that models share with each other or with the firmware, and what was not compared.

    ``models`` has the name of the model by the name of each of its modules. Raises as ``check_models``.
    """
    compiled: dict[str, list[Path]] = {}
    firmware: list[Path] = []
    missing: list[str] = []
    for name, (part, path) in zip(linked.files, linked.inputs(), strict=True):
        model = _model(part, models)
        # The C library defines weak symbols that firmware may replace, which is not a conflict.
        if Path(name).suffix not in COMPARED or is_c_library(part.archive):
            continue
        if path is None:
            missing.append(name)
        elif model is not None:
            compiled.setdefault(model, []).append(path)
        else:
            firmware.append(path)
    # Said, because a file that was not compared must not look like one without conflicts.
    notes = [f"symbols of {listed(missing)}: the map lists {_them(missing)}"] if missing else []
    try:
        check_models(compiled, "", firmware)
    except CheckFailedError as mistake:
        return [Diagnostic(mistake.code, place="symbols", reason=mistake.reason, hint=mistake.hint)], notes
    return [], notes


def _model(part: InputSection, models: Mapping[str, str]) -> str | None:
    """Return the model of a file; of a library, also if the firmware defines all that it could add to the image."""
    module = module_of(part)
    own = part.archive and module and not module.startswith("dep_")
    return models.get(module, module if own else None)


def _them(files: Sequence[str]) -> str:
    return "them, but there are no such files" if len(files) > 1 else "it, but there is no such file"


_ZEROED = (
    ("__bss_start__", "__bss_end__"), ("__bss_start", "__bss_end"), ("_sbss", "_ebss"), ("__zero_start", "__zero_end"),
)  # fmt: skip
"""Symbols around the memory that start-up code sets to zero."""
_AMPLE = 16384
"""Bytes of a stack that builds do not compare with worst cases, because disassembling an image takes time.

Models need a few hundred bytes, or some thousand without optimisation; this is the default of mlfbuild's boards."""


@dataclass(frozen=True)
class LinkFaults:
    """The result of the checks of a link."""

    faults: tuple[Diagnostic, ...]
    notes: tuple[str, ...] = ()
    """Checks that were not made, each with the reason."""


@dataclass(frozen=True)
class _Data:
    """The input sections of one name that a model has in one output section."""

    model: str
    section: Section
    parts: tuple[InputSection, ...]

    @property
    def name(self) -> str:
        return self.parts[0].name

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def start(self) -> int:
        return self.parts[0].address

    @property
    def end(self) -> int:
        return self.parts[-1].address + self.parts[-1].size

    @property
    def orphan(self) -> bool:
        return self.parts[0].orphan

    @property
    def title(self) -> str:
        return f"{self.size:,} bytes of {self.name} at {self.start:#x}"


@functools.lru_cache(maxsize=8)
def link_faults(found: ImageSizes, *, quick: bool = False) -> LinkFaults:
    """Return the faults of the link of an image, for the data of its models.

    A fault is a ``Diagnostic`` with a stable code, such as ``section-overlaps-heap``; the notes say which checks were
    not made. Symbols are compared only for images without a project, because builds of projects compare them. With
    ``quick``, stacks of 16 KiB and more are not compared with the worst case of the models.

    Raises as ``compared_objects`` if a linked file is damaged.
    """
    image, regions = found.image, found.linker_map.regions
    data = list(_data_of(found))
    notes = list(models_without_code(found))
    heap, stack = heap_of(image, regions), stack_of(image)
    faults = [fault for each in data for fault in _misplaced(each, regions, heap, stack, image.labels)]
    faults += _loading_faults(data, regions, image)
    faults += memory_faults(found.memory_uses)
    faults += _hook_faults(found)
    if stack is not None and not (quick and stack.size >= _AMPLE):
        task = task_function(image)
        if task is None:
            faults += _stack_faults(found, stack)
        elif found.sizes.models:
            notes.append(f"stack: the image has tasks ({task}); compare the stack of the task that runs a model")
    if found.job is None:
        conflicts, more = conflict_faults(found.linker_map, found.modules)
        faults += conflicts
        notes += more
    place = image.path.name
    return LinkFaults(tuple(replace(each, place=f"{place}: {each.place}") for each in faults), tuple(notes))


def _hook_faults(found: ImageSizes) -> Iterator[Diagnostic]:
    """Yield the fault of a check of blobs in a static library that the linker did not take.

    Linkers search libraries only for names without a definition, and the model has a weak one.
    """
    hooks = {f"mlf_{module}_check_parameters": model for module, model in found.modules.items()}
    weak = {symbol.name for symbol in found.image.symbols if symbol.weak} & set(hooks)
    for part, path in found.linker_map.inputs() if weak else ():
        if path is None or path.suffix != ".a" or module_of(part) or is_c_library(part.archive):
            continue
        for each in compared_objects(None, path):
            for name in sorted(weak & each.symbols.defined):
                yield Diagnostic(
                    "check-parameters-not-linked",
                    place=f"model {hooks[name]}",
                    reason=f"{name} of {each.place} is not in the image, and the default accepts every blob",
                    hint="compile it as a source of the image, because linkers do not search libraries for it",
                )


def models_without_code(found: ImageSizes) -> Iterator[str]:
    """Yield a note for each model that the image was linked with, but that has no code in it, with the reason.

    Such a model takes no flash, so it is within each budget, and no report shows it.
    """
    called = {owner.name for owner in found.sizes.models if owner.of_kind(CODE)}
    linked = (module_of(part) for part, _ in found.linker_map.inputs())
    declared = found.job.models if found.job else ()
    for name in dict.fromkeys([*(found.modules.get(module, module) for module in linked if module), *declared]):
        if name in found.sizes.mixed:
            yield f"model {name}: link-time optimisation mixed its code with other code, so its size is unknown"
        elif name not in called and not name.startswith("dep_"):
            yield f"model {name}: no code of it is in the image, because nothing calls it; it takes no flash"


def _data_of(found: ImageSizes) -> Iterator[_Data]:
    sections = {section.name: section for section in found.image.sections}
    groups: dict[tuple[str, str, str], list[InputSection]] = {}
    for part in found.placed:
        model = found.modules.get(module_of(part))
        if model is not None and part.output in sections:
            groups.setdefault((model, part.output, part.name), []).append(part)
    for (model, output, _), parts in groups.items():
        yield _Data(model, sections[output], tuple(sorted(parts, key=lambda part: part.address)))


def _misplaced(
    data: _Data,
    regions: Sequence[Region],
    heap: AddressRange | None,
    stack: AddressRange | None,
    labels: Mapping[str, int],
) -> Iterator[Diagnostic]:
    place = f"model {data.model}"
    if regions and not any(region.start <= data.start and data.end <= region.end for region in regions):
        yield Diagnostic(
            "section-outside-memory",
            place=place,
            reason=f"{data.title} are in no memory region of the linker script",
            hint=_placing(data) if data.orphan else f"assign {data.section.name} to a region that is large enough",
        )
    if stack is not None and data.start < stack.end and stack.start < data.end:
        yield Diagnostic(
            "section-overlaps-stack",
            place=place,
            reason=f"{data.title} overlap the stack, which is from {stack.start:#x} to {stack.end:#x} ({stack.symbol})",
            hint=_placing(data) if data.orphan else "reduce what is in this memory region, or use a larger one",
        )
    elif heap is not None and data.start < heap.end and heap.start < data.end:
        yield Diagnostic(
            "section-overlaps-heap",
            place=place,
            reason=f"{data.title} overlap the heap, which begins at {heap.start:#x} ({heap.symbol})",
            hint=_placing(data) if data.orphan else f"define {heap.symbol} after {data.section.name}",
        )
    if data.orphan and known_content(data.name) == DATA and not _initialised(data, labels):
        yield Diagnostic(
            "section-not-initialised",
            place=place,
            reason=f"{data.title} are not mentioned in the linker script, so start-up code does not initialise them",
            hint=_placing(data),
        )
    if data.orphan and known_content(data.name) is None:
        yield from _not_placed(data, place)


def _not_placed(data: _Data, place: str) -> Iterator[Diagnostic]:
    """Yield the fault of a section that a placement named and the script does not."""
    reason = f"{data.title} are not mentioned in the linker script, "
    if data.section.code:
        hint = f"add *({data.name}) beside *(.data) in the linker script; mlfbuild's boards have .ramfunc there"
        yield Diagnostic("code-not-placed", place=place, reason=f"{reason}so this code runs from flash", hint=hint)
    else:
        hint = f"add a rule for {data.name} to the linker script, or its region to regions of the target"
        yield Diagnostic("data-not-placed", place=place, reason=f"{reason}so the linker chose their place", hint=hint)


def _placing(data: _Data) -> str:
    """Return the hint for an orphan section."""
    family = ".data" if data.name.startswith(".data") else ".bss" if data.section.zero else ".rodata"
    return f"add *({data.name}) beside *({family}) in the linker script, which does not mention it"


def _initialised(data: _Data, labels: Mapping[str, int]) -> bool:
    """Return whether start-up code sets the initial values of an orphan section, or does not have to."""
    # Workspaces are written before they are read.
    if data.name.startswith((WORKSPACE_SECTION, ".noinit", ".bss.noinit")):
        return True
    pairs = [(labels[start], labels[end]) for start, end in _ZEROED if start in labels and end in labels]
    return data.section.zero and any(start <= data.start and data.end <= end for start, end in pairs)


_RAM_NAME = re.compile(r"(?<![fmv])ram|ccm|tcm", re.IGNORECASE)
"""Names of memory regions that lose their content without power, unlike FRAM, MRAM and NVRAM."""


def _loading_faults(data: Sequence[_Data], regions: Sequence[Region], image: Image) -> Iterator[Diagnostic]:
    """Yield the models whose constants are in RAM, and data in RAM that nothing loads.

    A model whose code is also in RAM has been placed there as a whole, for speed, or the debugger loads the image.
    """
    memory = [
        symbol.address for symbol in image.symbols if "workspace" in symbol.name or symbol.name.endswith("_state")
    ]
    rams = [
        region
        for region in regions
        # Flash may also have sections without bytes, such as those for settings that the firmware stores.
        if not region.read_only
        and (
            _RAM_NAME.search(region.name)
            or any(section.ram and region.start <= section.address < region.end for section in image.sections)
        )
    ]

    def in_ram(each: _Data) -> bool:
        return each.section.ram > 0 or any(region.start <= each.start < region.end for region in rams)

    executed = {each.model for each in data if known_content(each.name) == CODE and in_ram(each)}
    found: dict[str, list[_Data]] = {}
    for each in data:
        if each.model in executed or not in_ram(each):
            continue
        if not each.section.zero and not each.section.copied:
            # Constants that a placement names may be loaded from a file of their own (`params-binary`).
            if known_content(each.name) is not None or any(each.start <= at < each.end for at in memory):
                yield _not_loaded(each)
        elif known_content(each.name) == TABLES:
            found.setdefault(each.model, []).append(each)
    for model, constants in found.items():
        names = ", ".join(dict.fromkeys(each.name for each in constants))
        yield Diagnostic(
            "weights-in-ram",
            place=f"model {model}",
            reason=f"{sum(each.size for each in constants):,} bytes of constants ({names}) take RAM, in "
            + ", ".join(dict.fromkeys(each.section.name for each in constants)),
            hint=f"add *({constants[0].name}) to an output section in flash, before the pattern that selects it; to "
            "keep them in RAM, place them in a section .data.<name> with the key placement",
        )


def _not_loaded(data: _Data) -> Diagnostic:
    name = data.section.name
    return Diagnostic(
        "section-not-loaded",
        place=f"model {data.model}",
        reason=f"{data.title} are in RAM, and flash has no copy of them, so nothing loads them",
        hint=f"write {name} (NOLOAD) in the linker script if it has only memory, such as workspaces; or AT> and a "
        "region of flash, and copy it in start-up code",
    )


def _stack_faults(found: ImageSizes, stack: AddressRange) -> Iterator[Diagnostic]:
    from mlfbuild.report.stack.image import stacks  # disassembles the image

    for name, depth in stacks(found).by_name.items():
        if depth.size is not None and depth.size > stack.size:
            yield Diagnostic(
                "stack-too-small",
                place=f"model {name}" if name else "main",
                reason=f"needs {depth.size:,} bytes of stack in the worst case, but the linker script reserves "
                f"{stack.size:,} ({stack.symbol})",
                hint=f"reserve {depth.size:,} bytes, and more for {'callers and ' if name else ''}interrupts",
            )


def link_faults_text(found: LinkFaults) -> Iterator[str]:
    """Yield a paragraph with the faults of a link, and one with what was not checked, if there are any.

    Each fault is a line with its code, which is stable, its place, its reason and its hint.
    """
    if found.faults:
        yield "\n".join(["faults of the link", *(f"  {fault.code}: {fault}" for fault in found.faults)])
    if found.notes:
        yield "\n".join(["not checked in the link", *(f"  {note}" for note in found.notes)])


def link_faults_json(found: LinkFaults) -> dict[str, Any]:
    """Return the result of the checks as entries of an image in the JSON form of a report."""
    return {"faults": [asdict(fault) for fault in found.faults], "not_checked": list(found.notes)}


def link_faults_in(image: Mapping[str, Any]) -> LinkFaults:
    """Return the result of the checks of an image from the JSON form of a report."""
    found = (
        SimpleNamespace(**{key: printable(text) for key, text in fault.items()}) for fault in image.get("faults", ())
    )
    faults = (Diagnostic(mistake.code, mistake.place, reason=mistake.reason, hint=mistake.hint) for mistake in found)
    return LinkFaults(tuple(faults), tuple(map(printable, image.get("not_checked", ()))))
