"""Keep fields of ``metadata.json`` that the format does not define: collect them, and write them back.

A field keeps its place if the written version has the object that it is in. All others are in the member ``unknown`` of
the key ``mlfbuild``, by place::

    "mlfbuild": {"version": 1, "unknown": {"/memory/functions/main/0/bank": 2}}

Places are JSON pointers in the form of version 7, so a field that could not stay returns to its place in a later
version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from mlfbuild.core import InputFileError, shown
from mlfbuild.library.fields import Fields
from mlfbuild.library.value import UnknownField

MOST = 4 * 1024 * 1024
"""Characters of all unknown fields of a document, places included."""
_DEEPEST = 32
"""Levels of a value; each level indents every line that is in it."""
_ENCODER = json.JSONEncoder(sort_keys=True, allow_nan=False)
_ADVICE = "remove the field"

_INDEX = "(?:0|[1-9][0-9]{0,8})"
_OBJECTS = re.compile(
    rf"""| /memory | /memory/functions
    | /memory/functions/main/{_INDEX} | /memory/functions/main/0/(?:inputs|outputs)/[^/]*
    | /memory/functions/operator_functions/{_INDEX} (?: /workspace/{_INDEX} )? | /memory/sids/{_INDEX} | /mlfbuild""",
    re.VERBOSE,
)
"""Places of the objects of a full model that may have unknown fields."""
_OBJECTS_OF_OPERATOR = re.compile(rf"| /memory/[^/]*/{_INDEX} | /mlfbuild", re.VERBOSE)
_KNOWN = frozenset({
    "version", "modules", "model_name", "export_datetime", "export_datetime_utc", "target", "executors", "runtimes",
    "style", "external_dependencies", "contexts", "mlfbuild", "memory", "functions", "main", "operator_functions",
    "sids", "device", "workspace_size_bytes", "constants_size_bytes", "io_size_bytes", "inputs", "outputs", "size",
    "dtype", "shape", "function_name", "workspace", "storage_id", "size_bytes", "input_binding",
})  # fmt: skip
"""Keys that a reader could take for the format's own, in whatever object they are."""


def collected(unread: Iterable[tuple[tuple[str, ...], object]], fields: Fields) -> tuple[UnknownField, ...]:
    """Return the fields with these places and values, sorted by place.

    Raises ``InputFileError`` at a place in ``fields`` if a value is nested too deeply or holds a number that JSON
    cannot represent, or if they are too many.
    """
    found = []
    total = 0
    for path, value in unread:
        field = UnknownField(_pointer(path), json_text(value, fields, path[-1]))
        # Limited while they are collected, so that a hostile document cannot make the library several times its size.
        total += len(field.place) + len(field.value)
        if total > MOST:
            raise too_many(fields, path[-1])
        found.append(field)
    return tuple(sorted(found, key=lambda field: field.place))


def merged(
    found: Sequence[UnknownField], kept: Sequence[UnknownField], fields: Fields, key: str
) -> tuple[UnknownField, ...]:
    """Return both, sorted by place; raises ``InputFileError`` at ``key`` if they have different values for a place."""
    by_place = {field.place: field for field in found}
    for field in kept:
        # The same field may be in both places, with one value.
        if by_place.setdefault(field.place, field) != field:
            reason = f"has another value for the unknown field {shown(field.place)} than the metadata"
            raise fields.error(key, reason, code="metadata-contradiction", hint="remove one of the two")
    return tuple(by_place[place] for place in sorted(by_place))


def too_many(fields: Fields, key: str) -> InputFileError:
    """Return the error for more unknown fields than ``MOST``."""
    reason = f"the fields that the format does not define have more than {MOST:,} characters with their places"
    return fields.error(key, reason, code="metadata-unknown-too-large", hint=_ADVICE)


