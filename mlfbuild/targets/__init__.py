"""CPU and board tables, where the files that belong to them lie, and the compilers that toolchain files name."""

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
    from mlfbuild.targets.libraries import has_c_library as has_c_library
    from mlfbuild.targets.macros import MacroRule as MacroRule, macro_rules as macro_rules
    from mlfbuild.targets.macs import (
        fewest_instructions as fewest_instructions,
        macs_an_instruction as macs_an_instruction,
    )
    from mlfbuild.targets.tables import (
        RUNTIME as RUNTIME,
        board_called as board_called,
        cpu_called as cpu_called,
    )
    from mlfbuild.targets.toolchains import (
        cmake_folder as cmake_folder,
        cpu_of_toolchain as cpu_of_toolchain,
        shared_toolchain_files as shared_toolchain_files,
        toolchain_file as toolchain_file,
    )
    from mlfbuild.targets.types import CLANG as CLANG, GCC as GCC, Board as Board, Cpu as Cpu, Memory as Memory
else:
    __getattr__ = lazy_attributes(__name__)
