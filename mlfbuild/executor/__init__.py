"""Generate C sources so that firmware can call every kind of module through TVM's C interface.

    found = executable(module)    # None if the module needs no generated code
    found.files, found.include_dirs, found.generated

A graph becomes constant tables and a loop over them. A packed function is wrapped by a function with the C interface.
The functions that kernels expect of TVM's runtime come from ``runtime/tvm``, separately for each module. Modules that
the native compiler made for the AOT executor are complete. Nothing here compiles C or writes files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.executor.executables import (
        INCLUDE_DIR, Executable, callable_modules, check_described, chosen_module, executable, with_c_interface,
    )
    from mlfbuild.executor.headers import STANDARD_HEADER, missing_header
    from mlfbuild.executor.memory import arena_size, ram_size
    from mlfbuild.executor.planned_network import module_network
    from mlfbuild.executor.pools import why_not_shared
    from mlfbuild.executor.runtime import BUNDLED_FOLDER, FOLDER, PROVIDED_HEADERS
    from mlfbuild.executor.units import unit_names
else:
    __getattr__ = lazy_attributes(__name__)
