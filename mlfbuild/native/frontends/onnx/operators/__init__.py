"""Each supported operator of ONNX: how a node becomes nodes of the graph.

A file holds a family, or several whose operators are short rows, and has a table ``OPERATORS`` by ONNX's
names. It is imported when a model has one of its operators.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlfbuild.native.frontends.onnx.op_context import Converter

__all__ = ["OPERATORS", "converter"]

OPERATORS: Mapping[str, str] = json.loads(Path(__file__).with_name("operators.json").read_text(encoding="utf-8"))
"""All operators: name -> stem of the file. ``make generate`` writes the file."""


def converter(name: str) -> Converter | None:
    """Return the converter of the operator ``name``; ``None`` if there is none."""
    if name not in OPERATORS:
        return None
    table: Mapping[str, Converter] = importlib.import_module(f"{__name__}.{OPERATORS[name]}").OPERATORS
    return table[name]
