"""The tables of CPUs, boards and microcontrollers, the toolchain files for CPUs, and the C compilers they require.

    CPUS["cortex-m4"]        a ``Cpu``: architecture, features, compiler flags
    BOARDS["mps2-an386"]     a ``Board`` that QEMU emulates: its CPU and memory regions
    MCUS["stm32l4r5"]        an ``Mcu`` for the cycle model: clock, memories with wait states, caches, sources
    part_called("stm32f407vg")  a ``KnownPart``: core and memory map of a microcontroller without a cycle model
    development_board("pico")  a ``DevelopmentBoard`` that people own: its microcontroller and debugger
    keys_of_device("pico")   the keys of a target that one word stands for: ``{"board": "pico"}``
    GDB_SERVERS["openocd"]   a ``GdbServer``: how it resets a device
    cpu_called("cortex-m44") a ``UsageError`` with the nearest name

The rows are entries of TOML files in ``data``, each with its sources, and are read when a table is first used. Those of
memory maps and of boards that people own are in CSV files (``parts``, ``development_boards``). A microcontroller has
the keys of ``timing`` in a project file (``part_keys``). Toolchain files (``cmake/toolchains``), the JSON Schema and
the reference pages are generated from the rows.

What an entry of a CPU decides. The native compiler uses nothing but the row; it asks for the name of a core only for
the Cortex-M7, whose two pipelines are no feature of the architecture (``native/settings``):

1. ``features`` select kernels: ``dsp`` (SMLAD and similar), ``mve`` (Helium), ``fpu`` (float32 in hardware). ``neon``
   selects none yet; it only counts for the lower bound of instructions (``macs``).
2. ``architecture`` tells cores without SIMD, for which there are kernels in Thumb (Armv6-M, Armv7-M, Armv8-M Baseline),
   from those for which only portable C exists (RISC-V, the host).
3. ``float_abi`` and the machine decide whether two archives can be in one image. Floats in FPU registers and in integer
   registers do not link together.
4. ``flags`` are for the toolchain file, and in the #error of the generated C if another core is compiled for.
5. ``compilers`` are the families that support the core, from which version on. A toolchain file exists for each.
6. The name with ``+nofp`` is the core without its FPU; without it, the core has one if it can.

For example, what a network in int8 gets, and the products that one instruction of the core can add::

    cortex-m0plus   armv6s-m         no features     thumb kernels      1
    cortex-m3       armv7-m          no features     thumb kernels      2
    cortex-m4       armv7e-m         dsp, fpu        dsp kernels        2
    cortex-m55      armv8.1-m.main   dsp, fpu, mve   mve kernels       16
    cortex-a9       armv7-a          + neon          dsp kernels        8
    rv32imc         rv32imc          no features     portable C         1

``macros`` has the checks that a compiler compiles for a CPU: a wrong ``-mcpu`` would compile, link and then fault.
``boards`` run code for their own core and for those in ``runs``, whose instructions they all have.

The room does not run builds, and knows nothing about project files. Costs of instructions and caches are in ``timing``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.targets.boards import BOARDS
    from mlfbuild.targets.compilers import HOST_COMPILERS, compiler_path, has_c_library, require_compiler
    from mlfbuild.targets.cpus import (
        CPUS, cmake_folder, compiler_program, cpu_of_toolchain, shared_toolchain_files, toolchain_file,
    )
    from mlfbuild.targets.development_boards import (
        DevelopmentBoard, all_boards, close_boards, development_board, keys_of_device, server_words,
    )
    from mlfbuild.targets.gdb_servers import GDB_SERVERS
    from mlfbuild.targets.macros import MacroRule, macro_rules
    from mlfbuild.targets.macs import fewest_instructions, macs_an_instruction
    from mlfbuild.targets.mcu_types import Mcu, MemoryCache, TimedMemory, needed_keys
    from mlfbuild.targets.mcus import MCUS, ideal_mcu
    from mlfbuild.targets.packs import pack_device
    from mlfbuild.targets.part_files import PACK_MARK, PartFile, described_in, is_part_file, model_called, part_file
    from mlfbuild.targets.part_keys import (
        TIMED_CORES, Address, CacheKeys, DeviceMemoryKeys, MemoryKeys, RegionKeys, TimingKeys,
    )
    from mlfbuild.targets.parts import KnownPart, all_parts, memory_of, model_of, part_called, parts_beginning
    from mlfbuild.targets.tables import RUNTIME, board_called, cpu_called, emulated_board, mcu_called
    from mlfbuild.targets.types import CLANG, GCC, Board, Cpu, GdbServer, MemoryRegion
else:
    __getattr__ = lazy_attributes(__name__)
