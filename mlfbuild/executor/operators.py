"""Find the inputs and outputs of single operators, and their names.

The metadata has the types and shapes of a function's arguments in order, but no names. The C code of the function has
the names, and shows which arguments it writes. Without C code, the last argument is taken as the output, because TVM
declares operators so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from mlfbuild.executor.kernels import Kernels
from mlfbuild.library import Module, OperatorBuffer, TensorInfo

# TVM's code generator for C begins a packed function with two such lines for each argument: `void* arg0 =
# (((TVMValue*)args)[0].v_handle);` and `void* data = (((DLTensor*)arg0)[0].data);`.
_HANDLE = re.compile(r"\bvoid\s*\*\s*(\w+)\s*=\s*\(\(\(TVMValue\s*\*\)\s*args\)\[\(?([0-9]{1,4})\)?\]\.v_handle\)")
_DATA = re.compile(r"\bvoid\s*\*\s*(\w+)\s*=\s*\(\(\(DLTensor\s*\*\)\s*(\w+)\)\[\(?0\)?\]\.data\)")
_STORE = re.compile(r"^\s*[*(][^=;\n]*=(?!=)", re.MULTILINE)
"""The left side of an assignment through a pointer; TVM writes each on a separate line."""
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBERED = re.compile(r"arg[0-9]+")


def operator_functions(module: Module) -> tuple[Module, ...]:
    """Return a module for each function of the operator archive's ``module``, with inputs and outputs in its order.

    Each has the name and the arguments of one function, and the code of all.
    """
    kernels = Kernels(module)
    bodies = {function: body for function, body in kernels.functions() if function is not None}
    names = dict.fromkeys(buffer.function for buffer in module.buffers)
    return tuple(_function(module, name, bodies.get(name, "")) for name in names)


def _function(module: Module, name: str, body: str) -> Module:
    buffers = tuple(buffer for buffer in module.buffers if buffer.function == name)
    # The index is the position in the arguments, which may differ from the order of the lines.
    handles = {int(index): handle for handle, index in _HANDLE.findall(body)}
    data = {handle: variable for variable, handle in _DATA.findall(body)}
    written = {words[0] for store in _STORE.findall(body) if (words := _pointers(store, data))}
    outputs = [at for at in range(len(buffers)) if data.get(handles.get(at, "")) in written]
    # Without C, or if it is in another form, TVM's order of arguments decides: inputs, then the output.
    outputs = outputs or [len(buffers) - 1]
    names = _names(buffers, handles, data)
    tensors = [
        TensorInfo(called, buffer.dtype, buffer.size, buffer.shape)
        for called, buffer in zip(names, buffers, strict=True)
    ]
    return replace(
        module,
        name=name,
        buffers=tuple(replace(buffer, input_binding=called) for called, buffer in zip(names, buffers, strict=True)),
        inputs=tuple(tensor for at, tensor in enumerate(tensors) if at not in outputs),
        outputs=tuple(tensor for at, tensor in enumerate(tensors) if at in outputs),
    )


def _pointers(text: str, data: dict[str, str]) -> list[str]:
    # The first such word of a statement is the pointer that is written; others are in its index.
    variables = set(data.values())
    return [word for word in _WORD.findall(text) if word in variables]


def _names(buffers: Sequence[OperatorBuffer], handles: dict[int, str], data: dict[str, str]) -> list[str]:
    """Return unique names of the arguments: those in the metadata, or those of the variables in C."""
    found = []
    for at, buffer in enumerate(buffers):
        handle = handles.get(at, f"arg{at}")
        variable = data.get(handle, handle) if _NUMBERED.fullmatch(handle) else handle
        found.append(buffer.input_binding or variable)
    # In capitals, as in the macros of the generated header.
    unique = len({name.upper() for name in found}) == len(found)
    return found if unique else [f"arg{at}" for at in range(len(buffers))]
