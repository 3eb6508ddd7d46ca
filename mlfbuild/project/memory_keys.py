"""The keys of a target's memories, and of a model's share of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from mlfbuild.core import Mistake, in_quotes, is_reserved_in_c
from mlfbuild.core.keys import NOT_EMPTY, Keys, PathText, Rule, Size, TextOr
from mlfbuild.library.keys import SECTION
from mlfbuild.targets import Address, MemoryKeys

_PATTERN = r"[a-z][a-z0-9_]*"
_ARGUMENTS = ("inputs", "outputs")
"""Arguments of the function that runs a model, whose workspaces have the names of memories."""


def _name(value: str) -> Mistake | None:
    import re

    if not re.fullmatch(_PATTERN, value):
        hint = "use lower-case letters, digits and _, a letter first"
        return Mistake("invalid-name", reason=f"{in_quotes(value)} cannot name a memory", hint=hint)
    if value in _ARGUMENTS or is_reserved_in_c(value):
        reason = f"{in_quotes(value)} cannot name a memory, because the name is also an argument in C"
        return Mistake("reserved-name", reason=reason, hint="choose another name")
    return None


MEMORY_NAME = Rule(_name, {"pattern": f"^{_PATTERN}$"})


@dataclass(frozen=True)
class TargetMemoryKeys(MemoryKeys):
    """A memory of a target; a value that is left out is that of its part or board."""

    TITLE = "target-memory"

    origin: Address | None = None
    """First address: 0x20000000. Default: that of the board."""
    section: Annotated[str, SECTION] | None = None
    """Linker section of arenas: .dtcm. Default: .mlf_<memory>, or .bss.noinit.tvm in the main RAM."""
    read_only: bool | None = None
    """Whether it has no arenas. Default: false, but true for memories with code."""


TargetMemories = Annotated[
    Mapping[Annotated[str, MEMORY_NAME], TargetMemoryKeys],
    TextOr(PathText, Annotated[Mapping[Annotated[str, MEMORY_NAME], TargetMemoryKeys], NOT_EMPTY], wrap=lambda _: {}),
]
"""By name. The text is a linker script, which ``memory_script`` has replaced by its memories before this is read."""
_Names = Annotated[tuple[Annotated[str, MEMORY_NAME], ...], NOT_EMPTY]
ModelMemories = Annotated[
    Mapping[str, int | None],
    TextOr(
        _Names,
        Annotated[Mapping[Annotated[str, MEMORY_NAME], Size], NOT_EMPTY],
        wrap=dict.fromkeys,
    ),
]
"""The model's share of each memory in bytes; ``None`` for all of it."""


@dataclass(frozen=True)
class WeightKeys(Keys):
    """Fast memory for weights that the code copies from flash."""

    TITLE = "weights"

    memory: Annotated[str, MEMORY_NAME]
    """One of the memories of the target: dtcm"""
    copy: Size = 0
    """Bytes for weights that are copied before the first run: 24 KiB"""
    stream: Size = 0
    """Bytes of the workspace through which others are copied in each run, before they are needed: 8 KiB"""


MemoryLimits = Mapping[Annotated[str, MEMORY_NAME], Size]
"""Budgets by memory, in bytes."""
