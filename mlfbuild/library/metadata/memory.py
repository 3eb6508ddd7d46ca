"""Read the key ``memory`` of ``metadata.json`` in all its forms, and write it with TVM's keys.

::

    [{storage_id, size_bytes, input_binding}]                     version 1
    {"0": {size_bytes, input_binding}}                            the first RFC's sketch, by storage id
    {functions: {main: [...], operator_functions: [...]}, sids}   versions 2 to 7; sids for the graph executor
    {"<function>": [{size_bytes, shape, dtype, input_binding}]}   operators, versions 4 to 7
    {main: [...], operator_functions: {"<function>": [...]}}      TVM's documentation, which no exporter followed
    {functions: {main: [...], "<function>": [...]}}               the RFC of several modules, in the same way
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mlfbuild.library.fields import Fields
from mlfbuild.library.metadata.versions import Format
from mlfbuild.library.value import (
    OPERATOR,
    MainMemory,
    Module,
    OperatorBuffer,
    OperatorFunction,
    StorageEntry,
    TensorInfo,
)

_OPERATORS = "operator_functions"
_FUNCTIONS = ("memory", "functions")
_STORAGE = ("memory", "sids")


@dataclass(frozen=True)
class MemoryRecord:
    """The content of the key; tensors are in alphabetical order, ``None`` if the version does not have them."""

    main: tuple[MainMemory, ...] = ()
    functions: tuple[OperatorFunction, ...] = ()
    storage: tuple[StorageEntry, ...] = ()
    buffers: tuple[OperatorBuffer, ...] = ()
    inputs: tuple[TensorInfo, ...] | None = None
    outputs: tuple[TensorInfo, ...] | None = None


def read_memory(fields: Fields, style: str, form: Format) -> MemoryRecord:
    """Return the memory of a module; raises ``InputFileError`` if a key is missing or has the wrong type."""
    if style == OPERATOR:
        return _of_operators(fields.member("memory"))
    if fields.holds("memory", list):
        return MemoryRecord(storage=_storage_list(fields.objects("memory")))
    memory = fields.member("memory")
    if _is_by_storage_id(memory, form):
        return MemoryRecord(storage=_storage_map(memory))
    return _of_functions(memory)


def _of_functions(memory: Fields) -> MemoryRecord:
    documented = "functions" not in memory and "main" in memory
    functions = memory if documented else memory.member("functions")
    mains = functions.objects("main")
    for index, entry in enumerate(mains):
        entry.put_at(*_FUNCTIONS, "main", str(index))
    for key in ("inputs", "outputs"):  # the same in each entry
        for entry in mains[1:]:
            if entry.raw(key) == mains[0].raw(key):
                entry.skip(key)
    return MemoryRecord(
        main=read_main(mains),
        functions=_functions(functions, by_name=not documented),
        storage=_storage_list(memory.objects("sids")),
        inputs=_tensors(mains[0], "inputs") if mains else None,
        outputs=_tensors(mains[0], "outputs") if mains else None,
    )


def _functions(functions: Fields, *, by_name: bool) -> tuple[OperatorFunction, ...]:
    """Return the operator functions; with ``by_name``, each may have a key of its own beside ``main``."""
    if functions.holds(_OPERATORS, dict):
        named = functions.member(_OPERATORS)
        names = named.unsorted_names()
    elif by_name and _OPERATORS not in functions:
        named = functions
        names = [name for name in functions.unsorted_names() if name != "main" and functions.holds_all(name, dict)]
    else:
        return read_functions(functions.objects(_OPERATORS))
    found = []
    for index, name in enumerate(names):
        entries = named.objects(name)
        for item, entry in enumerate(entries):
            entry.put_at(*_FUNCTIONS, _OPERATORS, str(index), "workspace", str(item))
        found.append(OperatorFunction(name, _workspace(entries)))
    return tuple(found)


def read_main(entries: Sequence[Fields]) -> tuple[MainMemory, ...]:
    """Return the memory of the entry function on each device."""
    return tuple(
        MainMemory(
            workspace_size=entry.integer("workspace_size_bytes"),
            constants_size=entry.integer("constants_size_bytes"),
            io_size=entry.integer("io_size_bytes"),
            device=entry.integer("device"),
        )
        for entry in entries
    )


def read_functions(entries: Sequence[Fields]) -> tuple[OperatorFunction, ...]:
    """Return the operator functions in a list with their names."""
    return tuple(
        OperatorFunction(entry.text("function_name"), _workspace(entry.objects("workspace"))) for entry in entries
    )


def _workspace(entries: Sequence[Fields]) -> tuple[tuple[int, int], ...]:
    return tuple((entry.integer("device"), entry.integer("workspace_size_bytes")) for entry in entries)


def _tensors(entry: Fields, key: str) -> tuple[TensorInfo, ...] | None:
    if key not in entry:
        return None
    tensors = entry.member(key)
    named = [(name, tensors.member(name)) for name in tensors.names()]
    return tuple(TensorInfo(name, tensor.text("dtype"), tensor.integer("size")) for name, tensor in named)


def _storage_list(entries: Sequence[Fields]) -> tuple[StorageEntry, ...]:
    for index, entry in enumerate(entries):
        entry.put_at(*_STORAGE, str(index))
    return tuple(_storage(entry) for entry in entries)


def _storage(entry: Fields) -> StorageEntry:
    return StorageEntry(
        entry.integer("storage_id"), entry.integer("size_bytes"), entry.optional_text("input_binding") or None
    )


def _is_by_storage_id(memory: Fields, form: Format) -> bool:
    names = memory.names()
    # An empty object has both readings, so the version decides.
    return all(map(_is_id, names)) and (bool(names) or not form.memory_of_functions)


def _is_id(key: str) -> bool:
    return key.isascii() and key.isdecimal() and len(key) < 10


def _storage_map(memory: Fields) -> tuple[StorageEntry, ...]:
    entries = []
    for index, key in enumerate(sorted(memory.unsorted_names(), key=int)):
        entry = memory.member(key)
        entry.put_at(*_STORAGE, str(index))
        if "storage_id" in entry and entry.integer("storage_id") != int(key):
            reason = f"contradicts its key, {int(key)}"
            raise entry.error("storage_id", reason, code="metadata-contradiction", hint="correct one of them")
        entry.skip("storage_id")
        binding = entry.optional_text("input_binding") or None
        entries.append(StorageEntry(int(key), entry.integer("size_bytes"), binding))
    return tuple(entries)


def _of_operators(memory: Fields) -> MemoryRecord:
    """Return the buffers, and the functions, which may have no buffers."""
    names = memory.unsorted_names()
    buffers = tuple(_buffer(name, entry) for name in names for entry in memory.objects(name))
    return MemoryRecord(functions=tuple(OperatorFunction(name, ()) for name in names), buffers=buffers)


def _buffer(function: str, entry: Fields) -> OperatorBuffer:
    return OperatorBuffer(
        function, entry.integer("size_bytes"), entry.integers("shape"), entry.text("dtype"),
        entry.optional_text("input_binding"),
    )  # fmt: skip


def memory_json(module: Module, form: Format) -> dict[str, Any] | list[Any]:
    """Return the memory of a full model, of which version 1 has only the storage ids."""
    storage = [_storage_json(entry) for entry in module.storage]
    if not form.memory_of_functions:
        return storage
    tensors = _tensors_json(module, form)  # one object in all entries, so that they keep the same unknown fields
    functions = {
        "main": [entry | tensors for entry in main_json(module.main)],
        "operator_functions": functions_json(module.operator_functions),
    }
    return {"functions": functions, **({"sids": storage} if module.executor == "graph" or storage else {})}


def main_json(entries: Sequence[MainMemory]) -> list[dict[str, Any]]:
    """Return the memory of the entry function on each device."""
    return [
        {
            "device": entry.device,
            "workspace_size_bytes": entry.workspace_size,
            "constants_size_bytes": entry.constants_size,
            "io_size_bytes": entry.io_size,
        }
        for entry in entries
    ]


def functions_json(functions: Sequence[OperatorFunction]) -> list[dict[str, Any]]:
    """Return the operator functions with their names."""
    return [
        {
            "function_name": function.name,
            "workspace": [{"device": device, "workspace_size_bytes": size} for device, size in function.workspace],
        }
        for function in functions
    ]


def _tensors_json(module: Module, form: Format) -> dict[str, Any]:
    if not form.tensors or not (module.inputs or module.outputs):
        return {}
    return {
        "inputs": {tensor.name: {"size": tensor.size, "dtype": tensor.dtype} for tensor in module.inputs},
        "outputs": {tensor.name: {"size": tensor.size, "dtype": tensor.dtype} for tensor in module.outputs},
    }


def _storage_json(entry: StorageEntry) -> dict[str, Any]:
    fields: dict[str, Any] = {"storage_id": entry.storage_id, "size_bytes": entry.size}
    return fields if entry.input_binding is None else fields | {"input_binding": entry.input_binding}


def operator_memory_json(module: Module) -> dict[str, Any]:
    """Return the buffers of each function of an operator."""
    memory: dict[str, list[dict[str, Any]]] = {function.name: [] for function in module.operator_functions}
    for buffer in module.buffers:
        memory.setdefault(buffer.function, []).append(
            {
                "size_bytes": buffer.size,
                "shape": list(buffer.shape),
                "dtype": buffer.dtype,
                "input_binding": buffer.input_binding,
            }
        )
    return memory
