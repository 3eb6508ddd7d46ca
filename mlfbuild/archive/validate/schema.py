"""The schema of ``metadata.json`` in each version and style, taken from TVM's exporter (model_library_format.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Leaf:
    """A value without members, or one whose members are not checked."""

    name: str
    types: tuple[type, ...]

    def takes(self, value: object) -> bool:
        """Return whether ``value`` has one of the types; ``true`` and ``false`` do not count as numbers."""
        return isinstance(value, self.types) and not isinstance(value, bool)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class ObjectShape:
    """An object with known keys."""

    required: Mapping[str, Shape]
    optional: Mapping[str, Shape] = field(default_factory=dict)

    @property
    def all(self) -> dict[str, Shape]:
        """All keys that the object may have."""
        return {**self.required, **self.optional}

    def takes(self, value: object) -> bool:
        """Return whether ``value`` has this container type, regardless of its items."""
        return isinstance(value, dict)

    def __str__(self) -> str:
        return "an object"


@dataclass(frozen=True)
class ListOf:
    """A list whose items have the same shape."""

    item: Shape

    def takes(self, value: object) -> bool:
        """Return whether ``value`` has this container type, regardless of its items."""
        return isinstance(value, list)

    def __str__(self) -> str:
        return "a list"


@dataclass(frozen=True)
class MapOf:
    """An object whose keys are names, and whose values have the same shape."""

    item: Shape

    def takes(self, value: object) -> bool:
        """Return whether ``value`` has this container type, regardless of its items."""
        return isinstance(value, dict)

    def __str__(self) -> str:
        return "an object by name"


Shape: TypeAlias = Leaf | ObjectShape | ListOf | MapOf

_TEXT = Leaf("a string", (str,))
_NUMBER = Leaf("a number", (int,))
_BINDING = Leaf("a string or null", (str, type(None)))  # null for an operator's buffer without a name
_EXTENSION: Mapping[str, Shape] = {"mlfbuild": Leaf("an object", (dict,))}

_TENSOR = ObjectShape({"size": _NUMBER, "dtype": _TEXT})
_MAIN = ObjectShape(
    {
        "device": _NUMBER,
        "workspace_size_bytes": _NUMBER,
        "constants_size_bytes": _NUMBER,
        "io_size_bytes": _NUMBER,
    },
    {"inputs": MapOf(_TENSOR), "outputs": MapOf(_TENSOR)},
)
_WORKSPACE = ObjectShape({"device": _NUMBER, "workspace_size_bytes": _NUMBER})
_FUNCTIONS = ObjectShape(
    {
        "main": ListOf(_MAIN),
        "operator_functions": ListOf(ObjectShape({"function_name": _TEXT, "workspace": ListOf(_WORKSPACE)})),
    }
)
_STORAGE = ListOf(ObjectShape({"storage_id": _NUMBER, "size_bytes": _NUMBER}, {"input_binding": _BINDING}))
_BUFFER = ObjectShape({"size_bytes": _NUMBER, "shape": ListOf(_NUMBER), "dtype": _TEXT}, {"input_binding": _BINDING})
_DEPENDENCY = ObjectShape({"short_name": _TEXT, "url": _TEXT, "url_type": _TEXT}, {"version_spec": _TEXT})


def is_documented(fields: Mapping[str, object]) -> bool:
    """Return whether a module's object has the form of a document of TVM that no exporter followed.

    These are the documentation page, with ``main`` directly in ``memory``, and the RFC of several modules, with an
    empty ``style``.
    """
    memory = fields.get("memory")
    return fields.get("style") == "" or (isinstance(memory, dict) and "main" in memory and "functions" not in memory)


def document_shape(document: Mapping[str, object], version: int) -> ObjectShape:
    """Return the shape of a document in ``version``, which may be that of models or of an operator."""
    if version == 7 and "modules" in document:
        modules = document["modules"]
        known = modules.items() if isinstance(modules, dict) else ()
        # Each module is described separately, because one may have the form of a document and another that of the
        # exporter.
        shapes = {name: _module(fields if isinstance(fields, dict) else {}, version) for name, fields in known}
        return ObjectShape({"version": _NUMBER, "modules": ObjectShape(shapes)}, _EXTENSION)
    shape = _module(document, version)
    return ObjectShape({"version": _NUMBER, **shape.required}, shape.optional)


def _module(fields: Mapping[str, object], version: int) -> ObjectShape:
    operator = fields.get("style") == "operator"
    executors = "executors" if version >= 5 else "runtimes"
    required: dict[str, Shape] = {
        "model_name": _TEXT,
        "export_datetime": _TEXT,
        "target": ListOf(_TEXT) if version >= 6 else MapOf(_TEXT),
        executors: ListOf(_TEXT),
        "memory": MapOf(ListOf(_BUFFER)) if operator else _memory(version),
    }
    if version >= 4:
        required["style"] = _TEXT
    optional: dict[str, Shape] = {"external_dependencies": ListOf(_DEPENDENCY)} if version >= 5 else {}
    if is_documented(fields):
        # The documents leave these keys out, so they are no longer required.
        optional |= {key: required.pop(key) for key in (executors, "style") if key in required}
        required["memory"] = _documented_memory(fields.get("memory"))
    return ObjectShape(required, {**optional, **_EXTENSION})


def _documented_memory(memory: object) -> Shape:
    """Return the shape of a memory whose operator functions have keys of their own."""
    functions = memory.get("functions") if isinstance(memory, dict) else None
    if not isinstance(functions, dict):
        by_name = MapOf(ListOf(_WORKSPACE))
        return ObjectShape({"main": ListOf(_MAIN)}, {"operator_functions": by_name, "sids": _STORAGE})
    named = {name: ListOf(_WORKSPACE) for name, value in functions.items() if isinstance(value, list)}
    shape = ObjectShape({"main": ListOf(_MAIN)}, {**named, **_FUNCTIONS.required})
    return ObjectShape({"functions": shape}, {"sids": _STORAGE})


def _memory(version: int) -> Shape:
    return _STORAGE if version == 1 else ObjectShape({"functions": _FUNCTIONS}, {"sids": _STORAGE})
