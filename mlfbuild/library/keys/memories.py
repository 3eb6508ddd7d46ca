"""The memories in which a compiler may place what a model works on: tensors, scratch memory and state."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ArenaMemory:
    """A memory of the target, and the model's share of it."""

    name: str
    """Name in the project file and in C, such as ``dtcm``."""
    size: int
    """The most bytes that the model may take there."""
    section: str
    """Linker section of the static arena: ``.bss.dtcm``."""
    load_wait: int
    """Cycles that 1,000 loads of a word wait on average when bytes are read in order."""
    store_wait: int
    """Cycles that 1,000 stores of a word wait on average when bytes are written in order."""
