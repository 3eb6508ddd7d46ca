"""The C of a new project: a main that calls every module, and a case for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.archive.interface import Header, header_file, read_header
from mlfbuild.cgen import array_lines
from mlfbuild.graph import Array
from mlfbuild.library import (
    C_TYPES,
    Library,
    Module,
    Pool,
    TensorInfo,
    element_size,
    sanitize_name,
    struct_prefix,
    symbol_prefix,
)
from mlfbuild.usecases.init.sample import Sample
from mlfbuild.usecases.init.text import filled

_BYTES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
"""Types of elements that C has no type for: their bits."""
_REAL = {
    "float": {"ABS": "fabsf", "MAX": "fmaxf", "F": "f"},
    "double": {"ABS": "fabs", "MAX": "fmax", "F": ""},
}


def main_c(library: Library, sample: Sample | None) -> str:
    """Return the text of ``src/main.c``, which runs each module of ``library`` once, on ``sample`` where there is one.

    The modules have the C interface with known inputs and outputs.
    """
    modules = library.modules
    types = sorted({_c_type(tensor) for module in modules for tensor in module.outputs})
    names = " and ".join(f"`{sanitize_name(module.name)}`" for module in modules)
    return filled(
        "common/main.c",
        MODULES=f"{names} on the case in sample.h" if sample else names,
        EXIT_STATUS=f"Exit status 0: {'all of it is as expected' if sample else 'every network ran'}.",
        INCLUDES="\n".join(_includes(modules, types, sample)),
        SHOW="\n".join(_show(c_type) for c_type in types).rstrip(),
        RUN="\n".join(_run(module, sample) for module in modules).rstrip(),
        CALLS="\n".join(f"    wrong += run_{sanitize_name(module.name)}();" for module in modules),
        PASS="PASS" if sample else "DONE",
    )


def _includes(modules: Sequence[Module], types: Iterable[str], sample: Sample | None) -> Iterator[str]:
    if not _REAL.keys().isdisjoint(types):
        yield "#include <math.h>"
    yield from ("#include <stdint.h>", "#include <stdio.h>")
    if sample:
        yield "#include <string.h>"
    yield ""
    headers = [file.path.name for module in modules if (file := header_file(module))]
    yield from sorted(f'#include "{name}"' for name in [*headers, *(["sample.h"] if sample else [])])


def _show(c_type: str) -> str:
    name = c_type.removesuffix("_t")
    if c_type in _REAL:
        return filled("common/show_real.c", NAME=name, TYPE=c_type, **_REAL[c_type])
    return filled("common/show_integer.c", NAME=name, TYPE=c_type)


@dataclass(frozen=True)
class _Interface:
    """How a module is called: members of its structs with their tensors, in call order."""

    module: Module
    header: Header
    inputs: tuple[tuple[str, TensorInfo], ...]
    outputs: tuple[tuple[str, TensorInfo], ...]

    @property
    def buffers(self) -> list[tuple[str, TensorInfo]]:
        """The arrays that main.c has for inputs and outputs."""
        return [*((f"in_{name}", t) for name, t in self.inputs), *((f"out_{name}", t) for name, t in self.outputs)]


def _interface(module: Module) -> _Interface:
    header = read_header(module)
    assert header is not None
    return _Interface(
        module,
        header,
        tuple(zip(_members(header, "inputs", module.inputs), module.inputs, strict=True)),
        tuple(zip(_members(header, "outputs", module.outputs), module.outputs, strict=True)),
    )


def _members(header: Header, struct: str, tensors: Sequence[TensorInfo]) -> Sequence[str]:
    """Return the members of a struct of the interface; the tensors stand in the same order."""
    members = header.structs.get(struct, ())
    return members if len(members) == len(tensors) else [sanitize_name(tensor.name) for tensor in tensors]


def _run(module: Module, sample: Sample | None) -> str:
    interface = _interface(module)
    pools = [pool for pool in module.pools if pool.external]
    structs = {
        "inputs": [(name, f"in_{name}") for name, _ in interface.inputs],
        "outputs": [(name, f"out_{name}") for name, _ in interface.outputs],
    }
    if pools:
        structs["workspace_pools"] = [(pool.name, f"pool_{pool.name}") for pool in pools]
    buffers = [f"    static {_c_type(tensor)} {name}[{_elements(tensor)}];" for name, tensor in interface.buffers]
    buffers += [_pool(interface.header, pool) for pool in pools]
    return filled(
        "common/run.c",
        MODULE=sanitize_name(module.name),
        FUNCTION=f"{_function(module)}_run",
        ARGUMENTS=", ".join(f"&{name}" for name in structs),
        BUFFERS="\n".join(buffers),
        STRUCTS="\n".join(_struct(module, key, members) for key, members in structs.items()),
        CHECKS="\n".join(_size_checks(interface)),
        INPUTS="\n".join(_fill_inputs(interface, sample)),
        OUTPUTS="\n".join(_show_output(module, name, tensor, sample) for name, tensor in interface.outputs),
    )


def _pool(header: Header, pool: Pool) -> str:
    size = f"{header.prefix}_{pool.name.upper()}_WORKSPACE_POOL_SIZE"
    return f"    static uint8_t pool_{pool.name}[{size}] __attribute__((aligned(16)));"


def _struct(module: Module, key: str, members: Sequence[tuple[str, str]]) -> str:
    values = ", ".join(f".{name} = {buffer}" for name, buffer in members)
    return f"    struct {struct_prefix(module.name)}_{key} {key} = {{{values}}};"


def _function(module: Module) -> str:
    """Return what the module's functions begin with: TVM's headers have it in lower case, its code may have not."""
    file = header_file(module)
    name = symbol_prefix(module.name)
    return name if file and f" {name}_run(".encode() in file.data else struct_prefix(module.name)


def _size_checks(interface: _Interface) -> Iterator[str]:
    """Stop the compiler where another model takes the place of this one: headers of TVM 0.8 do not tell sizes."""
    for (name, _), (buffer, _) in zip((*interface.inputs, *interface.outputs), interface.buffers, strict=True):
        macro = f"{interface.header.prefix}_{name.upper()}_SIZE"
        if macro in interface.header.sizes:
            yield f'    _Static_assert(sizeof {buffer} == {macro}, "{name} has another size");'


def _fill_inputs(interface: _Interface, sample: Sample | None) -> Iterator[str]:
    if sample is None:
        yield "    /* The inputs are zero so far; put your own data there. */"
        return
    yield "    /* The sample; put your own data there. */"
    yield from (f"    memcpy(in_{name}, sample_in_{name}, sizeof in_{name});" for name, _ in interface.inputs)


def _show_output(module: Module, name: str, tensor: TensorInfo, sample: Sample | None) -> str:
    expected = f"sample_out_{name}" if sample else "NULL"
    show = f"show_{_c_type(tensor).removesuffix('_t')}"
    title = f"{sanitize_name(module.name)} {name}"
    return f'    wrong += {show}("{title}", out_{name}, {expected}, {_elements(tensor)});'


def _c_type(tensor: TensorInfo) -> str:
    return C_TYPES.get(tensor.dtype) or _BYTES.get(element_size(tensor.dtype) or 1, "uint8_t")


def _elements(tensor: TensorInfo) -> int:
    size = element_size(tensor.dtype) or 1
    return tensor.size // size if tensor.dtype in C_TYPES or size in _BYTES else tensor.size


# The case ------------------------------------------------------------------------------------------------------------


def sample_h(library: Library, sample: Sample, origin: str) -> str:
    """Return the text of ``src/sample.h``, the case ``sample`` of the only module of ``library``, from ``origin``."""
    (module,) = library.modules
    values = (*sample.inputs, *sample.outputs)
    arrays = [
        (f"sample_{name}", tensor, array)
        for (name, tensor), array in zip(_interface(module).buffers, values, strict=True)
    ]
    odd = any(not np.isfinite(array).all() for _, _, array in arrays)
    return filled(
        "common/sample.h",
        ORIGIN=origin,
        INCLUDES="#include <math.h>\n#include <stdint.h>" if odd else "#include <stdint.h>",
        ARRAYS="\n\n".join(_array(*array) for array in arrays),
    )


def _array(name: str, tensor: TensorInfo, values: Array) -> str:
    c_type = _c_type(tensor)
    if values.dtype.name not in C_TYPES or values.dtype == np.bool_:
        values = values.view(f"uint{8 * values.itemsize}")
    lines = "\n".join(_lines(values))
    return f"static const {c_type} {name}[{values.size}] = {{\n{lines}\n}};"


def _lines(values: Array) -> Iterable[str]:
    if values.dtype == np.float64:
        return (f"    {value!r}," for value in values.tolist())
    if values.dtype == np.uint64:
        return (f"    UINT64_C({value})," for value in values.tolist())
    return array_lines(values)
