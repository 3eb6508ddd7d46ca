"""Find the sizes of tensors that only the header names: from its macros, the C code and the size of all together.

TVM before 0.11 does not record sizes in the metadata. They normally follow from the Relay text; this is for archives
without it.
"""

from __future__ import annotations

import re
from dataclasses import replace

from mlfbuild.archive.interface.entry import main_function
from mlfbuild.archive.interface.header import Header
from mlfbuild.archive.interface.signature import Signature
from mlfbuild.library import C_TYPES, Module, symbol_prefix

_DTYPES = {c_type: dtype for dtype, c_type in reversed([*C_TYPES.items()])}


def exact_io_size(module: Module) -> int | None:
    """Return ``io_size_bytes`` of the module if that is the size of its inputs and its only output.

    TVM 0.9 and later adds the result of each operator that the AOT executor calls (``ToANormalForm`` of its
    ``aot_executor_codegen.cc``); ``None`` if there are several.
    """
    total = sum(memory.io_size for memory in module.main)
    if module.executor != "aot":
        return total
    main = main_function(module)
    if main is None:
        return None
    calls = re.findall(rf"\b{symbol_prefix(module.name)}_\w+\s?\(", main.body)
    return total if main.name.endswith("run_model") or len(calls) == 1 else None


def sized_signature(module: Module, header: Header) -> Signature | None:
    """Return the tensors of ``header`` with types and sizes; ``None`` if these are not certain.

    The types are those of the pointers in the main function since TVM 0.9. A size that no macro states is what remains
    of ``io_size_bytes``. The macros of TVM 0.11 may be wrong: sizes with a larger sum are not used.
    """
    inputs, outputs = header.signature.inputs or (), header.signature.outputs or ()
    arguments = [*inputs, *outputs]
    main = main_function(module)
    pointers = [part.split("*")[0].split() for part in (main.parameters if main else "").split(",")]
    types = [_DTYPES.get(words[-1], "") if words else "" for words in pointers]
    if not outputs or len(types) < len(arguments) or not all(types[: len(arguments)]):
        return None
    sizes = [header.sizes.get(f"{header.prefix}_{argument.name.upper()}_SIZE") for argument in arguments]
    known = sum(size for size in sizes if size is not None)
    total = exact_io_size(module) if len(outputs) == 1 else None
    if sizes.count(None) == 1 and total is not None and total > known:
        sizes = [total - known if size is None else size for size in sizes]
        known = total
    if None in sizes or known > sum(memory.io_size for memory in module.main) or total not in {None, known}:
        return None
    found = tuple(
        replace(argument, dtype=dtype, recorded=size)
        for argument, dtype, size in zip(arguments, types, sizes, strict=False)
    )
    return Signature(found[: len(inputs)], found[len(inputs) :])
