"""The schema of ``metadata.json`` in each version and style, taken from TVM's exporter (model_library_format.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Shape:
    """The permitted form of a value: its types, and the shapes of its members if these are checked."""

    name: str
    """In messages: ``a list``."""
    types: tuple[type, ...]
    required: Mapping[str, Shape] = field(default_factory=dict)
    optional: Mapping[str, Shape] = field(default_factory=dict)
    item: Shape | None = None
    """The shape of all items of a list, or of all values of an object whose keys are names."""

    @property
    def all(self) -> dict[str, Shape]:
        """All keys that the object may have; empty if its keys are not checked."""
        return {**self.required, **self.optional}

    def takes(self, value: object) -> bool:
        """Return whether ``value`` has one of the types; ``true`` and ``false`` do not count as numbers."""
        return isinstance(value, self.types) and not isinstance(value, bool)


def _object(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None) -> Shape:
    return Shape("an object", (dict,), required, optional or {})


def _list(item: Shape) -> Shape:
    return Shape("a list", (list,), item=item)


def _map(item: Shape) -> Shape:
    return Shape("an object by name", (dict,), item=item)


_TEXT = Shape("a string", (str,))
_NUMBER = Shape("a number", (int,))
_BINDING = Shape("a string or null", (str, type(None)))  # null for an operator's buffer without a name
_EXTENSION: Mapping[str, Shape] = {"mlfbuild": _object({})}

_TENSOR = _object({"size": _NUMBER, "dtype": _TEXT})
_MAIN = _object(
    {
        "device": _NUMBER,
        "workspace_size_bytes": _NUMBER,
        "constants_size_bytes": _NUMBER,
        "io_size_bytes": _NUMBER,
    },
    {"inputs": _map(_TENSOR), "outputs": _map(_TENSOR)},
)
_WORKSPACE = _object({"device": _NUMBER, "workspace_size_bytes": _NUMBER})
_FUNCTIONS = _object(
    {
        "main": _list(_MAIN),
        "operator_functions": _list(_object({"function_name": _TEXT, "workspace": _list(_WORKSPACE)})),
    }
)
_STORAGE = _list(_object({"storage_id": _NUMBER, "size_bytes": _NUMBER}, {"input_binding": _BINDING}))
_BUFFER = _object({"size_bytes": _NUMBER, "shape": _list(_NUMBER), "dtype": _TEXT}, {"input_binding": _BINDING})
_DEPENDENCY = _object({"short_name": _TEXT, "url": _TEXT, "url_type": _TEXT}, {"version_spec": _TEXT})


def is_documented(fields: Mapping[str, object]) -> bool:
    """Return whether a module's object has the form of a document of TVM that no exporter followed.

    These are the documentation page, with ``main`` directly in ``memory``, and the RFC of several modules, with an
    empty ``style``.
    """
    memory = fields.get("memory")
    return fields.get("style") == "" or (isinstance(memory, dict) and "main" in memory and "functions" not in memory)


def document_shape(document: Mapping[str, object], version: int) -> Shape:
    """Return the shape of a document in ``version``, which may be that of models or of an operator."""
    if version == 7 and "modules" in document:
        modules = document["modules"]
        known = modules.items() if isinstance(modules, dict) else ()
        # Each module is described separately, because one may have the form of a document and another that of the
        # exporter.
        shapes = {name: _module(fields if isinstance(fields, dict) else {}, version) for name, fields in known}
        return _object({"version": _NUMBER, "modules": _object(shapes)}, _EXTENSION)
    shape = _module(document, version)
    return _object({"version": _NUMBER, **shape.required}, shape.optional)


def _module(fields: Mapping[str, object], version: int) -> Shape:
    operator = fields.get("style") == "operator"
    executors = "executors" if version >= 5 else "runtimes"
    memory = _STORAGE if version == 1 else _object({"functions": _FUNCTIONS}, {"sids": _STORAGE})
    required: dict[str, Shape] = {
        "model_name": _TEXT,
        "export_datetime": _TEXT,
        "target": _list(_TEXT) if version >= 6 else _map(_TEXT),
        executors: _list(_TEXT),
        "memory": _map(_list(_BUFFER)) if operator else memory,
    }
    if version >= 4:
        required["style"] = _TEXT
    optional: dict[str, Shape] = {"external_dependencies": _list(_DEPENDENCY)} if version >= 5 else {}
    if is_documented(fields):
        # The documents leave these keys out, so they are no longer required.
        optional |= {key: required.pop(key) for key in (executors, "style") if key in required}
        required["memory"] = _documented_memory(fields.get("memory"))
    return _object(required, {**optional, **_EXTENSION})


def _documented_memory(memory: object) -> Shape:
    """Return the shape of a memory whose operator functions have keys of their own."""
    functions = memory.get("functions") if isinstance(memory, dict) else None
    if not isinstance(functions, dict):
        by_name = _map(_list(_WORKSPACE))
        return _object({"main": _list(_MAIN)}, {"operator_functions": by_name, "sids": _STORAGE})
    named = {name: _list(_WORKSPACE) for name, value in functions.items() if isinstance(value, list)}
    shape = _object({"main": _list(_MAIN)}, {**named, **_FUNCTIONS.required})
    return _object({"functions": shape}, {"sids": _STORAGE})
