"""Collect the content of a library as JSON-ready data.

Sizes, types and shapes come from the metadata, the headers of the parameters and the graph, which were read with the
library. Requirements that are not in the metadata are found in the code (``library.requirement``). Device contexts are
those that the first RFC of the format proposed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any

from mlfbuild.core import InputFileError
from mlfbuild.library import (
    CodegenFile,
    DeviceContext,
    ExternalDependency,
    Library,
    MainMemory,
    Module,
    OperatorFunction,
    Requirement,
    TensorInfo,
    UnknownField,
    archive_folder,
    bundle,
    bundle_name,
    bundle_names,
    corrected_files,
    description_path,
    device_code,
    device_name,
    param_infos,
    requirements_of,
    runtime_requirement,
)
from mlfbuild.library.graph_json import parse_graph, storage_sizes


def context_facts(context: DeviceContext) -> dict[str, Any]:
    """Return ``context`` as JSON-ready data; unknown values are null."""
    return {
        "device_type": context.device_type,
        "device_id": context.device_id,
        "compiler": context.compiler or None,
        "config": json.loads(context.config) if context.config else None,
        "target": context.target or None,
    }


def context_text(facts: dict[str, Any], code: Callable[[str], str]) -> str:
    """Return ``context_facts`` in one line; ``code`` formats text from the archive.

    For example ``cpu, id 0, target llvm``. Members without a value are left out.
    """
    words = [code(facts["device_type"]), f"id {facts['device_id']}"]
    words += [f"{key} {code(facts[key])}" for key in ("compiler", "target") if facts[key]]
    if facts["config"] is not None:
        words.append(f"config {code(json.dumps(facts['config'], sort_keys=True))}")
    return ", ".join(words)


def describe(library: Library) -> dict[str, Any]:
    """Return the content of ``library`` as JSON-ready data; sizes are bytes, tensors are in call order.

    Unknown values are null. Raises ``InputFileError`` if a module's graph is invalid.
    """
    return {
        "version": library.version,
        "modules": [_module(module, library) for module in library.modules],
        "other_files": [{"path": str(file.path), "size": len(file.content)} for file in library.other_files],
        "unknown_fields": [_unknown("", field) for field in library.unknown],
    }


def _module(module: Module, library: Library) -> dict[str, Any]:
    return {
        "name": module.name,
        "style": module.style,
        "executor": module.executor or None,
        "interface": module.interface or None,
        "target": [target.text for target in module.targets],
        "target_device_types": [target.device for target in module.targets],
        "contexts": [context_facts(context) for context in module.contexts],
        "model_id": module.model_id or None,
        "inputs": [_tensor(tensor) for tensor in module.inputs],
        "outputs": [_tensor(tensor) for tensor in module.outputs],
        "buffers": [{**asdict(buffer), "shape": list(buffer.shape)} for buffer in module.buffers],
        "devices": list(module.devices),
        "memory": [_memory(entry) for entry in module.main],
        "state_size": module.state_size,
        "workspace_bound": module.workspace_bound,
        "pools": [asdict(pool) for pool in module.pools],
        "storage": [asdict(entry) for entry in module.storage],
        "operator_functions": [_function(function) for function in module.operator_functions],
        "trace": [
            {**_tensor(traced.tensor), "operator": traced.operator, "function": traced.function}
            for traced in module.trace
        ],
        "network": _network(module),
        "hook": module.hook,
        "runtime": module.runtime or None,
        "tflm": module.tflm or None,
        "extensions": dict(sorted(module.extensions.items())),
        "notes": list(module.notes),
        "repeated_declarations": _repeated(module),
        "graph": _graph(module),
        "parameters": _parameters(module),
        "files": _files(module.codegen),
        "device_code": [
            {"device": code.name, "size": code.size, "files": _files(code.files)} for code in device_code(module)
        ],
        "source_text": {"size": len(module.source_text)} if module.source_text else None,
        "tir": [{"device": device, "size": len(text)} for device, text in module.tir],
        "external_dependencies": [_dependency(item, library) for item in module.external_dependencies],
        "needs": [_need(requirement) for requirement in _requirements(module)],
        "export_datetime": module.export_datetime or None,
        "unknown_fields": [_unknown(path, field) for path, field in unknown_fields(module)],
    }


def unknown_fields(module: Module) -> Iterator[tuple[str, UnknownField]]:
    """Yield the fields of the metadata that the format does not define, each with the place of its place's root."""
    yield from (("", field) for field in module.unknown)
    for index, dependency in enumerate(module.external_dependencies):
        yield from ((f"/external_dependencies/{index}", field) for field in dependency.unknown)


