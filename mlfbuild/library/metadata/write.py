"""Write ``metadata.json`` with TVM's keys and layout, so that TVM's tools read it.

The metadata of full models is sorted by key and indented by two. That of an operator is one line in TVM's order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mlfbuild.library.memory import CPU_DEVICE, MainMemory, StorageEntry
from mlfbuild.library.metadata.extension import EXTENSION, Extension
from mlfbuild.library.metadata.versions import FORMATS, Format
from mlfbuild.library.types import OPERATOR, Library, Module


def metadata_json(library: Library, export_datetime: str, extensions: Mapping[str, Extension] | None = None) -> bytes:
    """Return the text of ``metadata.json`` for ``library`` in the library's version (see ``archive.convert``).

    ``export_datetime`` (``YYYY-MM-DD HH:MM:SSZ``) is used for modules without a date; ``extensions`` has the content of
    the key ``mlfbuild`` by module name. Versions without ``modules``, and operators, need a library of one module.
    """
    form = FORMATS[library.version]
    said = {name: extension.json() for name, extension in (extensions or {}).items()}
    modules = {
        module.name: _module_json(module, form, export_datetime)
        | ({EXTENSION: said[module.name]} if said.get(module.name) else {})
        for module in library.modules
    }
    if len(library.modules) == 1 and (not form.modules or library.modules[0].style == OPERATOR):
        (document,) = ({"version": library.version, **fields} for fields in modules.values())
    else:
        document = {"version": library.version, "modules": modules}
    if any(module.style == OPERATOR for module in library.modules):
        return json.dumps(document).encode()
    return json.dumps(document, sort_keys=True, indent=2).encode()


def _module_json(module: Module, form: Format, export_datetime: str) -> dict[str, Any]:
    """Return a module's keys in the order of TVM's ``_export_operator_model_library_format``."""
    fields: dict[str, Any] = {
        "model_name": module.name,
        "export_datetime": module.export_datetime or export_datetime,
        "memory": _operator_memory(module) if module.style == OPERATOR else _memory(module, form),
        "target": _target_json(module, form),
        form.executors: [module.executor] if module.executor else [],
        "style": module.style,
    }
    if module.external_dependencies:
        fields["external_dependencies"] = [vars(dependency) for dependency in module.external_dependencies]
    return fields


def _target_json(module: Module, form: Format) -> dict[str, str] | list[str]:
    if form.targets_by_device:
        return {str(target.device or CPU_DEVICE): target.text for target in module.targets}
    return [target.text for target in module.targets]


def _memory(module: Module, form: Format) -> dict[str, Any]:
    functions = {
        "main": [_main_json(entry, module, form) for entry in module.main],
        "operator_functions": [
            {
                "function_name": function.name,
                "workspace": [{"device": device, "workspace_size_bytes": size} for device, size in function.workspace],
            }
            for function in module.operator_functions
        ],
    }
    if module.executor != "graph" and not module.storage:
        return {"functions": functions}
    return {"functions": functions, "sids": [_storage_json(entry) for entry in module.storage]}


def _main_json(entry: MainMemory, module: Module, form: Format) -> dict[str, Any]:
    sizes: dict[str, Any] = {
        "device": entry.device,
        "workspace_size_bytes": entry.workspace_size,
        "constants_size_bytes": entry.constants_size,
        "io_size_bytes": entry.io_size,
    }
    if form.tensors and (module.inputs or module.outputs):
        sizes["inputs"] = {tensor.name: {"size": tensor.size, "dtype": tensor.dtype} for tensor in module.inputs}
        sizes["outputs"] = {tensor.name: {"size": tensor.size, "dtype": tensor.dtype} for tensor in module.outputs}
    return sizes


def _storage_json(entry: StorageEntry) -> dict[str, Any]:
    fields: dict[str, Any] = {"storage_id": entry.storage_id, "size_bytes": entry.size}
    return fields if entry.input_binding is None else fields | {"input_binding": entry.input_binding}


def _operator_memory(module: Module) -> dict[str, Any]:
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
