"""Read ``metadata.json`` of all versions into the fields of ``Module``.

The reader looks for the keys that exist instead of relying on the version: ``modules`` or the keys of one module,
``executors`` or ``runtimes``, targets as an object, a list or one string, memory as a list, by function or by storage
id. Forms that only documents of TVM define are also read, such as the empty ``style`` of the RFC of several modules.
Fields that the format does not define are kept (``unknown``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mlfbuild.library.fields import Fields, parse_json
from mlfbuild.library.metadata.extension import (
    EXTENSION,
    KEPT_FACTS,
    Extension,
    check_arena,
    check_tensors,
    contradiction,
    read_extension,
)
from mlfbuild.library.metadata.memory import read_memory
from mlfbuild.library.metadata.module_keys import DEPENDENCIES, read_contexts, read_dependencies
from mlfbuild.library.metadata.unknown import MOST, collected, merged, too_many
from mlfbuild.library.metadata.versions import CURRENT, FORMATS, Format
from mlfbuild.library.value import FULL_MODEL, OPERATOR, Module, ModuleTarget, UnknownField

_EXECUTORS = ("aot", "graph")
_MODULES = "modules"
_EXPORT = "export the archive again"
_UTC_DATE = "export_datetime_utc"
_SKETCHED = ""
"""The style in the RFC of several modules, which does not list the executors either."""


@dataclass(frozen=True)
class ModuleRecord:
    """The metadata of one module."""

    module: Module
    """Without the content of files. Inputs and outputs are in alphabetical order.

    The executor of a full model may be empty; its graph, if the archive has one, shows which it is.
    """
    extension: Extension
    """The content of the key ``mlfbuild``."""


def read_document(data: bytes, where: str) -> Fields:
    """Return the object in ``metadata.json``; raises ``InputFileError`` if it is not a JSON object."""
    return Fields(parse_json(data, where, _EXPORT), where, advice=_EXPORT)


def read_format(document: Fields, named: int | None = None) -> Format:
    """Return the version of ``document``; ``named`` is the version in the name of the file, as in the first RFC.

    Raises ``InputFileError`` if the version does not exist, or the two versions differ.
    """
    if named is None or "version" in document:
        version = _version(document)
        if named not in {None, version}:
            reason = f"is {version}, but the name of the file has {named}"
            raise document.error("version", reason, code="metadata-contradiction", hint="correct one of them")
    else:
        version = named
    if version not in FORMATS:
        reason = f"version {version} of Model Library Format does not exist, only 1 to {CURRENT}"
        hint = "try a newer mlfbuild" if version > CURRENT else "correct the number"
        raise document.error("version", reason, code="format-version-unknown", hint=hint)
    return FORMATS[version]


def _version(document: Fields) -> int:
    if "version" in document and not document.holds("version", int):
        reason = f"must be a whole number from 1 to {CURRENT}, without quotes or decimals"
        raise document.error("version", reason, code="format-version-unknown", hint="correct the number")
    return document.integer("version", minimum=-(2**63))


def read_modules(document: Fields, form: Format) -> list[ModuleRecord]:
    """Return the modules of a document, sorted by name.

    Raises ``InputFileError`` if a key is missing or has the wrong type, or two keys contradict each other.
    """
    document.skip("version")
    if _MODULES not in document:
        return [_read_module(document.text("model_name"), document, form)]
    modules = document.member(_MODULES)
    if not modules.names():
        raise document.error(_MODULES, "is empty")
    if DEPENDENCIES in document:
        reason = f"must be in each of the {_MODULES}, not beside them"
        raise document.error(DEPENDENCIES, reason, hint="move it into the modules")
    members = [(name, modules.member(name)) for name in modules.names()]
    for name, fields in members:
        fields.put_at()
        if fields.raw("model_name") == name:
            fields.skip("model_name")
        if fields.text("style", default=FULL_MODEL) not in {FULL_MODEL, _SKETCHED}:
            reason = f"must be {FULL_MODEL} in {_MODULES}"
            raise fields.error("style", reason, hint="use one archive for each operator")
    records = []
    size = 0
    for name, fields in members:
        records.append(_read_module(name, fields, form, sketched=True))
        # Over all modules, because a document may have thousands.
        size += sum(len(field.place) + len(field.value) for field in records[-1].module.unknown)
        if size > MOST:
            raise too_many(modules, name)
    return records


def read_unknown(document: Fields, records: Sequence[ModuleRecord]) -> tuple[UnknownField, ...]:
    """Return the unknown fields of the document that belong to no module; raises ``InputFileError``.

    ``records`` are those of ``read_modules``, which must have read the document before: what it has read is not
    unknown.
    """
    beside = [name for name in document.names() if _MODULES in document and name not in {"version", _MODULES}]
    found = collected((((name,), document.raw(name)) for name in beside), document)
    for record in records:
        found = merged(found, record.extension.archive, document, EXTENSION)
    return found


def _read_module(name: str, fields: Fields, form: Format, *, sketched: bool = False) -> ModuleRecord:
    style = fields.text("style", default=FULL_MODEL)
    if sketched and style == _SKETCHED:
        style = FULL_MODEL
        executor = _executor(fields, style, form) if {"executors", "runtimes"} & set(fields.names()) else ""
    elif style in {FULL_MODEL, OPERATOR}:
        executor = _executor(fields, style, form)  # first, because the memory of unsupported executors has other forms
    else:
        raise fields.error("style", f"must be {FULL_MODEL} or {OPERATOR}")
    memory = read_memory(fields, style, form)
    extension = read_extension(fields)
    if memory.inputs is not None:
        check_tensors(extension, memory.inputs, "inputs", fields)
    if memory.outputs is not None:
        check_tensors(extension, memory.outputs, "outputs", fields)
    check_arena(extension, memory.main, executor, fields)
    date = "export_datetime" if "export_datetime" in fields or _UTC_DATE not in fields else _UTC_DATE
    module = Module(
        name=name,
        executor=executor,
        targets=_known_devices(_targets(fields), extension, fields),
        main=memory.main or extension.main,
        operator_functions=memory.functions or extension.operator_functions,
        codegen=(),
        inputs=memory.inputs or (),
        outputs=memory.outputs or (),
        storage=memory.storage,
        style=style,
        buffers=memory.buffers,
        contexts=extension.contexts or read_contexts(fields),
        external_dependencies=read_dependencies(fields) or extension.external_dependencies,
        export_datetime=fields.text(date, default=""),
        export_utc=extension.export_utc or date == _UTC_DATE,  # the first RFC's key
        **{name: getattr(extension, name) for name in KEPT_FACTS},
    )
    unknown = merged(collected(fields.unread(), fields), extension.unknown, fields, EXTENSION)
    return ModuleRecord(replace(module, unknown=unknown), extension)


def _executor(fields: Fields, style: str, form: Format) -> str:
    keys = [key for key in ("executors", "runtimes") if key in fields] or [form.executors]
    found = [fields.texts(key) if key in fields else () for key in keys]
    if len(set(found)) > 1:
        hint = "remove one of the two keys"
        raise fields.error("runtimes", "contradicts executors", code="metadata-contradiction", hint=hint)
    if style == OPERATOR and not found[0]:
        return ""
    if keys[0] not in fields:
        raise fields.error(form.executors, "is missing", code="json-member-missing")
    if "vm" in found[0]:
        reason = "the VM executor is not supported because its bytecode needs TVM's C++ runtime"
        hint = "export the model for the AOT or the graph executor"
        raise fields.error(keys[0], reason, code="executor-unsupported", hint=hint)
    if style == OPERATOR:
        raise fields.error(keys[0], "must be empty if style is operator")
    if len(found[0]) != 1 or found[0][0] not in _EXECUTORS:
        raise fields.error(keys[0], f"must be one of {' and '.join(_EXECUTORS)}")
    return found[0][0]


def _targets(fields: Fields) -> tuple[ModuleTarget, ...]:
    """Return the targets, those by device in the order of the device types."""
    if fields.holds("target", str):  # the first RFC's
        return (ModuleTarget(fields.text("target")),)
    if not fields.holds("target", dict):
        return tuple(ModuleTarget(text) for text in fields.texts("target"))
    targets = fields.member("target")
    return tuple(
        ModuleTarget(targets.text(key), device)
        for device, key in sorted((_device(targets, key), key) for key in targets.names())
    )


def _device(targets: Fields, key: str) -> int:
    # Only the shortest spelling, so that "1" and "01" cannot be two targets of one device.
    if not (key.isascii() and key.isdecimal() and len(key) < 6 and key == str(int(key))):
        raise targets.error(key, "is not a device type, which is a number such as 1 for the CPU")
    return int(key)


def _known_devices(targets: Sequence[ModuleTarget], extension: Extension, fields: Fields) -> tuple[ModuleTarget, ...]:
    """Return ``targets`` with the device types in the extension, or in their order if they have device types."""
    if not extension.target_devices:
        return tuple(targets)
    by_device = {target.device: target for target in targets}
    if None not in by_device and by_device.keys() == set(extension.target_devices):
        return tuple(by_device[device] for device in dict.fromkeys(extension.target_devices))
    if len(extension.target_devices) != len(targets):
        raise contradiction(fields, "target_devices", "target")
    pairs = zip(targets, extension.target_devices, strict=True)
    return tuple(replace(target, device=device) for target, device in pairs)
