"""The tables of CPUs, boards and microcontrollers, the toolchain files for CPUs, and the C compilers they require.

    CPUS["cortex-m4"]        a ``Cpu``: architecture, features, compiler flags
    BOARDS["mps2-an386"]     a ``Board`` that QEMU emulates: its CPU and memory regions
    MCUS["stm32l4r5"]        an ``Mcu`` for the cycle model: clock, memories with wait states, caches, sources
    part_called("stm32f407vg")  a ``KnownPart``: core and memory map of a microcontroller without a cycle model
    GDB_SERVERS["openocd"]   a ``GdbServer``: how it resets a device
    cpu_called("cortex-m44") a ``UsageError`` with the nearest name

The rows are entries of TOML files in ``data``, each with its sources, and are read when a table is first used. A
microcontroller has the keys of ``timing`` in a project file (``part_keys``). Toolchain files (``cmake/toolchains``),
the JSON Schema and the reference pages are generated from the rows. ``macros`` has the checks that a compiler compiles
for a CPU, ``macs`` the lower bounds for instructions. The room does not run builds, and knows nothing about project
files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.targets.boards import BOARDS
    from mlfbuild.targets.compilers import HOST_COMPILERS, compiler_path, require_compiler
    from mlfbuild.targets.cpus import CPUS, compiler_program
    from mlfbuild.targets.gdb_servers import GDB_SERVERS
    from mlfbuild.targets.libraries import has_c_library
    from mlfbuild.targets.macros import MacroRule, macro_rules
    from mlfbuild.targets.macs import fewest_instructions, macs_an_instruction
    from mlfbuild.targets.mcu_types import Mcu, MemoryCache, TimedMemory, needed_keys
    from mlfbuild.targets.mcus import MCUS, ideal_mcu
    from mlfbuild.targets.part_keys import TIMED_CORES, CacheKeys, DeviceMemoryKeys, MemoryKeys, RegionKeys, TimingKeys
    from mlfbuild.targets.parts import KnownPart, all_parts, part_called, parts_beginning
    from mlfbuild.targets.tables import RUNTIME, board_called, cpu_called, emulated_board, mcu_called
    from mlfbuild.targets.toolchains import cmake_folder, cpu_of_toolchain, shared_toolchain_files, toolchain_file
    from mlfbuild.targets.types import CLANG, GCC, Board, Cpu, GdbServer, MemoryRegion
else:
    __getattr__ = lazy_attributes(__name__)
