"""The rows of the tables of CPUs, boards and GDB servers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlfbuild.core.keys import DERIVED, Keys

GCC, CLANG = "gcc", "clang"
"""Families of C compilers, in the project file's words."""


@dataclass(frozen=True)
class Cpu(Keys):
    """A processor core as a C compiler sees it: an entry of ``data/cpus.toml``.

    ``flags``, ``float_abi`` and ``compilers`` are for builds, ``features`` for the choice of kernels. An ``+nofp`` or
    similar at the end of a name takes features away: such cores have an entry of their own.
    """

    TITLE = "cpu"

    name: str = field(metadata=DERIVED)
    """The project file's word, as GCC's ``-mcpu`` spells it: ``cortex-m4``, ``cortex-m4+nofp``; ``host``."""
    title: str
    """Description: ``Cortex-M4 with its single-precision FPU``."""
    architecture: str
    """The name of the architecture: ``armv7e-m``, ``rv32imc``; ``host`` for this machine."""
    features: frozenset[str] = frozenset()
    """Some of ``dsp`` (SMLAD and similar), ``fpu`` (single-precision hardware), ``mve`` (Helium, integer and float) and
    ``neon`` (Advanced SIMD)."""
    float_abi: str = ""
    """Registers in which functions pass floats: ``hard`` (FPU), ``soft`` (integer); empty for ``host``."""
    flags: tuple[str, ...] = ()
    """Compiler options for the core; the toolchain file passes them to compiler and linker."""
    compilers: Mapping[str, int] = field(default_factory=dict)
    """Families of compilers with toolchain files for the core, with the first version of each that supports it. The
    first family is the default. Empty for the host, which has no toolchain file."""
    link_flags: tuple[str, ...] = ()
    """Options for linking with GCC what clang compiled, if GCC may be too old to know the core: they select the same
    libraries. Empty if they are ``flags``."""

    @property
    def core(self) -> str:
        """The name without a removed feature: ``cortex-m4`` for ``cortex-m4+nofp``."""
        return self.name.partition("+")[0]

    @property
    def toolchain(self) -> str | None:
        """File name in ``cmake/toolchains`` of the default compiler; ``None`` for the host's own."""
        return next((self.toolchain_with(family) for family in self.compilers), None)

    def toolchain_with(self, compiler: str) -> str:
        """Return the file name in ``cmake/toolchains`` for ``compiler``, a key of ``compilers``.

        GCC's has the name of the CPU only. The file exists in the folder of ``toolchain_folder``.
        """
        return f"{self.name}.cmake" if compiler == GCC else f"{self.name}-{compiler}.cmake"

    @property
    def machine(self) -> str:
        """The machine that its images are for: an image contains code for one of them only."""
        return "arm" if self.is_arm else self.architecture[:4]  # rv32, host

    def links_with(self, other: Cpu) -> bool:
        """Return whether its code and code for ``other`` can be in one image and call each other.

        Both must be for the same machine and pass floats in the same registers. Architectures may differ: code
        for Cortex-M0+ links with that for Cortex-M3.
        """
        return (self.machine, self.float_abi) == (other.machine, other.float_abi)

    @property
    def is_arm(self) -> bool:
        """Whether it is an Arm core."""
        return self.architecture.startswith("armv")


@dataclass(frozen=True)
class MemoryRegion:
    """One region of a board's memory map: name in linker scripts, first address, bytes."""

    name: str
    origin: int
    size: int


@dataclass(frozen=True)
class Board:
    """A board that QEMU emulates and ``mlfbuild/runtime/board`` supports.

    Tests run on it: a core that no board emulates runs on one whose core executes all of its instructions (``runs``).
    """

    name: str
    """QEMU's machine name: ``mps2-an386``."""
    cpu: str
    flash: MemoryRegion
    """Region of vectors, code and constants."""
    ram: MemoryRegion
    """Region of data, arenas, heap and stack."""
    others: tuple[MemoryRegion, ...] = ()
    """Other regions of its linker script, for sections that firmware places in them."""
    runs: tuple[str, ...] = ()
    """Other cores whose code it runs, because its core executes all of their instructions."""
    emulator: str = "qemu-system-arm"
    """QEMU's program for the machine: ``qemu-system-arm``."""
    options: tuple[str, ...] = ()
    """Options that the machine needs besides its name."""

    @property
    def machine(self) -> tuple[str, ...]:
        """Options with which the emulator is this board."""
        return "-M", self.name, *self.options

    @property
    def regions(self) -> Mapping[str, MemoryRegion]:
        """All regions by their names in the linker script."""
        return {memory.name: memory for memory in (self.flash, self.ram, *self.others)}

    def takes(self, cpu: Cpu) -> bool:
        """Return whether code for ``cpu`` runs on the board: for its core or for one of ``runs``."""
        return cpu.core in (self.cpu, *self.runs)


@dataclass(frozen=True)
class GdbServer(Keys):
    """A kind of GDB server: an entry of ``data/gdb_servers.toml``. Commands are those of GDB's command line."""

    TITLE = "GDB server"

    name: str = field(metadata=DERIVED)
    """The value of ``runner.server``."""
    halt: tuple[str, ...]
    """Commands that reset the device and halt it before its first instruction."""
    release: tuple[str, ...]
    """Commands that reset the device and let it run, before GDB detaches."""
    programs: tuple[str, ...]
    """Its programs, by the begin of their names in lower case."""
    source: str
    """Document with its section."""
    port: int | None = None
    """The port that it listens on by default."""
    attach: tuple[str, ...] = ()
    """Commands after GDB has connected."""
    mode: str = "extended-remote"
    start: tuple[str, ...] = ()
    """Command that starts it for a part: ``{openocd}``, ``{jlink}``, ``{pyocd}`` and ``{chip}`` are the part's names in
    OpenOCD, J-Link, pyOCD and probe-rs. Empty if the command depends on how the server is installed."""
    debuggers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Words behind the program in ``start`` for each kind of debugger, if it must be told."""
    select: tuple[str, ...] = ()
    """Words at the end of ``start`` that choose the debugger with the serial number ``{probe}``."""
    answer: str = ""
    """Regular expression for what only this server answers to a question of ``runners.gdb_servers``; empty if nothing
    is known."""
