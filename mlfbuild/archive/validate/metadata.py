"""Rules for ``metadata.json``: keys and types of each version, dates, dtypes and device types.

The reader accepts keys of other versions. These rules find the differences between the document and the metadata that
TVM's exporter (model_library_format.py) writes for the same version.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta, timezone

from mlfbuild.archive.validate.codes import Finding, finding
from mlfbuild.archive.validate.schema import Shape, document_shape
from mlfbuild.archive.validate.views import ArchiveView, ModuleView, of_each_module
from mlfbuild.library import DEVICE_NAMES, Module, parse_dtype

_DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ")
DATE_FORMAT = "%Y-%m-%d %H:%M:%SZ"
_OTHER_VERSIONS = {
    "runtimes": "1 to 4", "executors": "5 to 7", "style": "4 to 7", "modules": "7", "sids": "2 to 7",
    "external_dependencies": "5 to 7", "functions": "2 to 7",
}  # fmt: skip
_FIRST_YEAR = 2021  # the year of version 1; earlier dates are constants
# The exporter may run on another machine than this check, and their clocks differ.
_CLOCK_SKEW = timedelta(minutes=5)


def keys_of_the_version(archive: ArchiveView) -> Iterator[Finding]:
    """Compare keys and types of all objects with those of the document's version and style.

    ``MLF201`` for unknown keys, ``MLF202`` for missing ones, ``MLF203`` for values of another type, ``MLF204`` for
    keys of another version.
    """
    if archive.metadata != "metadata.json":
        return  # the form of the first RFC, which no exporter ever wrote
    pending: list[tuple[object, Shape, str]] = [
        (archive.document, document_shape(archive.document, archive.library.version), "")
    ]
    while pending:
        value, shape, path = pending.pop()
        # A value of another type has no members that could be compared.
        if not shape.takes(value):
            yield finding("MLF203", f"metadata.json: {path}", f"is {_kind(value)}, but this version has {shape.name}")
        elif isinstance(value, list) and shape.item is not None:
            pending += [(item, shape.item, f"{path}[{index}]") for index, item in enumerate(value)]
        elif isinstance(value, dict) and shape.item is not None:
            pending += [(item, shape.item, _join(path, key)) for key, item in value.items()]
        elif isinstance(value, dict) and shape.all:
            yield from _keys(value, shape, path)
            pending += [(value[key], known, _join(path, key)) for key, known in shape.all.items() if key in value]


def _keys(value: Mapping[str, object], shape: Shape, path: str) -> Iterator[Finding]:
    for key in value:
        if key in shape.all:
            continue
        place = f"metadata.json: {_join(path, key)}"
        # A key of another version is more likely than a spelling mistake, so it is looked up first.
        if key in _OTHER_VERSIONS:
            yield finding("MLF204", place, f"only versions {_OTHER_VERSIONS[key]} have this key here")
        else:
            near = difflib.get_close_matches(key, shape.all, n=1)
            suggestion = f" (did you mean {near[0]}?)" if near else ""
            yield finding("MLF201", place, f"is not a key of the format{suggestion}")
    for key in shape.required:
        if key not in value:
            yield finding("MLF202", f"metadata.json: {_join(path, key)}", "is missing")


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def old_version(archive: ArchiveView) -> Iterator[Finding]:
    """Find a version that later tools do not read."""
    version = archive.library.version
    if version < 7:
        yield finding("MLF209", f"{archive.metadata}: version", f"is {version}; TVM wrote version 7 from 0.9 to 0.18")


def dates(view: ModuleView) -> Iterator[Finding]:
    """Check ``export_datetime``, and note that TVM writes local time.

    ``MLF205`` for another form, ``MLF207`` for the future, ``MLF206`` for TVM's local time that is marked as UTC.
    """
    text = view.module.export_datetime
    if not text:
        return
    place = view.place("export_datetime")
    date = parsed_date(text)
    if date is None:
        yield finding("MLF205", place, f"{text!r} does not have this form")
    elif date > view.archive.now + _CLOCK_SKEW:
        yield finding("MLF207", place, f"{text} is later than now, {view.archive.now.strftime(DATE_FORMAT)}")
    elif is_local_time(view.module):
        yield finding("MLF206", place, f"{text} is local time of an unknown time zone")


def is_local_time(module: Module) -> bool:
    """Return whether ``module`` has a valid date that TVM wrote: local time, although it is marked as UTC."""
    date = parsed_date(module.export_datetime)
    # mlfbuild writes UTC, and so do repaired archives; only TVM's own dates are local time.
    return date is not None and date.year >= _FIRST_YEAR and not (module.model_id or module.export_utc)


def parsed_date(text: str) -> datetime | None:
    """Return a date of the format, read as UTC; ``None`` if it has another form.

    The form is ``2024-05-31 09:30:00Z``. TVM writes local time and also ends it with ``Z``: ``is_local_time`` tells
    which dates those are.
    """
    try:
        # strptime also accepts one digit for a month or an hour, which the format does not.
        return datetime.strptime(text, DATE_FORMAT).replace(tzinfo=timezone.utc) if _DATE.fullmatch(text) else None
    except ValueError:
        return None


def model_names(view: ModuleView) -> Iterator[Finding]:
    """Compare ``model_name`` inside a module with the module's key."""
    name = view.fields.get("model_name", view.module.name)
    if name != view.module.name:
        yield finding("MLF208", view.place("model_name"), f"is {name!r}, but the module is {view.module.name!r}")


def dtypes(view: ModuleView) -> Iterator[Finding]:
    """Check the dtypes of inputs, outputs and operator buffers."""
    named = [(tensor.name, tensor.dtype) for tensor in (*view.module.inputs, *view.module.outputs)]
    named += [(buffer.function, buffer.dtype) for buffer in view.module.buffers]
    for name, dtype in named:
        if parse_dtype(dtype) is None:
            yield finding("MLF210", view.place("memory"), f"{name} has dtype {dtype!r}")


def devices(view: ModuleView) -> Iterator[Finding]:
    """Check the device types of targets, memory entries and operator functions."""
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


RULES = (keys_of_the_version, old_version, *of_each_module(dates, model_names, dtypes, devices))
