"""Compute the peak memory that the kernels of a module allocate from TVM's workspace.

It is read from sources, because sizes in generated C are literals. A function holds at most all its allocations at the
same time, and only a module's main function calls others. Handwritten functions before them may be called by any. The
metadata records the size too, but not in every version and without the padding for alignment; it is used for compiled
objects.
"""

from __future__ import annotations

import re

from mlfbuild.core import UnsupportedModelError
from mlfbuild.executor.kernels import Kernels
from mlfbuild.library.cgen import aligned

_ALLOC = "TVMBackendAllocWorkspace"
# The third argument, of TVMBackendAllocWorkspace(device_type, device_id, nbytes, dtype_code_hint, dtype_bits_hint) in
# TVM's c_backend_api.h. TVM writes it as a literal with a cast.
_TAKEN = re.compile(rf"\b{_ALLOC}\s*\(\s*[^,()]*,[^,()]*,\s*(?:\(uint64_t\))?\s*([^,]*?)\s*,")
_MAIN = re.compile(r"(\w*__tvm_main__|tvmgen_\w+_run_model)$")
_SIZE = re.compile(r"\(?([0-9]{1,12})(?:[uUlL]*)\)?")
_PIECES = 16
"""Assumed allocations of a function in an object at the same time: TVM 0.8 does not count padding for alignment."""


def kernel_workspace(kernels: Kernels) -> int:
    """Return the peak bytes that a module's functions allocate from the workspace; 0 for none.

    Raises ``UnsupportedModelError`` if a size is computed at run time, or if the metadata has no size for objects.
    """
    # `around` is held during the whole run, `most` by the largest kernel.
    around = most = 0
    for name, text in kernels.functions():
        size = sum(_size(kernels.module.name, found[1]) for found in _TAKEN.finditer(text))
        # The main function keeps its memory while it calls the others, of which one runs at a time.
        if name is None or _MAIN.search(name):
            around += size
        else:
            most = max(most, size)
    # Not added: the metadata's size of a main function already includes the functions that it calls.
    return max(around + most, _of_objects(kernels))


def _size(module: str, text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UnsupportedModelError(
            "workspace-size-unknown",
            place=module,
            reason=f"a kernel allocates {text[:60]!a} bytes of workspace, which are only known at run time",
            hint="export the module with fixed shapes, or with tir.usmp.enable, which plans the memory",
        )
    return aligned(int(found[1]))


def _of_objects(kernels: Kernels) -> int:
    """Return the size in the metadata for functions in objects; that of a main function includes its callees."""
    module = kernels.module
    if not any(_ALLOC in symbols.declared for symbols in kernels.symbols.values()):
        return 0
    if module.executor == "aot":
        sizes = [memory.workspace_size for memory in module.main]
    else:
        sizes = [size for function in module.operator_functions for _, size in function.workspace]
    if not sizes:
        raise UnsupportedModelError(
            "workspace-size-unknown",
            place=module.name,
            reason="its objects allocate memory, and the metadata does not contain the size",
            hint="export C sources, or export with TVM 0.8 or later",
        )
    return aligned(max(sizes)) + aligned(1) * _PIECES
