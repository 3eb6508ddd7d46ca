"""The operators of model files by TFLite's names."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlfbuild.native.graph.operator import Operator

OPERATORS: Mapping[str, str] = json.loads(Path(__file__).with_name("operators.json").read_text(encoding="utf-8"))
"""Name -> ``module:class``; a module below ``graph/ops`` is a family. ``make generate`` writes the file."""


def operator_class(name: str) -> type[Operator] | None:
    """Return the operator with TFLite's ``name``, such as ``CONV_2D``; ``None`` if there is none.

    The module of its family is imported at the first call. Names of operators that only compilers make, such as
    ``FUSED``, are not in the table.
    """
    if name not in OPERATORS:
        return None
    module, kind = OPERATORS[name].split(":")
    found: type[Operator] = getattr(importlib.import_module(f"mlfbuild.native.graph.ops.{module}"), kind)
    return found
