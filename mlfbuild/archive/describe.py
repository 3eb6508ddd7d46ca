"""What an archive holds, as data for ``--format json`` and as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mlfbuild.library import Library, MainMemory, Module, TensorInfo


def describe(library: Library) -> dict[str, Any]:
    """Return what ``library`` holds as JSON-ready data; sizes are bytes, tensors stand in call order."""
    return {
        "version": library.version,
        "modules": [_module(module) for module in library.modules],
        "other_files": [{"path": str(file.path), "size": len(file.content)} for file in library.other_files],
    }


def _module(module: Module) -> dict[str, Any]:
    return {
        "name": module.name,
        "executor": module.executor,
        "target": [target.text for target in module.targets],
        "model_id": module.model_id or None,
        "inputs": [_tensor(tensor) for tensor in module.inputs],
        "outputs": [_tensor(tensor) for tensor in module.outputs],
        "memory": [_memory(entry) for entry in module.main],
        "operator_functions": [
            {"name": function.name, "workspace_size": max((size for _, size in function.workspace), default=0)}
            for function in module.operator_functions
        ],
        "parameters": [
            {"name": name, "dtype": value.dtype.name, "shape": list(value.shape), "size": value.nbytes}
            for name, value in module.params.items()
        ],
        "files": [{"path": f"codegen/{file.path}", "size": len(file.content)} for file in module.codegen],
        "external_dependencies": [vars(dependency) for dependency in module.external_dependencies],
        "export_datetime": module.export_datetime,
    }


def _tensor(tensor: TensorInfo) -> dict[str, Any]:
    shape = None if tensor.shape is None else list(tensor.shape)
    return {**vars(tensor), "shape": shape}


def _memory(entry: MainMemory) -> dict[str, int]:
    return {
        "device": entry.device,
        "workspace_size": entry.workspace_size,
        "constants_size": entry.constants_size,
        "io_size": entry.io_size,
    }


def describe_text(library: Library) -> str:
    """Return ``describe(library)`` as lines for people, the last one without a line end."""
    return "\n".join(_lines(describe(library)))


def _lines(facts: dict[str, Any]) -> Iterator[str]:
    yield f"Model Library Format version {facts['version']}"
    for module in facts["modules"]:
        yield ""
        yield f"module {module['name']}: {module['executor']} executor"
        yield from (f"  target     {target.strip()}" for target in module["target"])
        if module["model_id"]:
            yield f"  model      sha256 {module['model_id']}"
        for kind in ("inputs", "outputs"):
            yield from (f"  {kind[:-1]:<10} {_tensor_line(tensor)}" for tensor in module[kind])
        for entry in module["memory"]:
            yield (
                f"  memory     workspace {entry['workspace_size']:,} bytes, constants {entry['constants_size']:,}, "
                f"inputs and outputs {entry['io_size']:,}"
            )
        yield f"  operators  {len(module['operator_functions'])}"
        if module["parameters"]:
            size = sum(parameter["size"] for parameter in module["parameters"])
            yield f"  parameters {_count(module['parameters'], 'array')}, {size:,} bytes"
        yield from (f"  file       {file['path']} ({file['size']:,} bytes)" for file in module["files"])
        yield from (
            f"  needs      {item['short_name']} {item['version_spec']} ({item['url']})"
            for item in module["external_dependencies"]
        )
    if facts["other_files"]:
        size = sum(file["size"] for file in facts["other_files"])
        yield ""
        yield f"{_count(facts['other_files'], 'file')} of no module, {size:,} bytes"


def _count(things: Sequence[object], noun: str) -> str:
    return f"{len(things):,} {noun}{'' if len(things) == 1 else 's'}"


def _tensor_line(tensor: dict[str, Any]) -> str:
    shape = "" if tensor["shape"] is None else str(tensor["shape"])
    line = f"{tensor['name']} {tensor['dtype']}{shape}, {tensor['size']:,} bytes"
    if tensor["scale"] is not None:
        line += f", scale {tensor['scale']:.9g}, zero point {tensor['zero_point']}"
    return line
