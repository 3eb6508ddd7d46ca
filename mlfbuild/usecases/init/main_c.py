"""The values of the templates ``main.c`` and ``sample.h``: how modules are called, and a case for them."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jinja2 import Environment

from mlfbuild.archive.interface import Header, header_file, read_header
from mlfbuild.core import text_templates
from mlfbuild.executor import executable
from mlfbuild.library import (
    C_TYPES,
    SYSTEM_LIBRARY,
    Library,
    Module,
    TensorInfo,
    element_size,
    macro_words,
    sanitize_name,
    struct_prefix,
    symbol_prefix,
)
from mlfbuild.library.cgen import array_lines
from mlfbuild.native import Array
from mlfbuild.usecases.init.sample import Sample
from mlfbuild.verify import float_tolerance

_TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
_OWNER = re.compile(rb"#define MLF_MODULE (\w+)")
"""The line of a unit with the suffix that its module's names of TVM's runtime get."""
_DTYPE = re.compile(r"(int|uint|float|bfloat)([0-9]+)")
_CODES = {"int": 0, "uint": 1, "float": 2, "bfloat": 4}
"""DLDataTypeCode of DLPack."""
_BYTES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}
"""C types for elements that C has no type for: their bits."""


@dataclass(frozen=True)
class _Port:
    """An input, an output or a memory pool of a module: a member of a struct of its C interface."""

    name: str
    type: str = "uint8_t"
    count: int = 0
    elements: str = ""
    """Its number of elements in C: a macro of the header, so that the next version of the model may have another."""
    size_macro: str = ""
    """Macro of its size in bytes; empty if the header has none, as those of TVM 0.8."""
    source_name: str = ""
    """Name in the model."""
    shape: tuple[int, ...] = ()
    """Its shape, or its number of elements if the archive does not record one."""
    code: int = 0
    bits: int = 0
    """Type in DLPack: DLDataTypeCode, and bits of an element."""
    bound: int = 0
    """The greatest magnitude of a float output; 0 if it is unknown."""


@dataclass(frozen=True)
class Caller:
    """The interface of a module as its caller uses it, for templates."""

    name: str
    function: str
    prefix: str
    """The prefix of its structs."""
    inputs: tuple[_Port, ...]
    outputs: tuple[_Port, ...]
    pools: tuple[_Port, ...]
    table: str = ""
    """The function that returns the table of its packed functions; empty if it was not exported with ``system-lib``."""


def main_c(library: Library, sample: Sample | None, template: str = "common/main.c") -> str:
    """Return ``src/main.c`` from ``template``: one that runs each module of ``library`` once, on ``sample`` if given.

    The modules have the C interface with known inputs and outputs.
    """
    layers = [module.network.layers for module in library.modules if module.network]
    modules, headers = callers(library)
    return _filled(
        template,
        modules=modules,
        headers=sorted([*headers, *(["sample.h"] if sample else [])]),
        sample=sample is not None,
        tolerance=f"{float_tolerance(max(layers, default=0)):.2g}",
    )


def call_c(library: Library) -> str:
    """Return C with a function ``run_<module>`` for each module of ``library``, which runs it once.

    The modules have the C interface with known inputs and outputs (``callable_library``). The functions have static
    buffers, and no ``main``.
    """
    modules, headers = callers(library)
    return _filled("common/call.c", modules=modules, headers=headers)


def callers(library: Library) -> tuple[list[Caller], list[str]]:
    """Return how each module of ``library`` is called, and their headers, sorted."""
    headers = [file.path.name for module in library.modules if (file := header_file(module))]
    return [_caller(module) for module in library.modules], sorted(headers)


def sample_h(library: Library, sample: Sample, origin: str) -> str:
    """Return ``src/sample.h``, the case ``sample`` of the only module of ``library``, which comes from ``origin``.

    The arrays are flat, in call order, and have the names of the ports in C. ``origin`` completes the comment at the
    beginning of the header.
    """
    caller = _caller(library.modules[0])
    names = [*(f"in_{port.name}" for port in caller.inputs), *(f"out_{port.name}" for port in caller.outputs)]
    return sample_arrays(names, (*sample.inputs, *sample.outputs), origin)


def sample_arrays(names: Sequence[str], values: Sequence[Array], origin: str) -> str:
    """Return ``src/sample.h`` with the flat arrays ``values``, which are called ``sample_<name>``.

    ``names`` and ``values`` have the same length. Elements of types that C lacks are written as unsigned integers of
    their size; numbers are read as the same value.
    """
    values = [_c_values(array) for array in values]
    arrays = [
        {"name": name, "type": C_TYPES[array.dtype.name], "count": array.size, "lines": _lines(array)}
        for name, array in zip(names, values, strict=True)
    ]
    return _filled(
        "common/sample.h", origin=origin, arrays=arrays, odd=any(not np.isfinite(array).all() for array in values)
    )


def _filled(template: str, **values: object) -> str:
    return _environment().get_template(template).render(**values)


@functools.cache
def _environment() -> Environment:
    return text_templates(_TEMPLATES, c_string=_c_string)


def _c_string(text: str) -> str:
    """Return ``text`` as a string literal; trigraphs and characters that are not in ASCII are octal."""
    # Octal rather than hexadecimal: an octal escape ends after three digits, a hexadecimal one takes every digit that
    # follows. A question mark could begin a trigraph.
    plain = (chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in text.encode())
    return f'"{"".join(plain)}"'


def _caller(module: Module) -> Caller:
    header = read_header(module)
    assert header is not None
    pools = [pool.name for pool in module.pools if pool.external]
    return Caller(
        name=sanitize_name(module.name),
        function=f"{_function(module)}_run",
        prefix=struct_prefix(module.name),
        inputs=tuple(_ports(header, "inputs", module, module.inputs)),
        outputs=tuple(_ports(header, "outputs", module, module.outputs)),
        pools=tuple(_Port(name, size_macro=f"{header.prefix}_{name.upper()}_WORKSPACE_POOL_SIZE") for name in pools),
        table=_table(module),
    )


def _table(module: Module) -> str:
    """Return the name that the function with the module's table has in the tree, where all modules have one."""
    if not any(SYSTEM_LIBRARY.encode() in file.data for file in module.codegen if file.path.suffix == ".c"):
        return ""
    built = executable(module)
    units = [] if built is None else [data for path, data in built.generated.items() if path.endswith(".c")]
    owners = (found[1] for data in units if (found := _OWNER.search(bytes(data))))
    owner = next(owners, None)
    return "" if owner is None else f"{SYSTEM_LIBRARY}_{owner.decode()}"


