"""Check a document with the declarations of its keys, and put pydantic's findings into the project file's words.

The JSON Schema of the project file is made from the same declarations.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import ErrorDetails, core_schema

from mlfbuild import __version__
from mlfbuild.core import Mistake, in_quotes, listed, suggestion
from mlfbuild.core.keys import MAPPING, OTHERS_MARK, TEXT, Keys, TextOr
from mlfbuild.project.document import Document
from mlfbuild.project.problems import KeyPath
from mlfbuild.project.specification import FORMAT_VERSION, INCLUDE, Project, Workspace

# Types of pydantic's errors, with what a project file should have had there.
_EXPECTED = {
    "bool_type": "true or false",
    "dataclass_type": "a mapping",
    "dict_type": "a mapping",
    "int_type": "a whole number",
    "string_type": "text",
    "tuple_type": "a list",
}
_SCALARS = (("options",), ("extensions",), ("explore",))
"""Keys of a model whose values have one of several types, for each of which pydantic reports a mistake."""
_ALIASES = dict.fromkeys(("tag", "branch", "commit", "rev", "revision", "ref"), ("version",))
"""Keys that other tools use for the state of a Git repository, and ours."""
_PLUGINS = "pydantic.plugin._loader"
_KEY_MARK = "[key]"  # pydantic's mark for a finding about a key of a mapping


def newer_version(document: Document) -> Mistake | None:
    """Return why a file of a newer format cannot be read, ``None`` if this is not one.

    ``document`` is checked for this first, because keys of a later format would all be reported as mistakes. A version
    of the wrong type is left to ``validate``.
    """
    version = document.mapping().get("mlfbuild")
    if isinstance(version, bool) or not isinstance(version, int) or version <= FORMAT_VERSION:
        return None
    return Mistake(
        "newer-format-version",
        reason=f"this mlfbuild ({__version__}) reads format version {FORMAT_VERSION}, not {version}",
        hint="install a newer mlfbuild",
    )


_K = TypeVar("_K", bound=Keys)


def validate(document: Document, root: Path, kind: type[_K]) -> _K | None:
    """Check every value of ``document``, whose keys are those of ``kind``; paths are joined to ``root``.

    Each value is checked independently of the others. Mistakes are added to the problems of ``document`` and make the
    result ``None``. Derived fields of the result, and of what it contains, are not set yet.
    """
    try:
        found: _K = _adapter(cast(Any, kind)).validate_python(document.data, context=root)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            _add(document, details, kind)
        return None
    return found


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    # To look for plugins, pydantic imports importlib.metadata and with it the package email: a tenth of the time of
    # `mlfbuild check`. An empty module takes the place of its loader while the adapter is made. If a later pydantic has
    # the loader elsewhere, only the time is lost; a program that has loaded its plugins keeps them.
    nothing = ModuleType(_PLUGINS)
    vars(nothing)["get_plugins"] = tuple
    sys.modules.setdefault(_PLUGINS, nothing)
    try:
        return TypeAdapter(kind)
    finally:
        if sys.modules[_PLUGINS] is nothing:
            del sys.modules[_PLUGINS]


def _add(document: Document, details: ErrorDetails, kind_of_file: type[Keys]) -> None:
    path = tuple(segment for segment in details["loc"] if segment not in {TEXT, MAPPING, OTHERS_MARK})
    kind = details["type"]
    if path and path[-1] == _KEY_MARK:
        document.add(path[:-1], _mistake(details), at_key=True)
    elif kind == "missing":
        key = str(path[-1])
        value = f": {FORMAT_VERSION}" if path == ("mlfbuild",) else ""
        document.report(path[:-1], "missing-key", f"missing key {in_quotes(key)}", f"add {key}{value}", at_key=True)
    elif kind == "unexpected_keyword_argument":
        mistake = _unknown_key(path, _keys_at(path[:-1], kind_of_file), kind_of_file)
        document.add(path, mistake, at_key=True)
    elif kind == "too_short" and any(problem.path[: len(path)] == path for problem in document.problems):
        pass  # its entries were refused one by one
    # The fifth part of the path is the type in the union that pydantic tried.
    elif path[:1] == ("models",) and path[2:3] in _SCALARS and len(path) > 4:
        if not any(problem.path == path[:4] for problem in document.problems):  # once, not once a type of the union
            got, listed_too = details["input"], path[2] == "explore"
            wanted = f"text, a number, true or false{' or a list of text' if listed_too else ''}"
            reason = f"expected {wanted}, got {_described(got)}"
            if listed_too and isinstance(got, list):
                reason = "expected nothing but text in a list"
            document.add(path[:4], Mistake("wrong-type", reason=reason))
    else:
        mistake, start = _mistake(details), f"begin with mlfbuild: {FORMAT_VERSION}, or name another file with -f"
        document.add(path, mistake if path else Mistake(mistake.code, reason=mistake.reason, hint=start))


def _unknown_key(path: KeyPath, known: Sequence[str], kind: type[Keys]) -> Mistake:
    """Return the mistake about the last key of ``path``, with a near one of ``known``, its place, or what is there."""
    key, section = str(path[-1]), [str(part) for part in path[-2:-1]]
    if set(_ALIASES.get(key, ())) & set(known):
        return Mistake("unknown-key", reason="unknown key", hint=f"write it as {_ALIASES[key][0]}")
    near = suggestion(key, known)
    elsewhere = [f"{place}.{key}" for place, keys in _places(kind) if key in keys.fields()]
    # A deeper place in the same section is more likely than the same word in another one.
    elsewhere.sort(key=lambda place: not {*section} & {*place.split(".")})
    hint = "" if near else f"write it as {elsewhere[0]}" if elsewhere else f"use one of {listed(known)}, or remove it"
    return Mistake("unknown-key", reason=f"unknown key{near}", hint=hint)


def _places(keys: type[Keys], place: str = "") -> Iterator[tuple[str, type[Keys]]]:
    """Yield all mappings below ``keys`` with their keys: ``models.<model>.budget``."""
    hints = get_type_hints(keys, include_extras=True)
    for name, declared in keys.fields().items():
        annotation = hints[declared.name]
        for inner in _keys_in(annotation):
            path = f"{place}{name}" + (f".<{inner.TITLE}>" if _is_by_name(annotation) else "")
            yield path, inner
            yield from _places(inner, f"{path}.")


def _mistake(details: ErrorDetails) -> Mistake:
    kind = details["type"]
    if kind == "value_error" and isinstance(details["ctx"]["error"], Mistake):
        return details["ctx"]["error"]
    if kind == "too_short":
        return Mistake("empty-collection", reason="must not be empty")
    value = details["input"]
    hint = ""
    if kind == "string_type" and isinstance(value, (bool, int, float)):
        hint = "put it in quotes to make it text"
    elif kind == "tuple_type" and isinstance(value, str):
        hint = f"write [{value}]"
    reason = f"expected {_EXPECTED[kind]}, got {_described(value)}" if kind in _EXPECTED else details["msg"]
    return Mistake("wrong-type", reason=reason, hint=hint)


def _described(value: object) -> str:
    """Describe a value in the project file's words, with the value itself if it is short."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"text {in_quotes(value)}"
    return "nothing" if value is None else str(value).lower()


