"""Compare the sections of models in an image with its memory regions, its heap and its stack.

Heap and stack are found by the symbols that linker scripts define for start-up code and C libraries.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mlfbuild.core import CheckFailedError, Diagnostic, listed, printable
from mlfbuild.jobs import COMPARED, check_models
from mlfbuild.library.cgen import WORKSPACE_SECTION
from mlfbuild.report.sizes.image import Image, Section
from mlfbuild.report.sizes.images import ImageSizes
from mlfbuild.report.sizes.linker_map import InputSection, LinkerMap, Region
from mlfbuild.report.sizes.memories import memory_faults
from mlfbuild.report.sizes.owners import CODE, DATA, TABLES, is_c_library, known_content, module_of

# No standard has these names. They are those of CMSIS, of vendors' scripts and of the systems in the comments.
_HEAP_STARTS = (
    "__HeapBase", "__heap_start__", "__heap_start", "_heap_start", "__heap_base", "_heap_begin", "_sheap",
    "_pvHeapStart",
)  # fmt: skip
_HEAP_ENDS = (
    "__HeapLimit", "__heap_end__", "__heap_end", "_heap_end", "__heap_limit", "_eheap", "_pvHeapLimit",
)  # fmt: skip
_IMPLIED_HEAPS = (
    ({"rt_system_heap_init", "rt_system_heap_init_generic"}, ("__bss_end", "__bss_end__", "_ebss")),  # RT-Thread
    ({"umm_initialize", "kumm_initialize", "mm_initialize"}, ("_ebss",)),  # NuttX; its idle stack comes first
    ({"_tx_initialize_kernel_enter"}, ("__RAM_segment_used_end__",)),  # ThreadX: memory for the application
    ({"_sbrk", "sbrk", "_sbrk_r"}, ("end", "_end", "__end__")),  # newlib
)
"""Functions of a system, and the symbols at which it begins to use memory, up to the end of the region."""
_STACK_LIMITS = ("__StackBottom", "__StackLimit", "__stack_limit", "__stack_limit__", "_sstack")
_STACK_TOPS = (
    "__StackTop", "__stack_top", "__stack_top__", "_estack", "_stack_top", "_vStackTop", "__stack_end__", "__stack",
    "_sp",
)  # fmt: skip
_STACK_SIZES = (
    "_Min_Stack_Size", "__stack_size__", "__stack_size", "_stack_size", "_system_stack_size", "__STACK_SIZE",
    "__StackSize", "_StackSize", "Stack_Size", "STACK_SIZE", "MLF_STACK_SIZE",
)  # fmt: skip
_LARGEST_STACK = 1 << 24
"""Symbols further apart do not belong together."""
_TASKS = (
    "xTaskCreate", "xTaskCreateStatic", "rt_thread_init", "rt_thread_create", "_tx_thread_create", "osThreadNew",
    "nxtask_init", "z_setup_new_thread", "OSTaskCreate",
)  # fmt: skip
"""Functions that create a task with a separate stack."""


@dataclass(frozen=True)
class AddressRange:
    """A part of the memory."""

    start: int
    end: int
    """The first address after it."""
    symbol: str
    """The symbol that defines its start, or its size."""

    @property
    def size(self) -> int:
        """Bytes."""
        return self.end - self.start


def heap_of(image: Image, regions: Sequence[Region]) -> AddressRange | None:
    """Return the memory that the heap of ``image`` may grow into; ``None`` without a heap, or if it is unknown.

    It ends at a symbol, at the stack, or at the end of its memory region, whichever comes first.
    """
    functions = {symbol.name for symbol in image.symbols if symbol.function}
    names = [*_HEAP_STARTS, *(name for users, starts in _IMPLIED_HEAPS if users & functions for name in starts)]
    # Explicit symbols before implied ones: a script that names its heap knows best.
    start = _first(image.labels, names)
    if start is None:
        return None
    begin, stack = image.labels[start], stack_of(image)
    ends = [image.labels[name] for name in _HEAP_ENDS if name in image.labels]
    ends += [region.end for region in regions if region.start <= begin < region.end]
    ends += [stack.start] if stack is not None else []
    end = min((end for end in ends if end > begin), default=None)
    return None if end is None else AddressRange(begin, end, start)


def stack_of(image: Image) -> AddressRange | None:
    """Return the stack that the linker script reserves for ``main``; ``None`` if no symbols define it."""
    labels = image.labels
    top, limit, size = (_first(labels, names) for names in (_STACK_TOPS, _STACK_LIMITS, _STACK_SIZES))
    if top is None:
        return None
    if limit is not None and 0 < labels[top] - labels[limit] <= _LARGEST_STACK:
        return AddressRange(labels[limit], labels[top], size or limit)
    if size is not None and 0 < labels[size] <= min(_LARGEST_STACK, labels[top]):
        return AddressRange(labels[top] - labels[size], labels[top], size)
    return None


def task_function(image: Image) -> str | None:
    """Return the function that creates tasks with separate stacks; ``None`` without an RTOS."""
    functions = {symbol.name for symbol in image.symbols if symbol.function}
    return next((name for name in _TASKS if name in functions), None)


def _first(labels: Mapping[str, int], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in labels), None)


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
    faults += _weights_in_ram(data, regions, image.sections)
    faults += memory_faults(found.memory_uses)
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
    if data.orphan and data.section.code and known_content(data.name) is None:
        reason = f"{data.title} are not mentioned in the linker script, so this code runs from flash"
        hint = f"add *({data.name}) beside *(.data) in the linker script; mlfbuild's boards have .ramfunc there"
        yield Diagnostic("code-not-placed", place=place, reason=reason, hint=hint)


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


def _weights_in_ram(
    data: Sequence[_Data], regions: Sequence[Region], sections: Sequence[Section]
) -> Iterator[Diagnostic]:
    """Yield the models whose constants are in RAM, except those whose code is also there."""
    rams = [
        region
        for region in regions
        if any(section.ram and region.start <= section.address < region.end for section in sections)
    ]

    def in_ram(each: _Data) -> bool:
        return each.section.ram > 0 or any(region.start <= each.start < region.end for region in rams)

    # If the user has placed a model in RAM as a whole, for speed, its constants are meant to be there.
    executed = {each.model for each in data if known_content(each.name) == CODE and in_ram(each)}
    found: dict[str, list[_Data]] = {}
    for each in data:
        if known_content(each.name) == TABLES and each.model not in executed and in_ram(each):
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
