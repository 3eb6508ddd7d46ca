"""Print a function registry: TVM's table of functions by name, of which an image can have only one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from mlfbuild.library import SYSTEM_LIBRARY

REGISTRY_HEADER = "tvm/runtime/crt/module.h"
"""The header of TVM's C runtime that declares the types of a registry."""
_SIGNATURE = (
    "TVMValue* args, int* type_code, int num_args, TVMValue* out_value, int* out_type_code, void* resource_handle"
)


def registry_source(functions: Iterable[tuple[str, str]], count_bytes: int, modules: Sequence[str]) -> str:
    """Return the C source of a table of ``functions``, (registered name, C function), of ``modules``, sorted by name.

    The functions take the six arguments of TVM's packed functions since 0.8.
    """
    # TVM's lookup compares names one after the other, so that the order does not matter to it; sorted, it is the same
    # in every build.
    table = sorted(functions)
    # The names begin with their number, in one or two bytes by the release of TVM (func_registry.h). Three octal
    # digits, so that a digit behind an escape is not read as part of it.
    count = "".join(f"\\{byte:03o}" for byte in len(table).to_bytes(count_bytes, "little"))
    prototypes = "".join(
        f'#ifdef __cplusplus\nextern "C"\n#endif\nTVM_DLL int32_t {function}({_SIGNATURE});\n' for _, function in table
    )
    pointers = "".join(f"    (TVMBackendPackedCFunc){function},\n" for _, function in table)
    names = "".join(f'    "{_escaped(name)}\\000"\n' for name, _ in table)
    return (
        f"/* The functions of {', '.join(modules)} by name: an image has one such table, so all of them link together."
        f" */\n#include <{REGISTRY_HEADER}>\n{prototypes}"
        f"static TVMBackendPackedCFunc _tvm_func_array[] = {{\n{pointers}}};\n"
        f'static const TVMFuncRegistry _tvm_func_registry = {{\n    "{count}"\n{names}    , _tvm_func_array,\n}};\n'
        "static const TVMModule _tvm_system_lib = {\n    &_tvm_func_registry,\n};\n"
        f"const TVMModule* {SYSTEM_LIBRARY}(void) {{\n    return &_tvm_system_lib;\n}}\n"
    )


def _escaped(name: str) -> str:
    return re.sub(r"[^0-9A-Za-z_]", lambda char: f"\\{ord(char[0]):03o}", name)
