"""``metadata.json`` of every version to the fields of ``Module``.

What is there decides, not the version alone: ``modules`` or the keys of one module, ``executors`` or ``runtimes``,
targets as an object, a list or one string, memory as a list, by function or by storage id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlfbuild.library.fields import Fields, parse_json
from mlfbuild.library.metadata.contexts import read_contexts
from mlfbuild.library.metadata.extension import Extension, check_arena, check_tensors, contradiction, read_extension
from mlfbuild.library.metadata.read_memory import read_memory
from mlfbuild.library.metadata.versions import CURRENT, FORMATS, Format
from mlfbuild.library.types import FULL_MODEL, OPERATOR, ExternalDependency, Module, Target

_EXECUTORS = ("aot", "graph")
_MODULES = "modules"
_DEPENDENCIES = "external_dependencies"


@dataclass(frozen=True)
class ModuleRecord:
    """What ``metadata.json`` says of one module."""

    module: Module
    """Without files: no codegen, parameters, graph or text. Inputs and outputs are in alphabetical order."""
    extension: Extension
    """What our own key says."""


def read_document(data: bytes, where: str) -> Fields:
    """Return the object that is ``metadata.json``; raises ``InputFileError`` where it is not a JSON object."""
    return Fields(parse_json(data, where), where)


def read_format(document: Fields, named: int | None = None) -> Format:
    """Return the version that ``document`` is of; ``named`` is the one in the file's name, as the first RFC has it.

    Raises ``InputFileError`` for a version that does not exist, or two that differ.
    """
    if named is None or "version" in document:
        version = _version(document)
        if named not in {None, version}:
            raise document.error("version", f"is {version}, but the file's name says {named}; correct one of them")
    else:
        version = named
    if version not in FORMATS:
        newer = "; a newer mlfbuild may read it" if version > CURRENT else ""
        raise document.error("version", f"{version} of Model Library Format does not exist, only 1 to {CURRENT}{newer}")
    return FORMATS[version]


def _version(document: Fields) -> int:
    if "version" in document and not document.holds("version", int):
        raise document.error("version", f"must be a whole number from 1 to {CURRENT}, without quotes or decimals")
    return document.integer("version", minimum=-(2**63))


def read_modules(document: Fields, form: Format) -> list[ModuleRecord]:
    """Return the modules of a document, sorted by name.

    Raises ``InputFileError`` for a missing key, a wrong type, or two keys that contradict each other.
    """
    if _MODULES not in document:
        return [_read_module(document.text("model_name"), document, form)]
    modules = document.member(_MODULES)
    if not modules.names():
        raise document.error(_MODULES, "is empty; export the archive again")
    if _DEPENDENCIES in document:
        raise document.error(_DEPENDENCIES, f"must stand in each of the {_MODULES}, not beside them; move it there")
    members = [(name, modules.member(name)) for name in modules.names()]
    for _, fields in members:
        if fields.text("style", default=FULL_MODEL) != FULL_MODEL:
            raise fields.error("style", f"must be {FULL_MODEL} among {_MODULES}; an operator has an archive of its own")
    return [_read_module(name, fields, form) for name, fields in members]


def _read_module(name: str, fields: Fields, form: Format) -> ModuleRecord:
    style = fields.text("style", default=FULL_MODEL)
    if style not in {FULL_MODEL, OPERATOR}:
        raise fields.error("style", f"must be {FULL_MODEL} or {OPERATOR}")
    executor = _executor(fields, style, form)  # first, as the memory of one that is not supported has any form
    memory = read_memory(fields, style, form)
    extension = read_extension(fields)
    if memory.inputs is not None:
        check_tensors(extension, memory.inputs, "inputs", fields)
    if memory.outputs is not None:
        check_tensors(extension, memory.outputs, "outputs", fields)
    check_arena(extension, memory.main, executor, fields)
    date = "export_datetime" if "export_datetime" in fields else "export_datetime_utc"
    module = Module(
        name=name,
        executor=executor,
        targets=_known_devices(_targets(fields), extension, fields),
        main=memory.main,
        operator_functions=memory.functions,
        codegen=(),
        inputs=memory.inputs or (),
        outputs=memory.outputs or (),
        storage=memory.storage,
        style=style,
        buffers=memory.buffers,
        contexts=extension.contexts or read_contexts(fields),
        external_dependencies=tuple(_dependency(entry) for entry in fields.objects(_DEPENDENCIES)),
        export_datetime=fields.text(date, default=""),
        model_id=extension.model_id,
        state_size=extension.state_size,
        workspace_bound=extension.workspace_bound,
        trace=extension.trace,
        network=extension.network,
        hook=extension.hook,
        runtime=extension.runtime,
        source_sha256=extension.source_sha256,
    )
    return ModuleRecord(module, extension)


def _executor(fields: Fields, style: str, form: Format) -> str:
    keys = [key for key in ("executors", "runtimes") if key in fields] or [form.executors]
    found = [fields.texts(key) if key in fields else () for key in keys]
    if len(set(found)) > 1:
        raise fields.error("runtimes", "contradicts executors; remove one of the two keys")
    if style == OPERATOR and not found[0]:
        return ""
    if keys[0] not in fields:
        raise fields.error(form.executors, "is missing")
    if "vm" in found[0]:
        raise fields.error(
            keys[0], "the VM executor is not supported, its bytecode needs TVM's C++ runtime; export the model for the "
            "AOT or the graph executor",
        )  # fmt: skip
    if style == OPERATOR:
        raise fields.error(keys[0], "must be empty where style is operator")
    if len(found[0]) != 1 or found[0][0] not in _EXECUTORS:
        raise fields.error(keys[0], f"must be one of {' and '.join(_EXECUTORS)}")
    return found[0][0]


def _targets(fields: Fields) -> tuple[Target, ...]:
    """Return the targets, those by device in the order of the device types."""
    if fields.holds("target", str):  # the first RFC's
        return (Target(fields.text("target")),)
    if not fields.holds("target", dict):
        return tuple(Target(text) for text in fields.texts("target"))
    targets = fields.member("target")
    return tuple(
        Target(targets.text(key), device)
        for device, key in sorted((_device(targets, key), key) for key in targets.names())
    )


def _device(targets: Fields, key: str) -> int:
    if not (key.isascii() and key.isdecimal() and len(key) < 6 and key == str(int(key))):
        raise targets.error(key, "is no device type, a number as 1 for the CPU")
    return int(key)


def _known_devices(targets: Sequence[Target], extension: Extension, fields: Fields) -> tuple[Target, ...]:
    """Return ``targets`` with the devices that our key says."""
    if not extension.target_devices:
        return tuple(targets)
    if len(extension.target_devices) != len(targets):
        raise contradiction(fields, "target_devices", "target")
    pairs = zip(targets, extension.target_devices, strict=True)
    return tuple(replace(target, device=device) for target, device in pairs)


def _dependency(entry: Fields) -> ExternalDependency:
    return ExternalDependency(
        entry.text("short_name"), entry.text("url"), entry.text("url_type"), entry.optional_text("version_spec") or ""
    )
