"""The JSON form of a report as JSON Schema, for programs that read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from mlfbuild.library import MEMORIES as TENSOR_MEMORIES
from mlfbuild.project import CYCLE_COUNTERS, Budget
from mlfbuild.report.budgets.limits import MEMORIES
from mlfbuild.report.document.compare_schema import comparison_definitions, object_schema
from mlfbuild.report.operators.cycles import CYCLE_KINDS
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
    """Return the JSON Schema of the output of ``mlfbuild report --format json``."""
    images = {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/image"}}
    version = {"const": FORMAT, "description": "Format version"}
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
                    "verify": {**_array("verify"), "description": "Results of mlfbuild verify, by module"},
                }
            ),
            "verify": _verify(),
            "node": _node(),
            "other": _owner({}),
            "piece": _piece(),
            "budget": _budget(),
            "stack": _stack(),
            "network": _network(),
            "tensor": _tensor(),
            "operator": _operator(),
            "modelled": modelled_schema(),
            "cycles": cycles_schema(),
            "measured": _measured(),
            "spread": _spread(),
            **comparison_definitions(),
        },
    }


def _image() -> dict[str, Any]:
    numbers = {field.name: _BYTES for field in fields(Berkeley)}
    needed = {
        "firmware": {**_TEXT, "description": "Name in the project file; name of the file without a project"},
        "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$", "maxLength": 64, "description": "Of the ELF file"},
        "flash": {**_BYTES, "description": "Bytes of flash, the sum of its owners"},
        "ram": {**_BYTES, "description": "Bytes of RAM that the linker assigned, including the stack"},
        "size": object_schema(numbers, about="Numbers that size of GNU binutils prints"),
        "budget": {"$ref": "#/$defs/budget"},
        "models": _array("model"),
        "others": _array("other"),
    }
    return object_schema(
        needed,
        {
            "target": _TEXT,
            "cpu": _TEXT,
            "baseline": _baseline(),
            "stack": {"$ref": "#/$defs/stack"},
            "faults": {"type": "array", "items": _fault(), "description": "What is wrong with the link"},
            "not_checked": {
                "type": "array",
                "items": _TEXT,
                "description": "What was not checked in the link, and why",
            },
        },
        "A linked image; target and cpu only with a project; stack is that of its main",
    )


def _fault() -> dict[str, Any]:
    needed = {
        "code": {**_TEXT, "description": "Stable id"},
        "place": {**_TEXT, "description": "The image and the model"},
        "reason": _TEXT,
        "hint": {**_TEXT, "description": "The fix"},
    }
    return object_schema(needed, about="Data of a model in the wrong memory, a symbol of two models, or a small stack")


def _baseline() -> dict[str, Any]:
    about = "Accepted sizes in budget-file, by model; the empty name is the image"
    taken = object_schema(dict.fromkeys(MEMORIES, _BYTES))
    return {"type": "object", "description": about, "required": [""], "additionalProperties": taken}


def _array(item: str) -> dict[str, Any]:
    return {"type": "array", "items": {"$ref": f"#/$defs/{item}"}}


def _owner(optional: Mapping[str, Any]) -> dict[str, Any]:
    kinds = {memory: object_schema(dict.fromkeys(of, _BYTES)) for memory, of in _KINDS.items()}
    needed = {"name": _TEXT, "flash": _BYTES, "ram": _BYTES, "kinds": object_schema(kinds), "pieces": _array("piece")}
    return object_schema(needed, optional, "A model, a library or another part of the image")


def _piece() -> dict[str, Any]:
    memory = {"type": "boolean"}
    kind = {"enum": [*FLASH_KINDS, *RAM_KINDS]}
    about = "A function, a constant or a variable; initialised variables take flash and RAM"
    needed = {"name": _TEXT, "kind": kind, "size": _BYTES, "flash": memory, "ram": memory}
    optional = {
        "content": {**_TEXT, "description": "Hash of the bytes of a model's constant"},
        "tensor": {**_TEXT, "description": "Tensor or operator of the model that it is made of, if known"},
        "source": {**_TEXT, "description": "Hash of that part of the model, regardless of the constant's layout"},
    }
    return object_schema(needed, optional, about)


def _stack() -> dict[str, Any]:
    needed = {
        "worst_case": {**_MAYBE, "description": "Worst case in bytes; null if unknown"},
        "reason": {**_TEXT, "description": "Why it is unknown; empty if it is known"},
        "path": {"type": "array", "items": _TEXT, "description": "Call chain from the first function to the deepest"},
        "frames": {
            "type": "array",
            "items": _BYTES,
            "description": "Bytes of each of them on the stack then; 0 if unknown",
        },
        "measured": {**_MAYBE, "description": "Bytes in a run on a board; null if not measured"},
    }
    return object_schema(
        needed, about="Stack of the functions of a model that firmware calls, or of main with everything that it calls"
    )


def _network() -> dict[str, Any]:
    needed = {
        "module": {**_TEXT, "description": "Name in the archive"},
        "executor": {"enum": ["aot", "graph"]},
        "arena": {**_BYTES, "description": "Bytes that tensors and scratch memory share"},
        "tensors": _array("tensor"),
        "operators": {**_array("operator"), "description": "In order of execution"},
        "rest": object_schema(_FLASH, about="Bytes of the model's flash that belong to no operator"),
    }
    profile = {
        "board": {**_TEXT, "description": "The emulated board"},
        "inputs": {**_TEXT, "description": "The vectors file whose first case was the input; empty for zeros"},
        "instructions": {"type": "integer", "minimum": 1},
        "rest": {**_INDEX, "description": "Instructions outside of operators"},
    }
    cycles = {name: {"$ref": f"#/$defs/{name}"} for name in ("modelled", "measured")}
    optional = {"profile": object_schema(profile, cycles, "One run; only with --profile")}
    return object_schema(
        needed, optional, "A module of the archive; operators and rest of all add up to the model's flash"
    )


def _tensor() -> dict[str, Any]:
    needed = {
        "name": {**_TEXT, "description": "Name in the model"},
        "dtype": _TEXT,
        "shape": {"type": "array", "items": _BYTES},
        "size": _BYTES,
        "memory": {"enum": [*TENSOR_MEMORIES], "description": "The memory; input and output belong to the caller"},
        "offset": {**_MAYBE, "description": "In arena or state; number of the input or output; null for a constant"},
        "first": {**_INDEX, "description": "The first operator that needs its bytes"},
        "last": {**_INDEX, "description": "The last operator that needs them"},
    }
    return object_schema(needed, about="A tensor between operators; weights are counted for their operator")


def _operator() -> dict[str, Any]:
    scratch = object_schema({"offset": _BYTES, "size": _BYTES}, about="Scratch memory in the arena while it runs")
    needed = {
        "name": {**_TEXT, "description": "Name in the model; names of fused operators are joined by +"},
        "operator": {**_TEXT, "description": "Operator type, such as CONV_2D or CONV_2D + ADD"},
        "function": {**_TEXT, "description": "The C function; empty if there is nothing to compute"},
        "macs": {**_MAYBE, "description": "Multiply-accumulates of a run; null if unknown"},
        "inputs": {"type": "array", "items": _INDEX, "description": "Numbers of tensors"},
        "outputs": {"type": "array", "items": _INDEX, "description": "Numbers of tensors"},
        "scratch": {"anyOf": [scratch, {"type": "null"}]},
        **_FLASH,
        "pieces": {"type": "array", "items": _TEXT, "description": "Names of functions and constants counted here"},
        "instructions": {**_MAYBE, "description": "Instructions of one run on a board; null if not profiled"},
        "bound": {**_MAYBE, "description": "Lower bound of the instructions; null if unknown"},
    }
    about = "Shared functions and constants count for the first operator that uses them"
    optional = {
        "nodes": {**_array("node"), "description": "Nodes of the model's file"},
        "cycles": {**_INDEX, "description": "Modelled cycles; only for a target with a microcontroller"},
        "cycles_by_kind": {"$ref": "#/$defs/cycles"},
        "measured": {"$ref": "#/$defs/spread"},
        "removed": object_schema(
            {
                "channels": {**_INDEX, "description": "Output channels; 0 if only input channels were removed"},
                "of": {**_INDEX, "description": "Output channels in the model"},
                "weights": {**_BYTES, "description": "Bytes of weights"},
                "macs": {**_INDEX, "description": "Multiply-accumulates of a run"},
            },
            about="Channels that the compiler removed, because they are the same for every input or nothing reads them",
        ),
        "kernels": {"type": "array", "items": _kernel(), "description": "Kernels that the compiler considered"},
        "by_rows": object_schema(
            {
                "instructions": {"type": "integer", "description": "Additional instructions, estimated"},
                "memory": {**_BYTES, "description": "Bytes of the arena in use while it runs"},
                "memory_alone": {**_BYTES, "description": "The same if its nodes ran one after the other"},
            },
            about="The estimate by which nodes are computed row by row",
        ),
    }
    return object_schema(needed, optional, about)


def _kernel() -> dict[str, Any]:
    needed = {
        "kernel": {**_TEXT, "description": "Such as conv2d_dsp"},
        "chosen": {"type": "boolean"},
        "reason": {**_TEXT, "description": "Why it was chosen, or why not"},
    }
    optional = {
        "function": {**_TEXT, "description": "The C function; absent if the kernel does not serve the operator"},
        "constants": {**_BYTES, "description": "Before equal constants are stored once"},
        "workspace": {**_BYTES, "description": "Bytes of the arena beside tensors"},
        "node": {**_INDEX, "description": "Position among the operator's nodes, if it is several"},
    }
    return object_schema(needed, optional, "The chosen one of each node is the one in the code")


def modelled_schema() -> dict[str, Any]:
    """Return the schema of the modelled cycles of a run."""
    needed = {
        "mcu": {**_TEXT, "description": "The microcontroller; the name of the target if it is one of the project"},
        "clock": {"type": "integer", "minimum": 1, "description": "Of its core, in Hz"},
        "error": {**_INDEX, "description": "Stated error of the model, in per cent"},
        "cycles": _INDEX,
        "latency": {**_INDEX, "description": "In nanoseconds, rounded up"},
        "by_kind": {"$ref": "#/$defs/cycles"},
        "rest": {"$ref": "#/$defs/cycles"},
    }
    return object_schema(needed, about="Modelled cycles of the run, and of its rest outside of operators")


def cycles_schema() -> dict[str, Any]:
    """Return the schema of cycles by kind."""
    kinds = {key: {**_INDEX, "description": name.capitalize()} for key, name in CYCLE_KINDS.items()}
    return object_schema(kinds, about="Modelled cycles by what the core does in them")


def _measured() -> dict[str, Any]:
    needed = {
        "device": {**_TEXT, "description": "How it was reached, such as gdb localhost:3333"},
        "counter": {"enum": [*CYCLE_COUNTERS]},
        "emulated": {"type": "boolean", "description": "Whether it is an emulator, whose time the counter shows"},
        "runs": {"type": "integer", "minimum": 1},
        "overhead": {**_INDEX, "description": "Cycles of one call of the hook, subtracted from each operator"},
        "cycles": {"$ref": "#/$defs/spread"},
    }
    return object_schema(needed, about="Cycles of runs on the device of the target, with no interrupts enabled")


def _spread() -> dict[str, Any]:
    return object_schema(dict.fromkeys(("min", "median", "max"), _INDEX), about="Cycles of several runs on a device")


def _node() -> dict[str, Any]:
    value = {"type": ["number", "string", "boolean", "array"]}
    about = "Such as kernel, stride and padding; lists have height and width, or before and after"
    scale, zero = ({"type": "array", "items": {"type": of}, "minItems": 2} for of in ("number", "integer"))
    tensor = object_schema(
        {"role": {"enum": ["input", "weights", "bias", "output"]}, "name": _TEXT, "dtype": _TEXT},
        {
            "scale": {**scale, "description": "The least and the greatest of all channels"},
            "zero_point": {**zero, "description": "The least and the greatest of all channels"},
            "channels": {**_INDEX, "description": "Number of scales"},
        },
    )
    needed = {
        "name": _TEXT,
        "operator": _TEXT,
        "attributes": {"type": "object", "additionalProperties": value, "description": about},
        "tensors": {"type": "array", "items": tensor},
    }
    return object_schema(needed, about="An operator of the model's file; a chain has several")


def _verify() -> dict[str, Any]:
    states = {
        "enum": ["passed", "failed", "outdated", "never"],
        "description": "outdated: model, vectors or target changed since; never: not run yet",
    }
    optional = {"board": _TEXT, "cases": _INDEX, "problem": {**_TEXT, "description": "The first one"}}
    module = {**_TEXT, "description": "Empty if the archive has one module"}
    return object_schema({"module": module, "state": states}, optional, "The last run of the vectors of a model")


def _budget() -> dict[str, Any]:
    limit = {"type": ["integer", "null"], "minimum": 0}
    limits = {field.name: limit for field in fields(Budget)}
    later = {"cycles": limits.pop("cycles"), "latency": {**limits.pop("latency"), "description": "In nanoseconds"}}
    return object_schema(limits, later, "Upper limits; null is no limit")
