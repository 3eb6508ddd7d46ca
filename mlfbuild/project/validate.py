"""Run the checks of ``keys`` over a document and retell pydantic's findings in the project file's own words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mlfbuild import __version__
from mlfbuild.project.document import Document
from mlfbuild.project.keys import FORMAT_VERSION, MAPPING, TEXT, ProjectKeys
from mlfbuild.project.problems import KeyPath, quoted, suggestion

_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "float_type": "a number",
    "int_type": "a whole number",
    "list_type": "a list",
    "model_type": "a mapping",
    "string_type": "text",
}
_KEY_MARK = "[key]"  # pydantic's mark for a finding about a key of a mapping


def newer_version(document: Document) -> str | None:
    """Return why a file of a newer format cannot be read; ``None`` where this is not one."""
    version = document.data.get("mlfbuild") if isinstance(document.data, dict) else None
    if isinstance(version, bool) or not isinstance(version, int) or version <= FORMAT_VERSION:
        return None
    return (
        f"format version {version} is newer than this mlfbuild ({__version__}) reads, which is {FORMAT_VERSION}; "
        "upgrade with `pip install --upgrade mlfbuild`"
    )


def validate(document: Document) -> ProjectKeys | None:
    """Check every value of ``document`` by itself; mistakes are added to its problems and make the result ``None``."""
    try:
        keys = ProjectKeys.model_validate(document.data)
    except ValidationError as error:
        for details in error.errors(include_url=False):
            _add(document, details)
        return None
    if keys.mlfbuild != FORMAT_VERSION:
        document.add(("mlfbuild",), f"there is no format version {keys.mlfbuild}; write {FORMAT_VERSION}")
    return keys


def _add(document: Document, details: ErrorDetails) -> None:
    path = tuple(segment for segment in details["loc"] if segment not in {TEXT, MAPPING})
    kind = details["type"]
    if path and path[-1] == _KEY_MARK:
        document.add(path[:-1], _reason(details), at_key=True)
    elif kind == "missing":
        document.add(path[:-1], f"missing key {quoted(str(path[-1]))}", at_key=True)
    elif kind == "extra_forbidden":
        document.add(path, _unknown_key(path), at_key=True)
    elif kind == "too_short" and any(problem.path == path for problem in document.problems):
        pass  # its entries were refused one by one
    elif path[:1] == ("models",) and path[2:3] == ("options",) and len(path) > 4:
        _add_once(document, path[:4], f"expected text, a number, true or false, got {_kind(details['input'])}")
    else:
        document.add(path, _reason(details))


def _add_once(document: Document, path: KeyPath, reason: str) -> None:
    """Report a value that fits no member of a union once, not once a member."""
    if not any(problem.path == path and problem.reason == reason for problem in document.problems):
        document.add(path, reason)


def _reason(details: ErrorDetails) -> str:
    kind = details["type"]
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, got {_kind(details['input'])}{_quote_hint(kind, details['input'])}"
    if kind == "too_short":
        return "must not be empty"
    if kind == "value_error":
        return str(details["ctx"]["error"])
    return details["msg"]


def _kind(value: object) -> str:
    """Say what a value is in the project file's words, with the value where it is short."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"text {quoted(value)}"
    return "nothing" if value is None else str(value).lower()


def _quote_hint(kind: str, value: object) -> str:
    scalar = isinstance(value, (bool, int, float))
    return "; put it in quotes where text is meant" if kind == "string_type" and scalar else ""


def _unknown_key(path: KeyPath) -> str:
    *parents, key = path
    return f"unknown key{suggestion(str(key), _keys_at(tuple(parents)))}"


def _keys_at(path: KeyPath) -> list[str]:
    """Return the keys that the mapping at ``path`` may hold."""
    model: type[BaseModel] = ProjectKeys
    by_name = False
    for segment in path:
        if by_name:
            by_name = False
            continue
        field = next(field for field in model.model_fields.values() if field.alias == segment)
        model, by_name = _model_in(field.annotation)
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> tuple[type[BaseModel], bool]:
    """Return the model that a field holds and whether it holds a mapping of names to such models."""
    found = next(_models_in(annotation))
    return found, any(get_origin(part) is dict for part in (annotation, *get_args(annotation)))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models_in(part)
