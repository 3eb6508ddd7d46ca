"""The arenas of a model and their names in C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlfbuild.library import WORKSPACE_POOL
from mlfbuild.library.cgen import WORKSPACE_SECTION
from mlfbuild.library.keys import Placement
from mlfbuild.native.memory import Plan


@dataclass(frozen=True)
class PrintedWorkspace:
    """An arena and its names in C; a model has several if its tensors are in several memories."""

    model: str
    size: int
    lower_bound: int
    """Bytes in use at the same time."""
    base: int = 0
    """Its offset in the row of all arenas (``memory/arenas``)."""
    memory: str = ""
    """Empty for the only arena of a model."""
    section: str | None = None
    """``None`` for the section of the placement."""
    share: int | None = None
    """The most bytes that the model may take of the memory."""

    @property
    def parameter(self) -> str:
        """The parameter of the reentrant run functions: ``workspace``, or ``dtcm_workspace``."""
        return f"{self.memory}_workspace" if self.memory else "workspace"

    @property
    def pointer(self) -> str:
        """The pointer to its bytes in the run function: ``arena``, or ``dtcm_arena``."""
        return f"{self.memory}_arena" if self.memory else "arena"

    @property
    def type(self) -> str:
        """The union type: ``mlf_kws_workspace``, or ``mlf_kws_dtcm_workspace``."""
        return f"mlf_{self.model}_{self.parameter}"

    @property
    def variable(self) -> str:
        """The static arena: ``tvmgen_kws_workspace``, or ``tvmgen_kws_dtcm_workspace``."""
        return f"tvmgen_{self.model}_{self.parameter}"

    @property
    def macro(self) -> str:
        """The macro with the attributes of the static arena."""
        return self.variable.upper()

    def section_in(self, placement: Placement) -> str:
        """Return the section of the memory of the static arena."""
        return self.section or placement.workspace or WORKSPACE_SECTION

    def is_common(self, placement: Placement) -> bool:
        """Return whether models that share a workspace have one variable for this arena: it is in the usual RAM."""
        return self.section_in(placement) == WORKSPACE_SECTION

    @property
    def pool(self) -> str:
        """The member of the struct of memory pools."""
        return self.memory or WORKSPACE_POOL

    @property
    def size_macro(self) -> str:
        """The macro of the header with its bytes."""
        upper = f"TVMGEN_{self.model.upper()}"
        return f"{upper}_{self.memory.upper()}_WORKSPACE_POOL_SIZE" if self.memory else f"{upper}_WORKSPACE_SIZE"

    @property
    def static(self) -> str:
        """A pointer to the static arena, or ``NULL`` if there is none."""
        return f"&{self.variable}" if self.size else "NULL"

    def holds(self, position: int) -> bool:
        """Return whether ``position``, in the row of all arenas, is in this one."""
        return self.base <= position < self.base + self.size


def workspaces_of(model: str, plan: Plan) -> tuple[PrintedWorkspace, ...]:
    """Return the arenas of ``plan`` in the order of parameters; one, which may be empty, without several memories."""
    if not plan.arenas:
        return (PrintedWorkspace(model, plan.arena_size, plan.lower_bound),)
    return tuple(
        PrintedWorkspace(
            model, each.size, each.lower_bound, each.base, each.memory.name, each.memory.section,
            each.memory.size - each.state,
        )
        for each in plan.arenas
    )  # fmt: skip


def arena_at(workspaces: Sequence[PrintedWorkspace], position: int) -> PrintedWorkspace:
    """Return the arena that has ``position``; tensors without elements may be behind the last byte."""
    return next((each for each in workspaces if each.holds(position)), workspaces[-1])
