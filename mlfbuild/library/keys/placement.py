"""Linker sections of a model's data and code, by class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from mlfbuild.core import Mistake
from mlfbuild.core.keys import DERIVED, Convert, Keys, TextOr
from mlfbuild.library.keys.section_names import SECTION, SectionContent, section_problem

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
    shares_workspace: bool = field(default=False, metadata=DERIVED)
    """Whether the model is one of ``share-workspace``; ``workspace`` is ``None`` then."""
    weights: str | None = field(default=None, metadata=DERIVED)
    biases: str | None = field(default=None, metadata=DERIVED)
    tables: str | None = field(default=None, metadata=DERIVED)
    """Sections of classes of constants, instead of ``params``."""
    state: Section | None = None
    """Section of the state that a streaming network keeps between runs: .bss.dtcm"""
    code: Section | None = None
    """Section of the operators' functions, which start-up code copies to RAM: .ramfunc"""

    def constants(self, name: str) -> str | None:
        """Return the section of the constants of the class ``name``, ``None`` for the compiler's default."""
        # A section for one class of constants takes precedence over the section for all constants.
        section: str | None = getattr(self, name)
        return section or self.params

    @property
    def sections(self) -> Mapping[str, str]:
        """The named sections, by class or ``params``."""
        return {name: section for name, section in vars(self).items() if isinstance(section, str)}

    @property
    def names_constants(self) -> bool:
        """Whether any class of constants has a named section."""
        return any(content_of(name) is SectionContent.CONSTANTS for name in self.sections)

    def problems(self) -> Iterator[tuple[str, Mistake]]:
        """Yield (class, mistake) for each section that cannot contain that class."""
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
