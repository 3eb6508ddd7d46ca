"""The classes of constants that a project may place in sections of their own."""

from __future__ import annotations

from mlfbuild.compilers.native.lowering import Constant

WEIGHTS = frozenset({"filter", "packed", "weights", "recurrent", "feature", "time", "constant"})
BIASES = frozenset({"bias", "biases", "feature_bias", "channels"})
TABLES = frozenset({"table", "reciprocals", "exponentials", "order", "padding", "rows", "columns", "initial"})
"""What constants are to operators, where their type does not tell it."""


def class_of(constant: Constant) -> str:
    """Return ``weights``, ``biases`` or ``tables`` for a constant that has its operator's word as a name.

    Structs hold the numbers of a rescaling, some with a bias, but for those that a table has as elements.
    """
    if constant.name in WEIGHTS:
        return "weights"
    return "biases" if constant.name in BIASES or _is_struct(constant) else "tables"


def _is_struct(constant: Constant) -> bool:
    return constant.c_type.startswith("struct ") and constant.name not in TABLES
