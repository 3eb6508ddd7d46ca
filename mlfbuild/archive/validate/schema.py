"""What ``metadata.json`` looks like in each version and style, as TVM's exporter (model_library_format.py) wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Leaf:
    """A value without parts, or one that is not looked into."""

    name: str
    types: tuple[type, ...]

    def takes(self, value: object) -> bool:
        """Whether ``value`` is one; true and false are no numbers."""
        return isinstance(value, self.types) and not isinstance(value, bool)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Object:
    """An object with known keys."""

    required: Mapping[str, Shape]
    optional: Mapping[str, Shape] = field(default_factory=dict)

    @property
    def all(self) -> dict[str, Shape]:
        """Every key it may have."""
        return {**self.required, **self.optional}

    def takes(self, value: object) -> bool:
        """Whether ``value`` is one, whatever its parts are."""
        return isinstance(value, dict)

    def __str__(self) -> str:
        return "an object"


@dataclass(frozen=True)
class ListOf:
    """A list of equal things."""

    item: Shape

    def takes(self, value: object) -> bool:
        """Whether ``value`` is one, whatever its parts are."""
        return isinstance(value, list)

    def __str__(self) -> str:
        return "a list"


@dataclass(frozen=True)
class MapOf:
    """An object whose keys are names."""

    item: Shape

    def takes(self, value: object) -> bool:
        """Whether ``value`` is one, whatever its parts are."""
        return isinstance(value, dict)

    def __str__(self) -> str:
        return "an object by name"


Shape: TypeAlias = Leaf | Object | ListOf | MapOf

_TEXT = Leaf("a string", (str,))
_NUMBER = Leaf("a number", (int,))
_BINDING = Leaf("a string or null", (str, type(None)))  # an operator's is null where its buffer has no name
_EXTENSION: Mapping[str, Shape] = {"mlfbuild": Leaf("an object", (dict,))}

_TENSOR = Object({"size": _NUMBER, "dtype": _TEXT})
_MAIN = Object(
    {
        "device": _NUMBER,
        "workspace_size_bytes": _NUMBER,
        "constants_size_bytes": _NUMBER,
        "io_size_bytes": _NUMBER,
    },
    {"inputs": MapOf(_TENSOR), "outputs": MapOf(_TENSOR)},
)
_WORKSPACE = Object({"device": _NUMBER, "workspace_size_bytes": _NUMBER})
_FUNCTIONS = Object(
    {
        "main": ListOf(_MAIN),
        "operator_functions": ListOf(Object({"function_name": _TEXT, "workspace": ListOf(_WORKSPACE)})),
    }
)
_STORAGE = ListOf(Object({"storage_id": _NUMBER, "size_bytes": _NUMBER}, {"input_binding": _BINDING}))
_BUFFER = Object({"size_bytes": _NUMBER, "shape": ListOf(_NUMBER), "dtype": _TEXT}, {"input_binding": _BINDING})
_DEPENDENCY = Object({"short_name": _TEXT, "url": _TEXT, "url_type": _TEXT}, {"version_spec": _TEXT})


def document_shape(document: Mapping[str, object], version: int) -> Object:
    """Return the shape that ``version`` promises of a document, which may be a model's or an operator's."""
    if version == 7 and "modules" in document:
        return Object({"version": _NUMBER, "modules": MapOf(_module(document, version))}, _EXTENSION)
    shape = _module(document, version)
    return Object({"version": _NUMBER, **shape.required}, shape.optional)


def _module(document: Mapping[str, object], version: int) -> Object:
    operator = document.get("style") == "operator"
    required: dict[str, Shape] = {
        "model_name": _TEXT,
        "export_datetime": _TEXT,
        "target": ListOf(_TEXT) if version >= 6 else MapOf(_TEXT),
        "executors" if version >= 5 else "runtimes": ListOf(_TEXT),
        "memory": MapOf(ListOf(_BUFFER)) if operator else _memory(version),
    }
    if version >= 4:
        required["style"] = _TEXT
    optional: dict[str, Shape] = {"external_dependencies": ListOf(_DEPENDENCY)} if version >= 5 else {}
    return Object(required, {**optional, **_EXTENSION})


def _memory(version: int) -> Shape:
    return _STORAGE if version == 1 else Object({"functions": _FUNCTIONS}, {"sids": _STORAGE})
