"""``metadata.json`` of Model Library Format, version 7, to and from the fields of ``Module``.

Keys and layout are TVM's (sorted keys, indentation of two), so that TVM's own tools read what is written here. Two
things that TVM leaves out stand under one key of our own in each module, ``"mlfbuild"``, which TVM's tools skip: the
call order of inputs and outputs (JSON objects are written sorted by name, which loses it), and shapes, quantisation
and the hash of the model where they are known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from mlfbuild.errors import InputFileError
from mlfbuild.library.fields import Fields, parse_json
from mlfbuild.library.memory import MainMemory, OperatorFunction, StorageEntry, TensorInfo
from mlfbuild.library.types import CodegenFile, ExternalDependency, Library, Module, Target

VERSION = 7
EXECUTORS = ("aot", "graph")
_EXTENSION = "mlfbuild"
_EXTENSION_VERSION = 1


# Writing -------------------------------------------------------------------------------------------------------------


def metadata_json(library: Library, export_datetime: str, shared: Sequence[CodegenFile] = ()) -> bytes:
    """Return the text of ``metadata.json`` for ``library``.

    ``export_datetime`` (``YYYY-MM-DD HH:MM:SSZ``) stands in for modules that have no date of their own. The paths of
    ``shared``, codegen files that do not bear their module's name, are recorded with each module that has them.
    """
    modules = {module.name: _module_json(module, export_datetime, shared) for module in library.modules}
    return json.dumps({"version": VERSION, "modules": modules}, sort_keys=True, indent=2).encode()


def _module_json(module: Module, export_datetime: str, shared: Sequence[CodegenFile]) -> dict[str, Any]:
    functions = {
        "main": [_main_json(entry, module) for entry in module.main],
        "operator_functions": [
            {
                "function_name": function.name,
                "workspace": [{"device": device, "workspace_size_bytes": size} for device, size in function.workspace],
            }
            for function in module.operator_functions
        ],
    }
    memory: dict[str, Any] = {"functions": functions}
    if module.executor == "graph":
        memory["sids"] = [_storage_json(entry) for entry in module.storage]
    fields: dict[str, Any] = {
        "model_name": module.name,
        "export_datetime": module.export_datetime or export_datetime,
        "executors": [module.executor],
        "style": "full-model",
        "target": [target.text for target in module.targets],
        "memory": memory,
    }
    if module.external_dependencies:
        fields["external_dependencies"] = [vars(dependency) for dependency in module.external_dependencies]
    extension = _extension_json(module, [str(file.path) for file in module.codegen if file in shared])
    return fields | ({_EXTENSION: extension} if extension else {})


def _main_json(entry: MainMemory, module: Module) -> dict[str, Any]:
    sizes: dict[str, Any] = {
        "device": entry.device,
        "workspace_size_bytes": entry.workspace_size,
        "constants_size_bytes": entry.constants_size,
        "io_size_bytes": entry.io_size,
    }
    if module.inputs or module.outputs:  # TVM before 0.11 has neither key
        sizes["inputs"] = {tensor.name: {"size": tensor.size, "dtype": tensor.dtype} for tensor in module.inputs}
        sizes["outputs"] = {tensor.name: {"size": tensor.size, "dtype": tensor.dtype} for tensor in module.outputs}
    return sizes


def _storage_json(entry: StorageEntry) -> dict[str, Any]:
    fields: dict[str, Any] = {"storage_id": entry.storage_id, "size_bytes": entry.size}
    return fields if entry.input_binding is None else fields | {"input_binding": entry.input_binding}


def _extension_json(module: Module, shared_paths: Sequence[str]) -> dict[str, Any] | None:
    """Return what TVM's keys cannot hold, or ``None`` where they hold everything, as for an archive that TVM wrote."""
    extension: dict[str, Any] = {}
    if module.model_id:
        extension["model_id"] = module.model_id
    if shared_paths:
        extension["codegen"] = list(shared_paths)
    for key, tensors in (("inputs", module.inputs), ("outputs", module.outputs)):
        names = [tensor.name for tensor in tensors]
        if names != sorted(names) or any(_has_details(tensor) for tensor in tensors):
            extension[key] = [_tensor_json(tensor) for tensor in tensors]
    return {"version": _EXTENSION_VERSION, **extension} if extension else None


def _has_details(tensor: TensorInfo) -> bool:
    return tensor.shape is not None or tensor.scale is not None or tensor.zero_point is not None


def _tensor_json(tensor: TensorInfo) -> dict[str, Any]:
    details = {"shape": tensor.shape, "scale": tensor.scale, "zero_point": tensor.zero_point}
    known = {key: value for key, value in details.items() if value is not None}
    return {"name": tensor.name, "dtype": tensor.dtype, "size": tensor.size, **known}


# Reading -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModuleRecord:
    """What ``metadata.json`` says of one module."""

    module: Module
    """Without files: no codegen, parameters, graph or text."""
    shared: tuple[str, ...]
    """Paths, below ``codegen``, of its codegen files that do not bear its name."""
    ordered: bool
    """Whether inputs and outputs are known to be in call order; else they are in alphabetical order."""