def _ports(header: Header, struct: str, module: Module, tensors: Sequence[TensorInfo]) -> Iterator[_Port]:
    members: Sequence[str] = header.structs.get(struct, ())
    words = macro_words(name for side in ("inputs", "outputs") for name in header.structs.get(side, ()))
    file = header_file(module)
    if len(members) != len(tensors):
        members = [sanitize_name(tensor.name) for tensor in tensors]
    for index, (name, tensor) in enumerate(zip(members, tensors, strict=True)):
        macro = f"{header.prefix}_{words.get(name, name.upper())}_SIZE"
        elements = re.sub("^TVMGEN", "MLF", macro.removesuffix("_SIZE")) + "_ELEMENTS"
        yield _Port(
            name,
            C_TYPES.get(tensor.dtype) or _BYTES.get(element_size(tensor.dtype) or 1, "uint8_t"),
            _elements(tensor),
            elements if file and f"#define {elements} ".encode() in file.data else str(_elements(tensor)),
            macro if macro in header.sizes else "",
            tensor.source_name or tensor.name,
            (_elements(tensor),) if tensor.shape is None else tensor.shape,
            *_dlpack(tensor.dtype),
            module.bound(index) if struct == "outputs" else 0,
        )


def _dlpack(dtype: str) -> tuple[int, int]:
    """Return DLDataTypeCode and bits of ``dtype``; a bool is an unsigned integer of one bit, as in TVM."""
    found = _DTYPE.fullmatch(dtype)
    return (1, 1) if found is None else (_CODES[found[1]], int(found[2]))


def _function(module: Module) -> str:
    """Return the prefix of the module's functions: TVM's headers have it in lower case, its code may not."""
    file = header_file(module)
    name = symbol_prefix(module.name)
    return name if file and f" {name}_run(".encode() in file.data else struct_prefix(module.name)


def _elements(tensor: TensorInfo) -> int:
    size = element_size(tensor.dtype) or 1
    return tensor.size // size if tensor.dtype in C_TYPES or size in _BYTES else tensor.size


def _c_values(values: Array) -> Array:
    """Return ``values`` in a type that C has."""
    if values.dtype.name not in C_TYPES or values.dtype == np.bool_:
        return values.view(f"uint{8 * values.itemsize}")
    return values


def _lines(values: Array) -> Iterable[str]:
    # ``repr`` of a Python float is the shortest text that is read as the same value.
    if values.dtype == np.float64:
        return (f"    {value!r}," for value in values.tolist())
    # Half of the values do not fit a signed type, which a decimal constant without a suffix has in C.
    if values.dtype == np.uint64:
        return (f"    UINT64_C({value})," for value in values.tolist())
    return array_lines(values)
