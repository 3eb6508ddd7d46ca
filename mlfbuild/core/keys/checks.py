"""Checks of single values, written as metadata of a key's type: ``cpu: Annotated[str, CPU]``.

A check is run by pydantic when it reads a project file, and contributes to the JSON Schema. The classes here speak
pydantic's protocol (``__get_pydantic_core_schema__``) and import it only when pydantic calls them, so that a module
that declares keys costs nothing to a command that reads no project file. ``read_keys`` runs the same checks without
pydantic: ``around`` of a check returns the reader of a value that also makes this check.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from mlfbuild.core import Mistake, in_quotes, unknown

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

Reader = Callable[[Any], Any]
"""Returns a value as written as a value of a key's type; raises ``Mistake``."""
TEXT, MAPPING = "[text]", "[mapping]"
"""Marks in the paths of pydantic's findings about a value that is either a text or a mapping."""


@dataclass(frozen=True, eq=False)
class Rule:
    """A check of a value that already has the annotated type: ``check`` returns the mistake, or ``None``."""

    check: Callable[[Any], Mistake | None]
    schema: Mapping[str, Any] | Callable[[], Mapping[str, Any]] = field(default_factory=dict)
    """The same rule as keywords of JSON Schema, or a function that returns them, if they need a table to be read."""

    def checked(self, value: Any) -> Any:
        """Return ``value``; raises ``Mistake``."""
        mistake = self.check(value)
        if mistake is not None:
            raise mistake
        return value

    def around(self, read: Reader) -> Reader:
        """Return the reader that also checks what ``read`` returns."""
        return lambda value: self.checked(read(value))

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self.checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler(schema), **(self.schema() if callable(self.schema) else self.schema)}


@dataclass(frozen=True, eq=False)
class Convert:
    """A conversion of a value as written to the annotated type; ``convert`` raises ``Mistake``.

    With ``before``, the result is checked as the annotated type demands; otherwise ``convert`` gets a value of that
    type. The JSON Schema of the key is ``schema``, or that of the annotated type if ``schema`` is empty.
    """

    convert: Callable[[Any], Any]
    schema: Mapping[str, Any] = field(default_factory=dict)
    before: bool = False

    def around(self, read: Reader) -> Reader:
        """Return the reader that also converts what ``read`` gets or returns."""
        first, second = (self.convert, read) if self.before else (read, self.convert)
        return lambda value: second(first(value))

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        if self.before:
            return core_schema.no_info_before_validator_function(self.convert, handler(source))
        return core_schema.no_info_after_validator_function(self.convert, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return dict(self.schema) or handler(schema)


class _Exact:
    """The annotated type itself and nothing that converts to it, such as 1 for ``true``."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return {**handler(source), "strict": True}


class _NotEmpty:
    """A list or a mapping with at least one entry."""

    def around(self, read: Reader) -> Reader:
        def checked(value: Any) -> Any:
            if not value:
                raise Mistake("empty-collection", reason="must not be empty")
            return read(value)

        return checked

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return {**handler(source), "min_length": 1}


class _InProject:
    """A path as written, joined to the folder of the project file, which is the context of the validation."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        text = handler.generate_schema(PathText)
        return core_schema.with_info_after_validator_function(lambda value, info: info.context / value, text)


@dataclass(frozen=True, eq=False)
class TextOr:
    """A text (or a list) or, if there is more to say, a mapping. Any other value is reported as not being a text.

    The value of a text is ``wrap`` of it, so that the key has one type whichever way it is written.
    """

    text: Any
    mapping: Any
    wrap: Callable[[Any], Any] = lambda value: value

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        text = core_schema.no_info_after_validator_function(self.wrap, handler.generate_schema(self.text))
        return core_schema.tagged_union_schema(
            {TEXT: text, MAPPING: handler.generate_schema(self.mapping)},
            discriminator=lambda value: MAPPING if isinstance(value, dict) else TEXT,
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        found = handler(schema)
        choices = found.get("oneOf", ())
        # Keywords of texts, lists and mappings have no effect on each other. One schema has simpler errors than a
        # choice, for which validators collect those of all entries, however many an alias makes.
        if len(choices) != 2 or any("type" not in choice for choice in choices):
            return found
        return {**choices[0], **choices[1], "type": [choice["type"] for choice in choices]}


def one_of(what: str, words: Collection[str], **schema: Any) -> Rule:
    """Return the rule for a text that is one of ``words``; ``what`` names the kind of thing in messages.

    The mistake has the nearest of the words, and its code is ``unknown-`` and ``what``. ``schema`` adds keywords to the
    JSON Schema, in which the words are an ``enum`` that editors complete.
    """
    return Rule(lambda value: None if value in words else unknown(what, value, words), {"enum": list(words), **schema})


def named(what: str, pattern: str, hint: str, reserved: Collection[str] = ()) -> Rule:
    """Return the rule for the name of a ``what``: all of it matches ``pattern``, which ``hint`` puts into words.

    ``hint`` follows the word "use": ``letters, digits and _``. ``reserved`` are names that match but are taken by the
    build. The pattern is also that of the JSON Schema, so it must mean the same in Python and in ECMAScript.
    """

    def check(value: str) -> Mistake | None:
        if value in reserved:
            return Mistake(
                "reserved-name",
                reason=f"the build uses the name {in_quotes(value)} for something else",
                hint="choose another name",
            )
        if re.fullmatch(pattern, value):
            return None
        return Mistake("invalid-name", reason=f"{in_quotes(value)} cannot name a {what}", hint=f"use {hint}")

    return Rule(check, {"pattern": f"^{pattern}$"})


def not_blank(what: str) -> Callable[[str], Mistake | None]:
    """Return the check that a text is more than blanks; ``what`` is its kind with an article.

    ``what`` begins the message: "a path must not be empty".
    """
    return lambda value: None if value.strip() else Mistake("empty-text", reason=f"{what} must not be empty")


def _path(value: str) -> Mistake | None:
    """Return why ``value`` is not a path; systems refuse a long one with an error wherever it is first used."""
    if any(len(os.fsencode(part)) > _LONGEST_NAME for part in value.split("/")) or len(value) > _LONGEST_PATH:
        reason = f"a path of {len(value)} characters is too long; names may have {_LONGEST_NAME}"
        return Mistake("path-too-long", reason=reason, hint="use shorter names")
    return not_blank("a path")(value)


# Bytes, the limit of most file systems (NAME_MAX of Linux).
_LONGEST_NAME = 255
_LONGEST_PATH = 3000
"""Less than the 4096 bytes of Linux, because the path is joined to the folder of the project file."""
EXACT = _Exact()
NOT_EMPTY = _NotEmpty()
PathText = Annotated[str, Rule(_path, {"format": "path", "pattern": r"^(?!.*[^/]{256}).*\S"})]
"""A path as written."""
ProjectPath = Annotated[Path, _InProject()]
"""A path that starts at the folder of the project file."""