def read_document(data: bytes, where: str) -> Fields:
    """Return the object that is ``metadata.json``; raises ``InputFileError`` where it is not a JSON object."""
    return Fields(parse_json(data, where), where)


def read_modules(document: Fields) -> list[ModuleRecord]:
    """Return the modules of a version 7 document, sorted by name.

    Raises ``InputFileError`` for a missing key, a wrong type, or an operator-style library.
    """
    if "modules" not in document and document.text("style", default="") == "operator":
        raise document.error("style", "operator libraries are not supported by this version of mlfbuild")
    modules = document.member("modules")
    if not modules.names():
        raise document.error("modules", "is empty")
    return [_read_module(name, modules.member(name)) for name in modules.names()]


def _read_module(name: str, fields: Fields) -> ModuleRecord:
    executors = fields.texts("executors")
    if len(executors) != 1 or executors[0] not in EXECUTORS:
        raise fields.error("executors", f"must be one of {' and '.join(EXECUTORS)}")
    if fields.text("style", default="full-model") != "full-model":
        raise fields.error("style", "must be full-model")
    memory = fields.member("memory")
    functions = memory.member("functions")
    mains = functions.objects("main")
    extension = _read_extension(fields)
    module = Module(
        name=name,
        executor=executors[0],
        targets=tuple(Target(text) for text in fields.texts("target")),
        main=tuple(_read_main(entry) for entry in mains),
        inputs=_detailed(mains, extension, "inputs"),
        outputs=_detailed(mains, extension, "outputs"),
        operator_functions=tuple(_read_operator_function(entry) for entry in functions.objects("operator_functions")),
        codegen=(),
        storage=tuple(_read_storage(entry) for entry in memory.objects("sids")),
        external_dependencies=tuple(_read_dependency(entry) for entry in fields.objects("external_dependencies")),
        export_datetime=fields.text("export_datetime", default=""),
        model_id=extension.text("model_id", default="") if extension else "",
    )
    return ModuleRecord(module, extension.texts("codegen") if extension else (), ordered=extension is not None)


def _read_main(entry: Fields) -> MainMemory:
    return MainMemory(
        workspace_size=entry.integer("workspace_size_bytes"),
        constants_size=entry.integer("constants_size_bytes"),
        io_size=entry.integer("io_size_bytes"),
        device=entry.integer("device"),
    )


def _read_tensors(entry: Fields, key: str) -> tuple[TensorInfo, ...]:
    if key not in entry:
        return ()
    tensors = entry.member(key)
    named = [(name, tensors.member(name)) for name in tensors.names()]
    return tuple(TensorInfo(name, tensor.text("dtype"), tensor.integer("size")) for name, tensor in named)


def _read_operator_function(entry: Fields) -> OperatorFunction:
    workspace = [(item.integer("device"), item.integer("workspace_size_bytes")) for item in entry.objects("workspace")]
    return OperatorFunction(entry.text("function_name"), tuple(workspace))


def _read_storage(entry: Fields) -> StorageEntry:
    binding = entry.text("input_binding") if "input_binding" in entry else None
    return StorageEntry(entry.integer("storage_id"), entry.integer("size_bytes"), binding)


def _read_dependency(entry: Fields) -> ExternalDependency:
    return ExternalDependency(
        entry.text("short_name"), entry.text("url"), entry.text("url_type"), entry.text("version_spec")
    )


def _read_extension(fields: Fields) -> Fields | None:
    """Our own key; one that a later version wrote in another shape is left alone, as TVM's tools do."""
    if _EXTENSION not in fields:
        return None
    extension = fields.member(_EXTENSION)
    return extension if extension.integer("version") == _EXTENSION_VERSION else None


def _detailed(mains: Sequence[Fields], extension: Fields | None, key: str) -> tuple[TensorInfo, ...]:
    """Return what the extension records, after checking that it speaks of the same tensors."""
    tensors = _read_tensors(mains[0], key) if mains else ()
    if extension is None or key not in extension:
        return tensors
    detailed = tuple(_read_detailed(entry) for entry in extension.objects(key))
    if _summary(detailed) != _summary(tensors):
        raise extension.error(key, f"contradicts memory.functions.main[0].{key}")
    return detailed


def _read_detailed(entry: Fields) -> TensorInfo:
    return TensorInfo(
        name=entry.text("name"),
        dtype=entry.text("dtype"),
        size=entry.integer("size"),
        shape=entry.integers("shape") if "shape" in entry else None,
        scale=entry.number("scale") if "scale" in entry else None,
        zero_point=entry.integer("zero_point", minimum=-(2**31)) if "zero_point" in entry else None,
    )


def _summary(tensors: Iterable[TensorInfo]) -> list[tuple[str, str, int]]:
    return sorted((tensor.name, tensor.dtype, tensor.size) for tensor in tensors)


def unsupported_version(document: Fields) -> InputFileError:
    """Return the error for a document whose version has no reader."""
    version = document.integer("version", minimum=1)
    return InputFileError(
        f"{document.where}: version {version} of Model Library Format is not supported by this version of mlfbuild, "
        f"which reads version {VERSION}"
    )
