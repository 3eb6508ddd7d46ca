"""Whether a value from outside fits a schema, with the place and the reason where it does not.

The part of JSON Schema (draft 2020-12) that the schema of reports is written in; another keyword is a defect here, and
no word of it is skipped in silence. Integers are those of 64 bits: larger ones are no sizes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from mlfbuild.messages import shown

Schema = Mapping[str, Any]

_LARGEST = 2**63 - 1
_ABOUT = frozenset({"$schema", "$defs", "title", "description"})
"""Keywords that say nothing about values."""
_TYPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "object": (lambda value: isinstance(value, dict), "an object"),
    "array": (lambda value: isinstance(value, list), "a list"),
    "string": (lambda value: isinstance(value, str), "a string"),
    "boolean": (lambda value: isinstance(value, bool), "true or false"),
    "integer": (lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number"),
    "number": (lambda value: isinstance(value, (int, float)) and not isinstance(value, bool), "a number"),
    "null": (lambda value: value is None, "null"),
}


def mistake_in(value: object, schema: Schema) -> str:
    """Return the first thing that is wrong with ``value``, as ``images[0].flash: must be ...``; empty where nothing is.

    Raises ``ValueError`` where the schema has a keyword that is not known here.
    """
    return next((f"{path}: {reason}" if path else reason for path, reason in _Check(schema).of(value, schema, "")), "")


class _Check:
    """One schema; each check yields places and reasons."""

    def __init__(self, top: Schema) -> None:
        self._definitions: Mapping[str, Schema] = top.get("$defs", {})
        self._checks: Mapping[str, Callable[[Any, Any, Schema, str], Iterator[tuple[str, str]]]] = {
            "type": self._type,
            "const": self._const,
            "enum": self._enum,
            "minimum": self._minimum,
            "pattern": self._pattern,
            "minItems": self._min_items,
            "items": self._items,
            "required": self._required,
            "properties": self._properties,
            "additionalProperties": self._additional,
            "anyOf": self._any_of,
            "$ref": self._ref,
        }

    def of(self, value: object, schema: Schema, path: str) -> Iterator[tuple[str, str]]:
        """Yield what is wrong; whatever follows a wrong type is not looked at."""
        unknown = schema.keys() - self._checks.keys() - _ABOUT
        if unknown:
            raise ValueError(f"keywords of JSON Schema that are not known here: {sorted(unknown)}")
        if isinstance(value, str) and not value.isascii() and re.search("[\ud800-\udfff]", value):
            yield path, "is no text: it has half a character of UTF-16"
            return
        for keyword, check in self._checks.items():
            found = list(check(value, schema[keyword], schema, path)) if keyword in schema else []
            yield from found
            if found:
                return

    def _type(self, value: Any, types: str | Sequence[str], _schema: Schema, path: str) -> Iterator[tuple[str, str]]:
        names = [types] if isinstance(types, str) else types
        if not any(_TYPES[name][0](value) for name in names):
            yield path, f"must be {' or '.join(_TYPES[name][1] for name in names)}"
        elif isinstance(value, int) and abs(value) > _LARGEST:
            yield path, "is too large for a number of 64 bits"

    def _const(self, value: Any, only: Any, _schema: Schema, path: str) -> Iterator[tuple[str, str]]:
        if value != only or type(value) is not type(only):
            yield path, f"must be {shown(only)}"

    def _enum(self, value: Any, choices: Sequence[Any], _schema: Schema, path: str) -> Iterator[tuple[str, str]]:
        if value not in choices:
            yield path, f"must be one of {', '.join(map(str, choices))}"

    def _minimum(self, value: Any, least: int, _schema: Schema, path: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, (int, float)) and value < least:
            yield path, f"must be at least {least}"

    def _pattern(self, value: Any, pattern: str, _schema: Schema, path: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, str) and not re.search(pattern.removesuffix("$") + r"\Z" * pattern.endswith("$"), value):
            yield path, f"must look like {pattern}"

    def _min_items(self, value: Any, least: int, _schema: Schema, path: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, list) and len(value) < least:
            yield path, "must not be empty" if least == 1 else f"must have at least {least} items"

    def _items(self, value: Any, schema: Schema, _whole: Schema, path: str) -> Iterator[tuple[str, str]]:
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from self.of(item, schema, f"{path}[{index}]")

    def _required(self, value: Any, keys: Sequence[str], _schema: Schema, path: str) -> Iterator[tuple[str, str]]:
        if isinstance(value, dict):
            yield from ((_joined(path, key), "is missing") for key in keys if key not in value)

    def _properties(
        self, value: Any, schemas: Mapping[str, Schema], _whole: Schema, path: str
    ) -> Iterator[tuple[str, str]]:
        for key in value if isinstance(value, dict) else ():
            if key in schemas:
                yield from self.of(value[key], schemas[key], _joined(path, key))

    def _additional(self, value: Any, rest: bool | Schema, schema: Schema, path: str) -> Iterator[tuple[str, str]]:
        for key in value if isinstance(value, dict) else ():
            if key in schema.get("properties", {}) or rest is True:
                continue
            if rest is False:
                yield _joined(path, key), "is no part of it"
            else:
                yield from self.of(value[key], rest, _joined(path, key))

    def _any_of(self, value: Any, choices: Sequence[Schema], _schema: Schema, path: str) -> Iterator[tuple[str, str]]:
        mistakes = [list(self.of(value, choice, path)) for choice in choices]
        if all(mistakes):
            yield from max(mistakes, key=lambda found: len(found[0][0]))

    def _ref(self, value: Any, name: str, _schema: Schema, path: str) -> Iterator[tuple[str, str]]:
        yield from self.of(value, self._definitions[name.removeprefix("#/$defs/")], path)


def _joined(path: str, key: str) -> str:
    return f"{path}.{shown(key, 60)}" if path else shown(key, 60)
