"""How much memory the kernels of a module take from TVM's workspace at a time, read from their C.

Metadata tells it too, but without what aligning every piece costs, and not in every version. Sizes in generated C are
literals; a function holds all its pieces at one time at most, and calls others only from a module's main function.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlfbuild.compilers.native.storages import aligned
from mlfbuild.errors import UnsupportedModelError
from mlfbuild.library import Module

_TAKEN = re.compile(r"\bTVMBackendAllocWorkspace\s*\(\s*[^,()]*,[^,()]*,\s*(?:\(uint64_t\))?\s*([^,]*?)\s*,")
_FUNCTION = re.compile(r"^(?:TVM_DLL\s+)?int32_t\s+(\w+)\s*\([^;{]*\)\s*\{", re.MULTILINE)
_MAIN = re.compile(r"(\w*__tvm_main__|tvmgen_\w+_run_model)$")
_SIZE = re.compile(r"\(?([0-9]{1,12})(?:[uUlL]*)\)?")


def kernel_workspace(module: Module, sources: Sequence[str]) -> int:
    """Return the bytes that ``sources``, the C of ``module``, take from the workspace at a time; 0 for none.

    Raises ``UnsupportedModelError`` where a size is computed at run time.
    """
    main = most = 0
    for text in sources:
        for name, size in _functions(module, text):
            if _MAIN.search(name):
                main += size
            else:
                most = max(most, size)
    return main + most


def _functions(module: Module, text: str) -> list[tuple[str, int]]:
    starts = [(found.start(), found[1]) for found in _FUNCTION.finditer(text)]
    ends = [start for start, _ in (*starts[1:], (len(text), ""))] if starts else []
    return [
        (name, sum(_size(module, found[1]) for found in _TAKEN.finditer(text, start, end)))
        for (start, name), end in zip(starts, ends, strict=True)
    ]


def _size(module: Module, text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise UnsupportedModelError(
            f"{module.name}: takes {text[:60]!a} bytes of workspace, which only a run can tell; export the module with "
            f"fixed shapes, or with tir.usmp.enable, which plans memory"
        )
    return aligned(int(found[1]))
