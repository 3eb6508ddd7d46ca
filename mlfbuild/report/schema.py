"""The JSON form of a report as JSON Schema, for programs that read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mlfbuild.manifest import Budget
from mlfbuild.report.budget import MEMORIES
from mlfbuild.report.image import Berkeley
from mlfbuild.report.sizes import FLASH_KINDS, RAM_KINDS

FORMAT = 1
"""Version of the JSON form."""

_TEXT = {"type": "string"}
_BYTES = {"type": "integer", "minimum": 0}
_KINDS = {"flash": FLASH_KINDS, "ram": RAM_KINDS}


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of what ``mlfbuild report --format json`` prints."""
    images = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/image"}}
    version = {"const": FORMAT, "description": "Version of this form; another one is another schema"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mlfbuild report",
        **_object({"mlfbuild_report": version, "images": images}),
        "$defs": {
            "image": _image(),
            "model": _owner({"budget": {"$ref": "#/$defs/budget"}}),
            "other": _owner({}),
            "piece": _piece(),
            "budget": _budget(),
        },
    }


def _object(needed: Mapping[str, Any], optional: Mapping[str, Any] | None = None, about: str = "") -> dict[str, Any]:
    return {
        "type": "object",
        **({"description": about} if about else {}),
        "properties": {**needed, **(optional or {})},
        "required": list(needed),
        "additionalProperties": False,
    }


def _image() -> dict[str, Any]:
    numbers = {field.name: _BYTES for field in fields(Berkeley)}
    needed = {
        "firmware": {**_TEXT, "description": "Its name in the project file; of an image without project the file's"},
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "Of the ELF file"},
        "flash": {**_BYTES, "description": "Bytes of flash that it takes, the sum of its owners'"},
        "ram": {**_BYTES, "description": "Bytes of RAM that the linker gives it, stack and all"},
        "size": _object(numbers, about="What size of GNU binutils prints"),
        "budget": {"$ref": "#/$defs/budget"},
        "models": _array("model"),
        "others": _array("other"),
    }
    return _object(
        needed,
        {"target": _TEXT, "cpu": _TEXT, "baseline": _baseline()},
        "A linked image; target and cpu where a project has them",
    )


def _baseline() -> dict[str, Any]:
    about = "What was accepted for the models, by name, and, by the empty name, for the image; where budget-file has it"
    taken = _object(dict.fromkeys(MEMORIES, _BYTES))
    return {"type": "object", "description": about, "required": [""], "additionalProperties": taken}


def _array(item: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/$defs/{item}"}}


def _owner(optional: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {memory: _object(dict.fromkeys(of, _BYTES)) for memory, of in _KINDS.items()}
    needed = {"name": _TEXT, "flash": _BYTES, "ram": _BYTES, "kinds": _object(kinds), "pieces": _array("piece")}
    return _object(needed, optional, "Who has a part of the image")


def _piece() -> dict[str, Any]:
    memory = {"type": "boolean"}
    kind = {"enum": [*FLASH_KINDS, *RAM_KINDS]}
    about = "A function, a constant or a variable; initialised variables take flash and RAM"
    return _object({"name": _TEXT, "kind": kind, "size": _BYTES, "flash": memory, "ram": memory}, about=about)


def _budget() -> dict[str, Any]:
    limit = {"type": ["integer", "null"], "minimum": 0}
    return _object({field.name: limit for field in fields(Budget)}, about="What it may take at most; null is no limit")
