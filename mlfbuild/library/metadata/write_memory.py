"""Write the key ``memory`` of ``metadata.json`` with TVM's keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlfbuild.library.metadata.versions import Format
from mlfbuild.library.value import MainMemory, Module, OperatorFunction, StorageEntry


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
