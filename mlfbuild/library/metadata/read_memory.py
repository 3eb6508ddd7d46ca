"""Read the key ``memory`` of ``metadata.json`` in all its forms.

::

[{storage_id, size_bytes, input_binding}]                     version 1
{"0": {size_bytes, input_binding}}                            the first RFC's sketch, by storage id
{functions: {main: [...], operator_functions: [...]}, sids}   versions 2 to 7; sids for the graph executor
{"<function>": [{size_bytes, shape, dtype, input_binding}]}   operators, versions 4 to 7
"""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.library.fields import Fields
from mlfbuild.library.memory import MainMemory, OperatorBuffer, OperatorFunction, StorageEntry, TensorInfo
from mlfbuild.library.metadata.versions import Format
from mlfbuild.library.types import OPERATOR


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
        return MemoryRecord(storage=tuple(_storage(entry) for entry in fields.objects("memory")))
    memory = fields.member("memory")
    if _is_by_storage_id(memory, form):
        return MemoryRecord(storage=_storage_map(memory))
    return _of_functions(memory)


def _of_functions(memory: Fields) -> MemoryRecord:
    functions = memory.member("functions")
    mains = functions.objects("main")
    return MemoryRecord(
        main=tuple(_main(entry) for entry in mains),
        functions=tuple(_function(entry) for entry in functions.objects("operator_functions")),
        storage=tuple(_storage(entry) for entry in memory.objects("sids")),
        inputs=_tensors(mains[0], "inputs") if mains else None,
        outputs=_tensors(mains[0], "outputs") if mains else None,
    )


def _main(entry: Fields) -> MainMemory:
    return MainMemory(
        workspace_size=entry.integer("workspace_size_bytes"),
        constants_size=entry.integer("constants_size_bytes"),
        io_size=entry.integer("io_size_bytes"),
        device=entry.integer("device"),
    )


def _tensors(entry: Fields, key: str) -> tuple[TensorInfo, ...] | None:
    if key not in entry:
        return None
    tensors = entry.member(key)
    named = [(name, tensors.member(name)) for name in tensors.names()]
    return tuple(TensorInfo(name, tensor.text("dtype"), tensor.integer("size")) for name, tensor in named)


def _function(entry: Fields) -> OperatorFunction:
    workspace = [(item.integer("device"), item.integer("workspace_size_bytes")) for item in entry.objects("workspace")]
    return OperatorFunction(entry.text("function_name"), tuple(workspace))


def _storage(entry: Fields) -> StorageEntry:
    return StorageEntry(
        entry.integer("storage_id"), entry.integer("size_bytes"), entry.optional_text("input_binding") or None
    )


def _is_by_storage_id(memory: Fields, form: Format) -> bool:
    names = memory.names()
    return all(map(_is_id, names)) and (bool(names) or not form.memory_of_functions)


def _is_id(key: str) -> bool:
    return key.isascii() and key.isdecimal() and len(key) < 10


def _storage_map(memory: Fields) -> tuple[StorageEntry, ...]:
    entries = []
    for key in sorted(memory.unsorted_names(), key=int):
        entry = memory.member(key)
        if "storage_id" in entry and entry.integer("storage_id") != int(key):
            reason = f"contradicts its key, {int(key)}"
            raise entry.error("storage_id", reason, code="metadata-contradiction", hint="correct one of them")
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
