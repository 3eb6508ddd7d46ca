"""What the CPU table and the board table hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

GCC, CLANG = "gcc", "clang"
"""Families of C compilers, as the project file calls them."""


@dataclass(frozen=True)
class Cpu:
    """A processor core as a C compiler sees it."""

    name: str
    """The project file's word, as GCC's ``-mcpu`` spells it: ``cortex-m4``, ``cortex-m4+nofp``; ``host``."""
    title: str
    """What it is, for people: ``Cortex-M4 with its single-precision FPU``."""
    architecture: str
    """The name of the architecture: ``armv7e-m``, ``rv32imc``; ``host`` for this machine."""
    features: frozenset[str]
    """Of ``dsp`` (SMLAD and friends), ``fpu`` (single-precision hardware), ``mve`` (Helium, integer and float) and
    ``neon`` (Advanced SIMD)."""
    float_abi: str
    """Where functions pass floats: ``hard`` (FPU registers), ``soft`` (integer registers); empty for ``host``."""
    flags: tuple[str, ...]
    """The compiler's words for the core; the toolchain file passes them to compiler and linker."""
    compilers: Mapping[str, int] = field(default_factory=dict)
    """Families of compilers with toolchain files for the core: the first version of each that knows it. The first
    family is the default; none for the host, whose own compiler is used."""
    link_flags: tuple[str, ...] = ()
    """Where clang compiles and GCC links, what tells a GCC that does not know the core which libraries to take;
    ``flags`` where empty."""

    @property
    def core(self) -> str:
        """The name without what is left out of the core: ``cortex-m4`` of ``cortex-m4+nofp``."""
        return self.name.partition("+")[0]

    @property
    def toolchain(self) -> str | None:
        """File name in ``cmake/toolchains`` of the default compiler; ``None`` for the host's own."""
        return next((self.toolchain_with(family) for family in self.compilers), None)

    def toolchain_with(self, compiler: str) -> str:
        """Return the file name in ``cmake/toolchains`` for ``compiler``, a key of ``compilers``."""
        return f"{self.name}.cmake" if compiler == GCC else f"{self.name}-{compiler}.cmake"

    @property
    def is_arm(self) -> bool:
        """Whether it is one of Arm's cores of the table."""
        return self.architecture.startswith("armv")


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
    others: tuple[Memory, ...] = ()
    """Further regions of its linker script, which hold what firmware places there."""

    @property
    def regions(self) -> Mapping[str, Memory]:
        """All regions by the names that its linker script has for them."""
        return {memory.name: memory for memory in (self.flash, self.ram, *self.others)}

    def takes(self, cpu: Cpu) -> bool:
        """Return whether code for ``cpu`` runs on the board: for its core, or for that core with something left out."""
        return cpu.core == self.cpu
