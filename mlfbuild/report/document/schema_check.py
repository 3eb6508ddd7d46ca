"""Check an untrusted value against a JSON Schema, and return the place and reason of a mistake.

Stricter than JSON Schema for numbers and texts: integers have 64 bits and no fraction, and texts have no lone
surrogates, which cannot be printed.
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


def mistake_in(value: object, schema: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return place and reason of the most relevant mistake, such as ``("images[0].flash", "must be at least 0")``.

    ``None`` if ``value`` fits the schema. The place is empty if it is the whole value.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match
    from jsonschema.validators import extend

    types = Draft202012Validator.TYPE_CHECKER.redefine_many({"integer": _is_integer, "string": _is_text})
    strict = extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]
    error = best_match(strict(schema).iter_errors(value))
    return None if error is None else _described(error)


def _is_integer(_checker: object, value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _is_text(_checker: object, value: object) -> bool:
    return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)


def _described(error: ValidationError) -> tuple[str, str]:
    """Return place and reason; jsonschema's own messages may quote a whole report."""
    path, rule = _path(error.absolute_path), str(error.validator)
    wanted: Any = error.validator_value
    found: Any = error.instance
    schema: Any = error.schema
    if rule == "required":
        return _joined(path, next(key for key in wanted if key not in found)), "is missing"
    if rule == "additionalProperties":
        known = schema.get("properties", {})
        return _joined(path, next(key for key in found if key not in known)), "is an unknown member"
    return path, _REASONS[rule](wanted, found) if rule in _REASONS else f"violates the rule {rule} of the schema"


def _wrong_type(wanted: Any, found: Any) -> str:
    if isinstance(found, str) and not _is_text(None, found):
        return "has a lone surrogate, which is not a character"
    if isinstance(found, int) and abs(found) > _LARGEST:
        return "does not fit 64 bits"
    return f"must be {' or '.join(_TYPES[name] for name in ([wanted] if isinstance(wanted, str) else wanted))}"


_REASONS: Mapping[str, Callable[[Any, Any], str]] = {
    "type": _wrong_type,
    "const": lambda wanted, _: f"must be {shown(wanted)}",
    "enum": lambda wanted, _: f"must be one of {', '.join(map(str, wanted))}",
    "minimum": lambda wanted, _: f"must be at least {wanted}",
    "pattern": lambda wanted, _: f"must match {wanted}",
    "maxLength": lambda wanted, _: f"has more than {wanted} characters",
    "minItems": lambda wanted, _: f"must have at least {counted(wanted, 'item')}",
    "anyOf": lambda _wanted, _: "has none of the allowed forms",
}
"""The reason by keyword of the schema, from the keyword's value and the value that was found."""


def _path(parts: Iterable[str | int]) -> str:
    path = ""
    for part in parts:
        path = f"{path}[{part}]" if isinstance(part, int) else _joined(path, part)
    return path


def _joined(path: str, key: str) -> str:
    return f"{path}.{shown(key, 60)}" if path else shown(key, 60)
