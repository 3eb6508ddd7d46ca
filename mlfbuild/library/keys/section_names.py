"""Names of linker sections, and what a section with a given name can contain.

A section contains code or constants, which are in the image, or memory, which is not. Compilers refuse a section with
two of them in one source file; linkers merge them from two files silently, so that constants are lost or memory takes
flash.
"""

from __future__ import annotations

import re
from enum import Enum

from mlfbuild.core import Mistake
from mlfbuild.core.keys import named

SECTION_NAME = re.compile(r"[A-Za-z_.][A-Za-z0-9_.]*")
"""Names that linker scripts, C attributes and assemblers all accept without quotes."""
SECTION = named("linker section", SECTION_NAME.pattern, "letters, digits, _ and ., no digit first")


class SectionContent(Enum):
    """The content of a section, as messages name it."""

    CODE = "code"
    CONSTANTS = "constants"
    MEMORY = "memory"


_RESERVED = re.compile(
    r"\.(init|fini|(pre)?init_array|fini_array|ctors|dtors|comment|note|tdata|tbss|ARM|gnu|eh_frame|symtab|strtab|"
    r"shstrtab|group|rela?|debug_\w+)(\..*)?"
)
# GCC gives sections of these names the type NOBITS, so the image has no content for them. .persistent has content.
_EMPTY = re.compile(r"\.((bss|sbss|noinit)(\..*)?|persistent\.bss)")
_READ_ONLY = re.compile(r"\.(text|rodata)(\..*)?")
_DATA = re.compile(r"\.(data|sdata|rodata)(\..*)?")
_COLLECTED = re.compile(r"\.(text|rodata|data|bss|noinit)(\..*)?|\.(isr_)?vectors?|\.stack|\.heap")


def section_problem(section: str, content: SectionContent) -> Mistake | None:
    """Return why no section called ``section`` can contain functions, constants, or a workspace or a state."""
    other = "choose another name"
    mistake = SECTION.check(section)
    # Reserved names come before the content, because nothing may be placed in them.
    if mistake is not None:
        return mistake
    if _RESERVED.fullmatch(section):
        reason = f"{section} has a special meaning to compilers and linkers"
        return Mistake("reserved-section", reason=reason, hint=other)
    if content is not SectionContent.MEMORY and _EMPTY.fullmatch(section):
        reason = f"{section} is not part of the image, so {content.value} in it would be lost"
        return Mistake(f"section-cannot-hold-{content.value}", reason=reason, hint=other)
    if content is SectionContent.CODE and _DATA.fullmatch(section):
        hint = f"{other}, such as .ramfunc, which many linker scripts copy to RAM"
        return Mistake("section-cannot-hold-code", reason=f"assemblers keep {section} for data", hint=hint)
    if content is SectionContent.MEMORY and _READ_ONLY.fullmatch(section):
        hint = f"{other}, such as .bss{section}"
        return Mistake("section-cannot-hold-memory", reason=f"{section} is read-only", hint=hint)
    return None


def is_collected(section: str) -> bool:
    """Return whether linker scripts already define ``section``, such as ``.stack``, or match it with a pattern.

    For example, ``.bss.dtcm`` and ``.stack`` are, and ``.dtcm`` is not.
    """
    return _COLLECTED.fullmatch(section) is not None


def symbol_stem(section: str) -> str:
    """Return the stem of the symbols at the ends of ``section``: ``mlf_dtcm`` for ``.dtcm`` and for ``.mlf_dtcm``."""
    return "mlf_" + section.strip(".").replace(".", "_").removeprefix("mlf_")
