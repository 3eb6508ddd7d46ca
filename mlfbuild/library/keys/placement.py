"""Linker sections of a model's data and code, by class, and what a section with a given name can contain.

A section contains code or constants, which are in the image, or memory, which is not. Compilers refuse a section with
two of them in one source file; linkers merge them from two files silently, so that constants are lost or memory takes
flash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated, Any

from mlfbuild.core import Mistake
from mlfbuild.core.keys import DERIVED, Convert, Keys, TextOr, named
from mlfbuild.library.names import SHARED_WORKSPACE

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
    """Return why no section called ``section`` can contain functions, constants, or a workspace or a state.

    ``content`` is what the caller wants to put there. ``None`` if it fits: other names of sections may contain
    anything.
    """
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


def shared_section(section: str, model: str) -> str:
    """Return the section of the arena that ``model`` shares in the memory of ``section``: ``.dtcm.shared.kws``."""
    return f"{section}.shared.{model}"


PARAMS = "params"
CONSTANT_CLASSES = ("weights", "biases", "tables")
"""Classes of constants: filters, matrices and constant tensors; biases and scales; lookup tables and the rest."""
MEMORY_CLASSES = ("workspace", "state")
"""Classes of static memory: needed only during a run, and kept by a streaming network between runs."""
# For flash with wait states: start-up code of most vendors copies a section such as .ramfunc to RAM.
CODE = "code"
"""The class of functions."""

Section = Annotated[str, SECTION]


def content_of(name: str) -> SectionContent:
    """Return what the sections of the class ``name`` contain."""
    if name == CODE:
        return SectionContent.CODE
    return SectionContent.MEMORY if name in MEMORY_CLASSES else SectionContent.CONSTANTS


@dataclass(frozen=True)
class ConstantSections(Keys):
    """Linker sections of constants, by class."""

    TITLE = "params"

    weights: Section | None = None
    """Section of filters, matrices and constant tensors."""
    biases: Section | None = None
    """Section of biases and scales."""
    tables: Section | None = None
    """Section of lookup tables and all other constants."""


@dataclass(frozen=True)
class Placement(Keys):
    """Linker sections for a model's data and code, so that a linker script can place them."""

    TITLE = "placement"

    params: Annotated[str | None, TextOr(Section, ConstantSections)] = None
    """Section of the constants, or one section for each class of constants: .mlf_params"""
    workspace: Section | None = None
    """Section of the workspace: .bss.dtcm"""
    shares_workspace: int = field(default=0, metadata=DERIVED)
    """The number of the workspace that it shares, if it is one of ``share-workspace``; ``workspace`` is ``None`` then.

    All models share number 1, except those that may run at the same time (``concurrent``).
    """
    weights: str | None = field(default=None, metadata=DERIVED)
    biases: str | None = field(default=None, metadata=DERIVED)
    tables: str | None = field(default=None, metadata=DERIVED)
    """Sections of classes of constants, instead of ``params``."""
    state: Section | None = None
    """Section of the state that a streaming network keeps between runs: .bss.dtcm"""
    code: Section | None = None
    """Section of the operators' functions, which start-up code copies to RAM: .ramfunc"""

    def constants(self, name: str) -> str | None:
        """Return the section of the constants of the class ``name``, ``None`` for the compiler's default.

        ``name`` is one of ``CONSTANT_CLASSES``. A section for the class takes precedence over that for all
        constants.
        """
        # A section for one class of constants takes precedence over the section for all constants.
        section: str | None = getattr(self, name)
        return section or self.params

    @property
    def shared_workspace(self) -> str:
        """The name in C of the workspace that the model shares; empty if it has its own."""
        more = f"_{self.shares_workspace}" if self.shares_workspace > 1 else ""
        return f"{SHARED_WORKSPACE}{more}" if self.shares_workspace else ""

    @property
    def sections(self) -> Mapping[str, str]:
        """The named sections, by class or ``params``."""
        return {name: section for name, section in vars(self).items() if isinstance(section, str)}

    @property
    def names_constants(self) -> bool:
        """Whether any class of constants has a named section."""
        return any(content_of(name) is SectionContent.CONSTANTS for name in self.sections)

    def problems(self) -> Iterator[tuple[str, Mistake]]:
        """Yield (class, mistake) for each section that cannot contain that class.

        Of two classes in one section with other contents, the second is the mistake. Classes are the names of
        fields, or ``params``.
        """
        contents: dict[str, SectionContent] = {}
        for name, section in self.sections.items():
            content = content_of(name)
            mistake = section_problem(section, content)
            # The first class with a section decides what is in it, and the second one is reported.
            first = contents.setdefault(section, content)
            if mistake is not None:
                yield name, mistake
            elif first is not content:
                reason = f"{section} cannot contain both {first.value} and {content.value}"
                yield name, Mistake("mixed-section", reason=reason, hint="use two sections")
        if self.shares_workspace and self.workspace is not None:
            yield (
                "workspace",
                Mistake(
                    "shared-workspace-placed", reason="the linker places a shared workspace", hint="remove workspace"
                ),
            )


def _by_class(placement: Placement) -> Placement:
    """Return ``placement`` as read with sections by class, if ``params`` has any, in separate fields."""
    params: Any = placement.params
    return replace(placement, params=None, **vars(params)) if isinstance(params, ConstantSections) else placement


PlacementKeys = Annotated[Placement, Convert(_by_class)]
