"""The JSON form of a report as JSON Schema, for programs that read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mlfbuild.library import MEMORIES as TENSOR_MEMORIES
from mlfbuild.project import Budget
from mlfbuild.report.budgets.limits import MEMORIES
from mlfbuild.report.document.compare_schema import comparison_definitions, object_schema
from mlfbuild.report.sizes.image import Berkeley
from mlfbuild.report.sizes.owners import FLASH_KINDS, RAM_KINDS

FORMAT = 2
"""Version of the JSON form."""

_TEXT = {"type": "string"}
_BYTES = {"type": "integer", "minimum": 0}
_INDEX = {"type": "integer", "minimum": 0}
_MAYBE = {"type": ["integer", "null"], "minimum": 0}
_FLASH = dict.fromkeys(FLASH_KINDS, _BYTES)
_KINDS = {"flash": FLASH_KINDS, "ram": RAM_KINDS}


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of what ``mlfbuild report --format json`` prints."""
    images = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/image"}}
    version = {"const": FORMAT, "description": "Version of this form; another one is another schema"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "mlfbuild report",
        **object_schema({"mlfbuild_report": version, "images": images}, {"compared": {"$ref": "#/$defs/compared"}}),
        "$defs": {
            "image": _image(),
            "model": _owner(
                {
                    "budget": {"$ref": "#/$defs/budget"},
                    "networks": _array("network"),
                    "stack": {"$ref": "#/$defs/stack"},
                }
            ),
            "other": _owner({}),
            "piece": _piece(),
            "budget": _budget(),
            "stack": _stack(),
            "network": _network(),
            "tensor": _tensor(),
            "operator": _operator(),
            **comparison_definitions(),
        },
    }


def _image() -> dict[str, Any]:
    numbers = {field.name: _BYTES for field in fields(Berkeley)}
    needed = {
        "firmware": {**_TEXT, "description": "Its name in the project file; of an image without project the file's"},
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$", "maxLength": 64, "description": "Of the ELF file"},
        "flash": {**_BYTES, "description": "Bytes of flash that it takes, the sum of its owners'"},
        "ram": {**_BYTES, "description": "Bytes of RAM that the linker gives it, stack and all"},
        "size": object_schema(numbers, about="What size of GNU binutils prints"),
        "budget": {"$ref": "#/$defs/budget"},
        "models": _array("model"),
        "others": _array("other"),
    }
    return object_schema(
        needed,
        {"target": _TEXT, "cpu": _TEXT, "baseline": _baseline(), "stack": {"$ref": "#/$defs/stack"}},
        "A linked image; target and cpu where a project has them, stack of its main",
    )


def _baseline() -> dict[str, Any]:
    about = "What was accepted for the models, by name, and, by the empty name, for the image; where budget-file has it"
    taken = object_schema(dict.fromkeys(MEMORIES, _BYTES))
    return {"type": "object", "description": about, "required": [""], "additionalProperties": taken}


def _array(item: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/$defs/{item}"}}


def _owner(optional: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {memory: object_schema(dict.fromkeys(of, _BYTES)) for memory, of in _KINDS.items()}
    needed = {"name": _TEXT, "flash": _BYTES, "ram": _BYTES, "kinds": object_schema(kinds), "pieces": _array("piece")}
    return object_schema(needed, optional, "Who has a part of the image")


def _piece() -> dict[str, Any]:
    memory = {"type": "boolean"}
    kind = {"enum": [*FLASH_KINDS, *RAM_KINDS]}
    about = "A function, a constant or a variable; initialised variables take flash and RAM"
    return object_schema({"name": _TEXT, "kind": kind, "size": _BYTES, "flash": memory, "ram": memory}, about=about)


def _stack() -> dict[str, Any]:
    needed = {
        "worst_case": {**_MAYBE, "description": "Bytes where it is deepest; null where that is not known"},
        "reason": {**_TEXT, "description": "Why it is not known; empty where it is"},
        "path": {"type": "array", "items": _TEXT, "description": "Functions from the first one down to the deepest"},
        "frames": {
            "type": "array",
            "items": _BYTES,
            "description": "What each of them has on the stack then; 0 where that is not known",
        },
        "measured": {**_MAYBE, "description": "Bytes that a run took on a board; null where it was not measured"},
    }
    return object_schema(
        needed, about="Of the functions of a model that firmware calls, or of main with all that it calls"
    )


def _network() -> dict[str, Any]:
    needed = {
        "module": {**_TEXT, "description": "Its name in the archive"},
        "executor": {"enum": ["aot", "graph"]},
        "arena": {**_BYTES, "description": "Bytes that tensors and scratch memory share"},
        "tensors": _array("tensor"),
        "operators": {**_array("operator"), "description": "In the order in which they run"},
        "rest": object_schema(_FLASH, about="Bytes of the model's flash that are no operator's own"),
    }
    profile = {
        "board": {**_TEXT, "description": "Where it ran"},
        "inputs": {**_TEXT, "description": "The file whose first case it ran with; empty for zeros"},
        "instructions": {"type": "integer", "minimum": 1},
        "rest": {**_INDEX, "description": "Those of them that are no operator's"},
    }
    optional = {"profile": object_schema(profile, about="One run; there where it was asked for")}
    return object_schema(
        needed, optional, "A module of the model's archive; operators and rest of all are the model's flash"
    )


def _tensor() -> dict[str, Any]:
    needed = {
        "name": {**_TEXT, "description": "In the model"},
        "dtype": _TEXT,
        "shape": {"type": "array", "items": _BYTES},
        "size": _BYTES,
        "memory": {"enum": [*TENSOR_MEMORIES], "description": "What it lies in; input and output are the caller's"},
        "offset": {**_MAYBE, "description": "In arena or state; which input or output it is; null for a constant"},
        "first": {**_INDEX, "description": "The operator from which on its bytes are needed"},
        "last": {**_INDEX, "description": "The last operator during which they are"},
    }
    return object_schema(needed, about="What operators hand to each other; weights are their operator's")


def _operator() -> dict[str, Any]:
    scratch = object_schema(
        {"offset": _BYTES, "size": _BYTES}, about="Bytes of the arena that are its own while it runs"
    )
    needed = {
        "name": {**_TEXT, "description": "In the model; several that run together have + between them"},
        "operator": {**_TEXT, "description": "What it computes, as CONV_2D or CONV_2D + ADD"},
        "function": {**_TEXT, "description": "The C function; empty where nothing is to be done"},
        "macs": {**_MAYBE, "description": "Multiply-accumulates of a run; null where nobody knows"},
        "inputs": {"type": "array", "items": _INDEX, "description": "Numbers of tensors"},
        "outputs": {"type": "array", "items": _INDEX, "description": "Numbers of tensors"},
        "scratch": {"anyOf": [scratch, {"type": "null"}]},
        **_FLASH,
        "pieces": {"type": "array", "items": _TEXT, "description": "Names of the model's pieces that count here"},
        "instructions": {**_MAYBE, "description": "Of one run on a board; null where it was not profiled"},
        "bound": {**_MAYBE, "description": "Instructions that it takes at least; null where nobody knows"},
    }
    return object_schema(needed, about="What several operators share counts for the first of them")


def _budget() -> dict[str, Any]:
    limit = {"type": ["integer", "null"], "minimum": 0}
    return object_schema(
        {field.name: limit for field in fields(Budget)}, about="What it may take at most; null is no limit"
    )
