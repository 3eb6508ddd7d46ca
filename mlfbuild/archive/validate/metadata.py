"""Rules of ``metadata.json``: keys and types of each version, dates, names of dtypes and devices.

The reader takes what it finds, whatever the version says; these rules tell where the document is not what TVM's
exporter (model_library_format.py) writes under its version number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone

from mlfbuild.archive.validate.codes import finding
from mlfbuild.archive.validate.context import Context, ModuleView
from mlfbuild.archive.validate.schema import ListOf, MapOf, Object, Shape, document_shape
from mlfbuild.archive.validate.types import Finding
from mlfbuild.library import DEVICE_NAMES, parse_dtype

_DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ")
_DATE_FORMAT = "%Y-%m-%d %H:%M:%SZ"
_OTHER_VERSIONS = {
    "runtimes": "1 to 4", "executors": "5 to 7", "style": "4 to 7", "modules": "7", "sids": "2 to 7",
    "external_dependencies": "5 to 7", "functions": "2 to 7",
}  # fmt: skip
_FIRST_YEAR = 2021  # of the format; an earlier date is a constant
_CLOCK_SKEW = timedelta(minutes=5)


def keys_of_the_version(context: Context) -> Iterator[Finding]:
    """Compare keys and types of every object with those of the document's version and style."""
    if context.metadata != "metadata.json":
        return  # a sketch of an RFC, which no exporter ever wrote
    pending: list[tuple[object, Shape, str]] = [
        (context.document, document_shape(context.document, context.library.version), "")
    ]
    while pending:
        value, shape, path = pending.pop()
        if not shape.takes(value):
            yield finding("MLF203", f"metadata.json: {path}", f"is {_kind(value)} where this version has {shape}")
        elif isinstance(shape, Object) and isinstance(value, dict):
            yield from _keys(value, shape, path)
            pending += [(value[key], known, _join(path, key)) for key, known in shape.all.items() if key in value]
        elif isinstance(shape, ListOf) and isinstance(value, list):
            pending += [(item, shape.item, f"{path}[{index}]") for index, item in enumerate(value)]
        elif isinstance(shape, MapOf) and isinstance(value, dict):
            pending += [(item, shape.item, _join(path, key)) for key, item in value.items()]


def _keys(value: Mapping[str, object], shape: Object, path: str) -> Iterator[Finding]:
    for key in value:
        if key in shape.all:
            continue
        place = f"metadata.json: {_join(path, key)}"
        if key in _OTHER_VERSIONS:
            yield finding("MLF204", place, f"only versions {_OTHER_VERSIONS[key]} have this key here")
        else:
            yield finding("MLF201", place, "is no key of the format")
    for key in shape.required:
        if key not in value:
            yield finding("MLF202", f"metadata.json: {_join(path, key)}", "is missing")


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def old_version(context: Context) -> Iterator[Finding]:
    """Find a version that later tools do not read."""
    version = context.library.version
    if version < 7:
        yield finding("MLF209", "metadata.json: version", f"is {version}; TVM wrote version 7 from 0.9 to 0.18")


def dates(context: Context) -> Iterator[Finding]:
    """Judge the form of ``export_datetime``, and say what TVM means by it."""
    for view in context.modules:
        text = view.module.export_datetime
        if not text:
            continue
        place = view.place("export_datetime")
        date = _parsed(text)
        if date is None:
            yield finding("MLF205", place, f"{text!r} is no date of that form")
        elif date > context.now + _CLOCK_SKEW:
            yield finding("MLF207", place, f"{text} is later than now, {context.now.strftime(_DATE_FORMAT)}")
        elif not view.is_native and date.year >= _FIRST_YEAR:
            yield finding("MLF206", place, f"{text} is the local time of the machine that exported, of unknown zone")


def _parsed(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, _DATE_FORMAT).replace(tzinfo=timezone.utc) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def model_names(context: Context) -> Iterator[Finding]:
    """Compare ``model_name`` inside a module with the module's key."""
    for view in context.modules:
        name = view.fields.get("model_name", view.module.name)
        if name != view.module.name:
            yield finding("MLF208", view.place("model_name"), f"is {name!r}, the module is {view.module.name!r}")


def dtypes(context: Context) -> Iterator[Finding]:
    """Judge names of dtypes of inputs, outputs and operator buffers."""
    for view in context.modules:
        named = [(tensor.name, tensor.dtype) for tensor in (*view.module.inputs, *view.module.outputs)]
        named += [(buffer.function, buffer.dtype) for buffer in view.module.buffers]
        for name, dtype in named:
            if parse_dtype(dtype) is None:
                yield finding("MLF210", view.place("memory"), f"{name} has dtype {dtype!r}")


def devices(context: Context) -> Iterator[Finding]:
    """Judge device types of targets, memory entries and operator functions."""
    for view in context.modules:
        for place, device in _devices(view):
            if device not in DEVICE_NAMES:
                yield finding("MLF211", place, f"device type {device} is unknown")


def _devices(view: ModuleView) -> Iterator[tuple[str, int]]:
    yield from ((view.place("target"), target.device) for target in view.module.targets if target.device is not None)
    for index, entry in enumerate(view.module.main):
        yield view.place(f"memory.functions.main[{index}].device"), entry.device
    for index, function in enumerate(view.module.operator_functions):
        for device, _ in function.workspace:
            yield view.place(f"memory.functions.operator_functions[{index}].workspace"), device


RULES = (keys_of_the_version, old_version, dates, model_names, dtypes, devices)
