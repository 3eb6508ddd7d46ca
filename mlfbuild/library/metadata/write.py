"""Write ``metadata.json`` with TVM's keys and layout, so that TVM's tools read it.

The metadata of full models is sorted by key and indented by two. That of an operator is one line in TVM's order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mlfbuild.library.metadata.extension import EXTENSION, MEMBERS, VERSION, Extension, is_newer
from mlfbuild.library.metadata.memory import memory_json, operator_memory_json
from mlfbuild.library.metadata.module_keys import DEPENDENCIES, dependencies_json
from mlfbuild.library.metadata.unknown import placed, placed_beside
from mlfbuild.library.metadata.versions import FORMATS, Format
from mlfbuild.library.value import CPU_DEVICE, OPERATOR, Library, Module


def metadata_json(library: Library, export_datetime: str, extensions: Mapping[str, Extension] | None = None) -> bytes:
    """Return the text of ``metadata.json`` for ``library`` in the library's version (see ``archive.convert``).

    ``export_datetime`` (``YYYY-MM-DD HH:MM:SSZ``) is used for modules without a date; ``extensions`` has the content of
    the key ``mlfbuild`` by module name. Versions without ``modules``, and operators, need a library of one module.
    """
    form = FORMATS[library.version]
    known = extensions or {}
    modules = {
        module.name: _module_json(module, form, export_datetime, known.get(module.name, Extension()))
        for module in library.modules
    }
    # Operators are not in `modules`, not even in version 7.
    flat = len(library.modules) == 1 and (not form.modules or library.modules[0].style == OPERATOR)
    document = {"version": library.version, **({} if flat else {"modules": modules})}
    beside = {field.place: json.loads(field.value) for field in library.unknown} if flat else {}
    beside |= {} if flat else placed_beside(document, library.unknown)
    if beside:
        _extended(next(iter(modules.values())))["archive"] = beside
    if flat:
        document |= next(iter(modules.values()))
    if any(module.style == OPERATOR for module in library.modules):
        return json.dumps(document).encode()
    return json.dumps(document, sort_keys=True, indent=2).encode()


def _module_json(module: Module, form: Format, export_datetime: str, extension: Extension) -> dict[str, Any]:
    """Return a module's keys in the order of TVM's ``_export_operator_model_library_format``."""
    fields: dict[str, Any] = {
        "model_name": module.name,
        "export_datetime": module.export_datetime or export_datetime,
        "memory": operator_memory_json(module) if module.style == OPERATOR else memory_json(module, form),
        "target": _target_json(module, form),
        form.executors: [module.executor] if module.executor else [],
        **({"style": module.style} if form.operators else {}),
    }
    if module.external_dependencies and form.dependencies:
        fields[DEPENDENCIES] = dependencies_json(module.external_dependencies)
    said = extension.json()
    if said:
        fields[EXTENSION] = said
    _add_unknown(fields, module)
    return fields


def _add_unknown(fields: dict[str, Any], module: Module) -> None:
    if any(field.place.startswith(f"/{EXTENSION}/") for field in module.unknown):
        _extended(fields)
    others = placed(fields, module.unknown, operator=module.style == OPERATOR, extension=MEMBERS)
    newer = others.get(f"/{EXTENSION}")
    if EXTENSION not in fields and len(others) == 1 and is_newer(newer):
        fields[EXTENSION] = newer
    elif others:
        _extended(fields)["unknown"] = others


def _extended(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the object of the key ``mlfbuild`` of a module."""
    found: dict[str, Any] = fields.setdefault(EXTENSION, {"version": VERSION})
    return found


def _target_json(module: Module, form: Format) -> dict[str, str] | list[str]:
    if form.targets_by_device:
        devices = (CPU_DEVICE if target.device is None else target.device for target in module.targets)
        return {str(device): target.text for device, target in zip(devices, module.targets, strict=True)}
    return [target.text for target in module.targets]
