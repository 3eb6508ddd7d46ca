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
    reserved: int = 0
    """Bytes of ``size`` at the end of the arena, through which weights are streamed."""


@dataclass(frozen=True)
class FastWeights:
    """Memory for weights that are read more often than once, and the speeds that decide which ones it gets."""

    memory: str
    """One of the request's memories."""
    copy: int
    """Bytes for weights that are copied once, before the first run; they are not part of the arena."""
    stream: int
    """Bytes for weights that are copied in each run before they are needed: ``reserved`` of the memory."""
    source_wait: int
    """Cycles that 1,000 loads of a word wait in the memory of the constants."""
