"""Find tensors that are contiguous parts of others, for CONCATENATION, PACK, SPLIT, UNPACK and SLICE.

A part along the outermost dimension larger than 1 is contiguous in memory. Such an operator copies nothing: its inputs
are written directly into its output, or its outputs are read directly from its input. A part along an inner dimension
has gaps, so that the operator remains a copy.

The rule is not derived from shapes and axes for each operator. ``Movement.moves`` describes operators as assignments
between views of numpy arrays; here the arrays are allocated but never touched, and numpy tells whether a view is
contiguous and where it begins. So one function serves all these operators, whatever their axes and steps are.

The rules:

1. Every part must be contiguous, or none is a view: a node is either left out or executed, and a kernel that writes
   only some of the parts does not exist.
2. A view of the whole tensor is not returned: then the operator has one part, and a RESHAPE is the way to express that.
3. The order is that of the assignments, so that view ``i`` is input or output ``i`` of the node.
4. Offsets are in bytes. They need not be multiples of 16; callers check that.

For example, ``d[2, 64] = CONCATENATION(b[1, 64], c[1, 64])`` in float32 makes the views (b, d, 0) and (c, d, 256). With
the axis 1, and ``d[1, 128]``, they are the same, because the dimension before it is 1. With ``b[2, 64]``, ``c[2, 64]``
and ``d[2, 128]`` there is none: the second row of ``b`` follows the first row of ``c``. Of ``x[4, 64]``::

    SLICE of the rows 1 and 2         (y, x, 256)
    SLICE of the rows 0 and 2         none: there is a gap between them
    SPLIT into 1 and 3 rows           (y, x, 0), (z, x, 256)

Whether views can be used is decided by ``storages.make_view``: all tensors must be in the arena, in different storages,
at multiples of 16 bytes, and the storage of a part may not be longer than the part. For example, the rows 1 and 2 of
``x[4, 3]`` begin at byte 12, so that they are copied. Nothing here looks at lifetimes: a view keeps the whole tensor in
use, which the plan takes into account by also trying without views.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.ops import Joining, Parting, Slice


@dataclass(frozen=True)
class View:
    """The tensor ``part`` has the bytes of the tensor ``whole`` that begin at ``offset``."""

    part: str
    whole: str
    offset: int


def views_of(graph: Graph, node: Node) -> tuple[View, ...]:
    """Return the views that ``node`` makes; empty if it must copy elements or computes.

    Each view is a contiguous part; if one part is not, there are no views. Views are in the order of the node's inputs
    (of operators that join) or outputs (of operators that split).
    """
    operator = node.operator
    # Without optional inputs only, because positions of views and of moves must agree.
    if not isinstance(operator, Joining | Parting | Slice) or None in node.inputs:
        return ()
    # These arrays are never read or written: only addresses and strides of their views are used.
    sources, outputs = (
        [np.empty(graph.tensor(str(name)).shape, graph.tensor(str(name)).dtype.numpy) for name in names]
        for names in (node.inputs, node.outputs)
    )
    joining = isinstance(operator, Joining)
    # CONCATENATION and PACK join into their output; SPLIT, UNPACK and SLICE cut their input.
    whole = (outputs if joining else sources)[0]
    views = []
    for at, (source, target) in enumerate(operator.moves(sources, outputs)):
        piece = target if joining else source
        if not piece.flags.c_contiguous or piece.size == whole.size:
            return ()
        part, name = (node.inputs[at], node.outputs[0]) if joining else (node.outputs[at], node.inputs[0])
        views.append(View(str(part), str(name), piece.ctypes.data - whole.ctypes.data))
    return tuple(views)
