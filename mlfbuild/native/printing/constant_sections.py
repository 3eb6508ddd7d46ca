"""Assign constants to the classes that a project can place in separate sections."""

from __future__ import annotations

from mlfbuild.native.lowering import Constant

WEIGHTS = frozenset({"filter", "packed", "weights", "recurrent", "feature", "time", "constant"})
BIASES = frozenset(
    {"bias", "biases", "feature_bias", "channels", "offsets", "sums", "weight_scales", "weight_sums", "block_scales",
     "real_sums", "rescalings"}
)  # fmt: skip
TABLES = frozenset({"table", "reciprocals", "exponentials", "order", "padding", "rows", "columns", "initial", "roots"})
"""Names of constants by class; the class of other constants follows from their type."""


def class_of(constant: Constant) -> str:
    """Return ``weights``, ``biases`` or ``tables`` for a constant that has the name that its operator uses.

    Structs belong to ``biases``, because they contain rescalings, some with a bias; elements of tables are excepted.
    The number that a chain of operators appends to the names of its operators does not count (``filter0``), nor does
    ``_packed`` (``recurrent_packed``).
    """
    name = constant.name.rstrip("0123456789").removesuffix("_packed")
    if name in WEIGHTS:
        return "weights"
    return "biases" if name in BIASES or (constant.c_type.startswith("struct ") and name not in TABLES) else "tables"
