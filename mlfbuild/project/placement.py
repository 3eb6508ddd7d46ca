"""Linker sections of a model's data by class, and what a section of a name can hold.

A section holds either constants, which are in the image, or memory, which is not: compilers refuse a section with both
in one source, and linkers merge them from two without a word, so that constants are gone or memory takes flash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

SECTION_NAME = re.compile(r"[A-Za-z_.][A-Za-z0-9_.]*")
"""What linker scripts, C attributes and assemblers all take for the name of a section, without quotes."""

PARAMS = "params"
CONSTANT_CLASSES = ("weights", "biases", "tables")
"""Constants by what they are: filters, matrices and constant tensors; biases and rescalings; lookup tables and rest."""
MEMORY_CLASSES = ("workspace", "state")
"""Static memory: what a run alone needs, and what a streaming network keeps between runs."""

_RESERVED = re.compile(
    r"\.(init|fini|(pre)?init_array|fini_array|ctors|dtors|comment|note|tdata|tbss|ARM|gnu|eh_frame|symtab|strtab|"
    r"shstrtab|group|rela?|debug_\w+)(\..*)?"
)
_EMPTY = re.compile(r"\.(bss|sbss|noinit|persistent)(\..*)?")
_READ_ONLY = re.compile(r"\.(text|rodata)(\..*)?")
_COLLECTED = re.compile(r"\.(text|rodata|data|bss|noinit)(\..*)?|\.(isr_)?vectors?|\.stack|\.heap")


@dataclass(frozen=True)
class Placement:
    """Linker sections of a model's data; ``None`` is the compiler's default."""

    params: str | None = None
    """Of all constants whose class has none of its own."""
    workspace: str | None = None
    shares_workspace: bool = False
    """Whether its static workspace is that of all models of an image that share one; then ``workspace`` is ``None``."""
    weights: str | None = None
    biases: str | None = None
    tables: str | None = None
    state: str | None = None

    def constants(self, name: str) -> str | None:
        """Return the section of the constants of the class ``name``."""
        section: str | None = getattr(self, name)
        return section or self.params

    @property
    def sections(self) -> Mapping[str, str]:
        """The sections that are named, by class or ``params``."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: section for name, section in named.items() if isinstance(section, str)}

    @property
    def names_constants(self) -> bool:
        """Whether there is a section for constants of any class."""
        return any(name not in MEMORY_CLASSES for name in self.sections)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield (class, reason) for each section that cannot hold what it is to hold."""
        kinds: dict[str, bool] = {}
        for name, section in self.sections.items():
            memory = name in MEMORY_CLASSES
            reason = section_problem(section, memory=memory)
            if reason is not None:
                yield name, reason
            elif kinds.setdefault(section, memory) != memory:
                yield name, f"{section} cannot hold both constants and memory"
        if self.shares_workspace and self.workspace is not None:
            yield "workspace", "the linker places a workspace that models share"


def section_problem(section: str, *, memory: bool) -> str | None:
    """Return why no section called ``section`` can hold constants or, with ``memory``, a workspace or a state."""
    if not SECTION_NAME.fullmatch(section):
        return f"{section!a} is not a section name; use letters, digits, _ and ., no digit first"
    if _RESERVED.fullmatch(section):
        return f"{section} means something else to compilers and linkers; choose another name"
    if not memory and _EMPTY.fullmatch(section):
        return f"{section} is not in the image, so that constants would be lost; choose another name"
    if memory and _READ_ONLY.fullmatch(section):
        return f"{section} is read-only; choose another name, as .bss{section}"
    return None


def is_collected(section: str) -> bool:
    """Whether linker scripts have ``section`` already, as ``.stack``, or take it by a pattern: ``*(.bss .bss.*)``."""
    return _COLLECTED.fullmatch(section) is not None


def symbol_stem(section: str) -> str:
    """Return what symbols at the ends of ``section`` are named by: ``mlf_dtcm`` of ``.dtcm`` and of ``.mlf_dtcm``."""
    return "mlf_" + section.strip(".").replace(".", "_").removeprefix("mlf_")