def json_text(value: object, fields: Fields, key: str) -> str:
    """Return any JSON value as text with sorted keys; raises ``InputFileError`` if it could not be read again."""
    if _depth(value) > _DEEPEST:
        reason = f"is nested more than {_DEEPEST} levels deep"
        raise fields.error(key, reason, code="metadata-unknown-too-large", hint=_ADVICE)
    try:
        return _ENCODER.encode(value)
    except ValueError:
        raise fields.error(key, "holds a number that is too large", hint=_ADVICE) from None


def _depth(value: object) -> int:
    """Return the number of nested lists and objects, without recursion because the value is not trusted."""
    depth, level = 0, [value]
    # One level after the other: recursion would fail at a depth that the document chooses.
    while level := [item for item in level if isinstance(item, (dict, list))]:
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
        depth += 1
    return depth


def _pointer(path: Iterable[str]) -> str:
    # RFC 6901: `~` first when escaping and last when reading, because the escape of `/` contains it.
    return "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in path)


def _steps(place: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in place.split("/")[1:]]


def kept_fields(fields: Fields, key: str) -> tuple[UnknownField, ...]:
    """Return the fields in the member ``key``, an object by place, empty if it is absent; raises ``InputFileError``."""
    if key not in fields:
        return ()
    by_place = fields.member(key)
    found = [UnknownField(place, json_text(by_place.raw(place), by_place, place)) for place in by_place.names()]
    by_place.skip(*by_place.names())
    return tuple(found)


# Writing -------------------------------------------------------------------------------------------------------------


def placed(
    module: dict[str, Any], unknown: Sequence[UnknownField], *, operator: bool, extension: frozenset[str]
) -> dict[str, Any]:
    """Add ``unknown`` to the objects that they belong to in ``module``; return the values of the others by place.

    ``module`` is the object of a module with the keys of any version, and ``extension`` has the members of its key
    ``mlfbuild``. Fields with names that a reader could take for the format's own are not added.
    """
    form = _OBJECTS_OF_OPERATOR if operator else _OBJECTS
    objects = [_object(module, field.place, form) for field in unknown]  # before any is changed
    others: dict[str, Any] = {}
    for field, found in zip(unknown, objects, strict=True):
        value = json.loads(field.value)
        key = _steps(field.place)[-1] if found is not None else ""
        # The members of the key `mlfbuild` are known exactly, so a field there may have a name of the format.
        known = extension if found is not None and found is module.get("mlfbuild") else _KNOWN
        if found is None or key in found or key in known:
            others[field.place] = value
        # Such a field keeps its value under `unknown`, where no reader of the format takes it for its own.
        else:
            found[key] = value
    return others


def _object(module: dict[str, Any], place: str, form: re.Pattern[str]) -> dict[str, Any] | None:
    """Return the object that the field at ``place`` belongs to, ``None`` if ``module`` does not have it."""
    parent, slash, _ = place.rpartition("/")
    if not slash or not form.fullmatch(parent):
        return None
    steps = _steps(parent)
    if steps[:2] == ["memory", "sids"] and isinstance(module["memory"], list):
        del steps[1]  # version 1
    at: Any = module
    for step in steps:
        if isinstance(at, list):
            at = at[int(step)] if len(step) < 10 and step.isdecimal() and int(step) < len(at) else None
        else:
            at = at.get(step) if isinstance(at, dict) else None
    return at if isinstance(at, dict) else None


def placed_beside(document: dict[str, Any], unknown: Sequence[UnknownField]) -> dict[str, Any]:
    """Add ``unknown`` to a document with the key ``modules``; return the values of the others by place."""
    others: dict[str, Any] = {}
    for field in unknown:
        steps, value = _steps(field.place), json.loads(field.value)
        # Only the top level of the document is written here; anything deeper is placed by `placed`.
        if len(steps) != 1 or steps[0] in {*document, "external_dependencies"}:
            others[field.place] = value
        else:
            document[steps[0]] = value
    return others


def by_key(unknown: Sequence[UnknownField]) -> dict[str, Any]:
    """Return the values of ``unknown`` by the last key of their places."""
    return {_steps(field.place)[-1]: json.loads(field.value) for field in unknown}