def _keys_at(path: KeyPath, keys: type[Keys]) -> list[str]:
    """Return the keys that the mapping at ``path`` of a file with ``keys`` may have."""
    by_name = False
    for segment in path:
        if by_name:
            by_name = False
            continue
        annotation = get_type_hints(keys, include_extras=True)[keys.fields()[str(segment)].name]
        keys, by_name = next(_keys_in(annotation)), _is_by_name(annotation)
    return list(keys.fields())


def _keys_in(annotation: Any) -> Iterator[type[Keys]]:
    """Yield the classes of keys that a type contains, in itself or as a choice of ``TextOr``."""
    if isinstance(annotation, TextOr):
        yield from _keys_in(annotation.mapping)
    if isinstance(annotation, type) and dataclasses.is_dataclass(annotation) and issubclass(annotation, Keys):
        yield annotation
    for part in (*get_args(annotation), *getattr(annotation, "__metadata__", ())):
        yield from _keys_in(part)


def _is_by_name(annotation: Any) -> bool:
    """Return whether a type is a mapping of names to classes of keys."""
    parts = (annotation, *get_args(annotation))
    return any(isinstance(origin := get_origin(part), type) and issubclass(origin, Mapping) for part in parts)


class _SchemaGenerator(GenerateJsonSchema):
    """Leaves out null, which a project file never holds, and titles, which would repeat the keys."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002  # pydantic's signature
        return False

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if isinstance(schema.get("default"), bool):
            # Editors insert and show switches by their default.
            return super().default_schema(schema)
        return self.generate_inner(schema["schema"])  # other defaults are in the words of the description

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        # Names of entries are restricted by patterns, and a name that matches none must not pass.
        return {**super().dict_schema(schema), "additionalProperties": False}


@functools.cache
def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the project file, for editors and other tools.

    The dictionary is shared by all callers and must not be changed.
    """
    schema, workspace = (
        TypeAdapter(kind).json_schema(by_alias=True, schema_generator=_SchemaGenerator) for kind in (Project, Workspace)
    )
    # A workspace has its own two keys and none of a project.
    both = [key for key in schema["required"] if key in workspace["required"]]
    own = [key for key in schema["required"] if key not in both]
    schema["properties"][INCLUDE] = workspace["properties"][INCLUDE]
    schema["required"] = both
    schema["oneOf"] = [
        {"required": own, "not": {"required": [INCLUDE]}},
        {"required": [INCLUDE], "maxProperties": len(workspace["required"])},
    ]
    return {"$schema": GenerateJsonSchema.schema_dialect, **schema, "title": "mlfbuild.yml"}
