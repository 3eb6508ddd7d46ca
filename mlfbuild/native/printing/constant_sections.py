"""Assign constants to the classes that a project can place in separate sections.

A microcontroller may have several flashes, and the same constant costs more or less in each. Weights are nearly all of
the bytes and are read in order, so a slow external flash suffices. Tables are few bytes that are read at random: each
access to external flash would wait for the whole latency. Biases and multipliers are few bytes that are read in order.
``placement: {params: {weights: ..., tables: ...}}`` therefore distinguishes three classes.

The class follows from the name that a constant has in the call of its kernel (its role), not from its size or tensor:

1. A name in ``WEIGHTS`` or ``BIASES`` decides. A chain of operators appends the operator's number, which is ignored
   (``filter0``), as is ``_packed`` (``recurrent_packed``).
2. A struct belongs to ``biases``, because it contains rescalings, some with a bias, except for the elements of tables.
3. All others are ``tables``.

For example, in an int8 convolution on the portable kernel: ``filter`` is weights, ``channels`` (bias and multiplier of
each channel) and the struct ``quantization`` are biases. On the Cortex-M4 the kernel reads one array, ``packed``, with
the biases between the weights; it is weights as a whole, because an array cannot be in two sections. The ``padding``
that it reads beside the image is a table.

Constants are shared only within a class: two equal arrays of different classes may be placed in different memories
(``program``).

A new kernel whose weights have another name must add it here; otherwise they are placed with the tables, which works,
but is slow in projects that place them. This module does not know sections: ``source`` prints the macro of a class only
if the project has a section for it.
"""

from __future__ import annotations

from mlfbuild.native.lowering import Constant

WEIGHTS = frozenset({"filter", "packed", "weights", "recurrent", "feature", "time", "constant"})
BIASES = frozenset(
    {"bias", "biases", "feature_bias", "channels", "offsets", "sums", "weight_scales", "weight_sums", "block_scales",
     "real_sums", "rescalings", "base", "values", "reals"}
)  # fmt: skip
TABLES = frozenset(
    {"table", "reciprocals", "exponentials", "order", "padding", "rows", "columns", "initial", "roots", "features",
     "stream"}
)  # fmt: skip
"""Names of constants by class; the class of other constants follows from their type."""


def class_of(constant: Constant) -> str:
    """Return ``weights``, ``biases`` or ``tables`` for a constant that has the name that its operator uses.

    Structs belong to ``biases``, because they contain rescalings, some with a bias; elements of tables are excepted.
    The number that a chain of operators appends to the names of its operators does not count (``filter0``), nor does
    ``_packed`` (``recurrent_packed``).
    """
    # ``filter0`` is the filter of the first operator of a chain.
    name = constant.name.rstrip("0123456789").removesuffix("_packed")
    if name in WEIGHTS:
        return "weights"
    return "biases" if name in BIASES or (constant.c_type.startswith("struct ") and name not in TABLES) else "tables"
