"""The part of the schema of reports that describes a comparison with another report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlfbuild.report.sizes.owners import FLASH_KINDS, RAM_KINDS

_TEXT = {"type": "string"}
_FLAG = {"type": "boolean"}
_CHANGE = {"$ref": "#/$defs/change"}


def object_schema(
    needed: Mapping[str, Any], optional: Mapping[str, Any] | None = None, about: str = ""
) -> dict[str, Any]:
    """Return the schema of an object with the members ``needed``, optionally those in ``optional``, and no others."""
    return {
        "type": "object",
        **({"description": about} if about else {}),
        "properties": {**needed, **(optional or {})},
        "required": list(needed),
        "additionalProperties": False,
    }


def comparison_definitions() -> dict[str, Any]:
    """Return the definitions of ``#/$defs/compared``, which ``comparison_json`` returns."""
    named = object_schema({"firmware": _TEXT}, {"target": _TEXT}, "An image that only one of the reports has")
    return {
        "compared": object_schema(
            {"images": _array(_image()), "only_before": _array(named), "only_now": _array(named)},
            about="Changes since the report of --compare",
        ),
        "change": object_schema(
            {"before": {"type": ["integer", "null"], "minimum": 0}, "now": {"type": ["integer", "null"], "minimum": 0}},
            about="A number in both reports; null if a report does not have it",
        ),
    }


def _array(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _image() -> dict[str, Any]:
    same = {**_FLAG, "description": "Whether the files are identical"}
    owners = {**_array(_owner()), "description": "Owners in both reports, largest change first"}
    needed = {"firmware": _TEXT, "same": same, "flash": _CHANGE, "ram": _CHANGE, "owners": owners}
    error = {"type": ["integer", "null"], "minimum": 0, "description": "Of modelled cycles, in per cent"}
    return object_schema(needed, {"target": _TEXT, "error": error})


def _owner() -> dict[str, Any]:
    kinds = object_schema(dict.fromkeys((*FLASH_KINDS, *RAM_KINDS), _CHANGE))
    tensor = {**_TEXT, "description": "Tensor or operator of the model that it is made of; empty if unknown"}
    members = {"name": _TEXT, "kind": _TEXT, "flash": _FLAG, "ram": _FLAG, "tensor": tensor, "bytes": _CHANGE}
    piece = object_schema(members)
    repacked = "Constants whose part of the model is unchanged, at another place or in another layout of the same size"
    figures = dict.fromkeys(("bytes", "macs", "instructions"), _CHANGE)
    operator = object_schema({"module": _TEXT, "name": _TEXT, "operator": _TEXT, **figures}, {"cycles": _CHANGE})
    changed = "that changed, largest change first"
    return object_schema({
        "name": _TEXT,
        "model": _FLAG,
        "flash": _CHANGE,
        "ram": _CHANGE,
        "kinds": kinds,
        "pieces": {**_array(piece), "description": f"Functions, constants and variables {changed}"},
        "repacked": {**_array(piece), "description": repacked},
        "operators": {**_array(operator), "description": f"Operators {changed}; only if both have networks"},
        "instructions": _CHANGE,
        "stack": _CHANGE,
    }, {"cycles": _CHANGE, "latency": {**_CHANGE, "description": "In nanoseconds"}})  # fmt: skip
