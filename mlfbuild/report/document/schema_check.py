"""Whether a value from outside fits a JSON Schema, with the place and the reason where it does not.

Stricter than JSON Schema in what sizes and texts are: integers have 64 bits and are written without a fraction, texts
have no halves of characters of UTF-16, which nothing could print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from mlfbuild.core import counted, shown

if TYPE_CHECKING:
    from jsonschema import ValidationError

_LARGEST = 2**63 - 1
_TYPES = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
}


def mistake_in(value: object, schema: Mapping[str, Any]) -> str:
    """Return what is most plainly wrong with ``value``, as ``images[0].flash: must be ...``; empty where nothing is."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match
    from jsonschema.validators import extend

    types = Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _is_integer, "string": _is_text})
    strict = extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]
    error = best_match(strict(schema).iter_errors(value))
    return "" if error is None else _told(error)


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _is_text(_checker: object, value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _told(error: ValidationError) -> str:
    """Return place and reason; jsonschema's own messages may quote a whole report."""
    path, rule = _path(error.absolute_path), str(error.validator)
    wanted: Any = error.validator_value
    found: Any = error.instance
    schema: Any = error.schema
    if rule == "required":
        return f"{_joined(path, next(key for key in wanted if key not in found))}: is missing"
    if rule == "additionalProperties":
        known = schema.get("properties", {})
        return f"{_joined(path, next(key for key in found if key not in known))}: is no part of it"
    reason = _REASONS[rule](wanted, found) if rule in _REASONS else f"does not keep the rule {rule} of the schema"
    return f"{path}: {reason}" if path else reason


def _wrong_type(wanted: Any, found: Any) -> str:
    if isinstance(found, str) and not _is_text(None, found):
        return "is no text: it has half a character of UTF-16"
    if isinstance(found, int) and abs(found) > _LARGEST:
        return "is too large for a number of 64 bits"
    return f"must be {' or '.join(_TYPES[name] for name in ([wanted] if isinstance(wanted, str) else wanted))}"


_REASONS: Mapping[str, Callable[[Any, Any], str]] = {
    "type": _wrong_type,
    "const": lambda wanted, _: f"must be {shown(wanted)}",
    "enum": lambda wanted, _: f"must be one of {', '.join(map(str, wanted))}",
    "minimum": lambda wanted, _: f"must be at least {wanted}",
    "pattern": lambda wanted, _: f"must look like {wanted}",
    "maxLength": lambda wanted, _: f"has more than {wanted} characters",
    "minItems": lambda wanted, _: f"must have at least {counted(wanted, 'item')}",
    "anyOf": lambda _wanted, _: "has none of the forms that it may have",
}
"""What is wrong, by the keyword of the schema, from that keyword's value and the value that was found."""


def _path(parts: Iterable[str | int]) -> str:
    path = ""
    for part in parts:
        path = f"{path}[{part}]" if isinstance(part, int) else _joined(path, part)
    return path


def _joined(path: str, key: str) -> str:
    return f"{path}.{shown(key, 60)}" if path else shown(key, 60)