def _unknown(path: str, field: UnknownField) -> dict[str, Any]:
    return {"place": path + field.place, "value": json.loads(field.value)}


def _files(files: Iterable[CodegenFile]) -> list[dict[str, Any]]:
    return [{"path": f"codegen/{file.path}", "size": len(file.content)} for file in files]


def _repeated(module: Module) -> list[dict[str, Any]]:
    """Return the functions that TVM declares twice with different types; mlfbuild compiles a corrected copy."""
    return [
        {"path": f"codegen/{file.path}", "line": each.line, "function": each.name}
        for file, repeated in corrected_files(module)
        for each in repeated
    ]


def _tensor(tensor: TensorInfo) -> dict[str, Any]:
    shape = None if tensor.shape is None else list(tensor.shape)
    return {**asdict(tensor), "shape": shape, "source_name": tensor.source_name or None}


def _memory(entry: MainMemory) -> dict[str, Any]:
    return {
        "device": entry.device,
        "device_name": device_name(entry.device),
        **{key: getattr(entry, key) for key in ("workspace_size", "constants_size", "io_size")},
    }


def _function(function: OperatorFunction) -> dict[str, Any]:
    sizes = [{"device": device, "size": size} for device, size in function.workspace]
    return {"name": function.name, "workspace_size": largest(sizes), "workspace": sizes}


def largest(sizes: list[dict[str, Any]]) -> int:
    """Return the largest ``size`` in a list of facts, 0 if it is empty."""
    return max((int(entry["size"]) for entry in sizes), default=0)


def _network(module: Module) -> dict[str, Any] | None:
    """Return the number of operators and of their multiply-accumulates, or ``None`` if unknown."""
    network = module.network
    if network is None:
        return None
    total = network.removed
    removed = {} if total is None else {"removed": {"weights": total.weights, "macs": total.macs}}
    memories = {"memories": [vars(memory) for memory in network.arenas]} if network.arenas else {}
    return {"operators": len(network.operators), "macs": network.macs, **removed, **memories}


def _graph(module: Module) -> dict[str, Any] | None:
    """Return the graph's size; ``storage_size`` is the memory of its tensors, with the largest tensor of each id."""
    if module.graph_json is None:
        return None
    graph = parse_graph(bytes(module.graph_json), f"graph of {module.name}")
    storage = storage_sizes(graph)
    return {
        "size": len(module.graph_json),
        "nodes": len(graph.nodes),
        "operators": sum(node.op != "null" for node in graph.nodes),
        "storage_ids": len(storage),
        "storage_size": sum(storage.values()),
    }


# Only headers of arrays are read, because the parameters may be as long as the weights.
def _parameters(module: Module) -> list[dict[str, Any]]:
    return [
        {"name": name, "dtype": info.dtype, "shape": list(info.shape), "size": info.size}
        for name, info in param_infos(module.params).items()
    ]


def _dependency(dependency: ExternalDependency, library: Library) -> dict[str, Any]:
    """Return the fields and, for a folder of the archive, whether the archive has it, and its description."""
    folder = archive_folder(dependency)
    present = None if folder is None else any(file.path.is_relative_to(folder) for file in library.other_files)
    known = {key: getattr(dependency, key) for key in ("short_name", "url", "url_type", "version_spec")}
    return {**known, "in_archive": present, "bundle": _bundle(bundle_name(dependency), library)}


def _bundle(name: str, library: Library) -> dict[str, Any] | None:
    """Return the facts of a bundled library; ``None`` if the archive does not have a valid description."""
    if name not in bundle_names(library):
        return None
    try:
        found = bundle(library, name, str(description_path(name)))
    except InputFileError:  # `validate` reports it
        return None
    size = sum(len(content) for content in found.files.values())
    counts = {"files": len(found.files), "sources": len(found.sources), "size": size}
    return {**counts, "license": found.license or None, "commit": found.commit or None}


def _requirements(module: Module) -> Iterator[Requirement]:
    yield from requirements_of(module)
    runtime = runtime_requirement(module)
    if runtime is not None:
        yield runtime


def _need(requirement: Requirement) -> dict[str, Any]:
    """Return a library that the code requires; ``exporter`` is set if the version follows from it."""
    return {
        "name": requirement.name,
        "version": requirement.version or None,
        "exporter": requirement.exporter or None,
        "url": requirement.url,
        "url_type": requirement.url_type,
        "declared": requirement.declared,
        "headers": list(requirement.headers),
    }
