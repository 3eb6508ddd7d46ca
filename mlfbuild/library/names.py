"""Names as TVM writes them in C: those of tensors and modules, and those that its runtimes look for."""

from __future__ import annotations

import re

SYSTEM_LIBRARY = "TVMSystemLibEntryPoint"
"""The function that returns an image's table of functions by name, where a module was exported with ``system-lib``."""
MERGED_SYSTEM_LIBRARY = "mlfbuild_system_lib.c"
"""The file with that function, where the tables of several modules were merged into one."""
MODULE_CONTEXT = "__tvm_module_ctx"
"""The variable in which code for TVM's C++ runtime finds the module that it is part of."""
LINKED_PARAMETERS = "_lookup_linked_param"
"""By this name TVM 0.8's graph executor asks the system library for the parameter of a storage id."""
LINKED_ARRAY = "__tvm_param__"
"""What the names of arrays of such parameters begin with, in C and among the symbols of objects."""
SHARED_WORKSPACE = "mlf_shared_workspace"
"""The workspace of all models of an image that never run at the same time, a common symbol of each."""


def sanitize_name(name: str) -> str:
    """Return ``name`` with ``_`` for each byte that is no ASCII letter or digit (TVM's ``SanitizeName``)."""
    return re.sub(rb"[^0-9A-Za-z]", b"_", name.encode(errors="surrogatepass")).decode()


def symbol_prefix(module: str) -> str:
    """Return what the functions of a module begin with: ``tvmgen_Kws``."""
    return f"tvmgen_{sanitize_name(module)}"


def struct_prefix(module: str) -> str:
    """Return what the structs of a module's C interface begin with: ``tvmgen_kws`` (TVM's ``ToCVariableStyle``)."""
    return symbol_prefix(module).lower()


def macro_prefix(module: str) -> str:
    """Return what the macros of a module's C interface begin with: ``TVMGEN_KWS`` (TVM's ``ToCConstantStyle``)."""
    return symbol_prefix(module).upper()


def header_names(module: str) -> frozenset[str]:
    """Return what the header of a module's C interface may be called: TVM's exporter keeps what C names cannot have."""
    return frozenset({f"{struct_prefix(module)}.h", f"tvmgen_{module.lower()}.h"})


def facts_header(module: str) -> str:
    """Return the name of the header with what the native compiler knows of a graph module, however it is run."""
    return f"mlf_{module}.h"
