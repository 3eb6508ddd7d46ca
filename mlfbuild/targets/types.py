"""What the CPU table and the board table hold."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Cpu:
    """A processor core as a C compiler sees it."""

    name: str
    """The project file's word: ``cortex-m4``, ``host``."""
    architecture: str
    """Arm's name of the architecture: ``armv7e-m``; ``host`` for this machine."""
    features: frozenset[str]
    """Of ``dsp`` (SMLAD and friends), ``fpu`` (single-precision hardware), ``mve`` (Helium, integer and float)."""
    flags: tuple[str, ...]
    """GCC's own words for the core; the toolchain file passes them to compiler and linker."""
    toolchain: str | None
    """File name in ``cmake/toolchains``; ``None`` for the host's own compiler."""


@dataclass(frozen=True)
class Memory:
    """One region of a board's memory map: name in linker scripts, first address, bytes."""

    name: str
    origin: int
    size: int


@dataclass(frozen=True)
class Board:
    """A board that QEMU emulates and ``mlfbuild/runtime/board`` supports."""

    name: str
    """QEMU's machine name: ``mps2-an386``."""
    cpu: str
    flash: Memory
    """Where vectors, code and constants lie."""
    ram: Memory
    """Where data, arenas, heap and stack lie."""
