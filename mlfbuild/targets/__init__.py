"""The tables of CPUs, boards and microcontrollers, the toolchain files for CPUs, and the C compilers they require.

    CPUS["cortex-m4"]        a ``Cpu``: architecture, features, compiler flags
    BOARDS["mps2-an386"]     a ``Board`` that QEMU emulates: its CPU and memory regions
    MCUS["stm32l4r5"]        an ``Mcu`` for the cycle model: clock, memories with wait states, caches, sources
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
    from mlfbuild.targets.boards import BOARDS as BOARDS
    from mlfbuild.targets.compilers import (
        HOST_COMPILERS as HOST_COMPILERS,
        compiler_path as compiler_path,
        require_compiler as require_compiler,
    )
    from mlfbuild.targets.cpus import CPUS as CPUS, compiler_program as compiler_program
    from mlfbuild.targets.gdb_servers import GDB_SERVERS as GDB_SERVERS
    from mlfbuild.targets.libraries import has_c_library as has_c_library
    from mlfbuild.targets.macros import MacroRule as MacroRule, macro_rules as macro_rules
    from mlfbuild.targets.macs import (
        fewest_instructions as fewest_instructions,
        macs_an_instruction as macs_an_instruction,
    )
    from mlfbuild.targets.mcu_types import (
        Mcu as Mcu,
        MemoryCache as MemoryCache,
        TimedMemory as TimedMemory,
        needed_keys as needed_keys,
    )
    from mlfbuild.targets.mcus import MCUS as MCUS, ideal_mcu as ideal_mcu
    from mlfbuild.targets.part_keys import (
        TIMED_CORES as TIMED_CORES,
        CacheKeys as CacheKeys,
        DeviceMemoryKeys as DeviceMemoryKeys,
        MemoryKeys as MemoryKeys,
        RegionKeys as RegionKeys,
        TimingKeys as TimingKeys,
    )
    from mlfbuild.targets.tables import (
        RUNTIME as RUNTIME,
        board_called as board_called,
        cpu_called as cpu_called,
        emulated_board as emulated_board,
        mcu_called as mcu_called,
    )
    from mlfbuild.targets.toolchains import (
        cmake_folder as cmake_folder,
        cpu_of_toolchain as cpu_of_toolchain,
        shared_toolchain_files as shared_toolchain_files,
        toolchain_file as toolchain_file,
    )
    from mlfbuild.targets.types import (
        CLANG as CLANG,
        GCC as GCC,
        Board as Board,
        Cpu as Cpu,
        GdbServer as GdbServer,
        MemoryRegion as MemoryRegion,
    )
else:
    __getattr__ = lazy_attributes(__name__)
