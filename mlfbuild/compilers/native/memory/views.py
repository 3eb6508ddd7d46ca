"""Tensors that are pieces of others: what CONCATENATION, PACK, SPLIT, UNPACK and SLICE make, where pieces are whole.

Along the outermost dimension that is more than 1, a piece of a tensor is a run of its bytes. Such operators need not
copy anything: their inputs are written where they belong, or their outputs are read where they lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mlfbuild.graph import Array, Graph, Node
from mlfbuild.graph.ops import Joining, Parting, Slice


@dataclass(frozen=True)
class View:
    """The tensor ``part`` is the bytes of the tensor ``whole`` from ``offset`` on."""

    part: str
    whole: str
    offset: int


def views_of(graph: Graph, node: Node) -> tuple[View, ...]:
    """Return what ``node`` makes views of; nothing where it copies elements or computes."""
    operator = node.operator
    if not isinstance(operator, Joining | Parting | Slice) or None in node.inputs:
        return ()
    # Never read or written: only addresses and strides of views matter.
    sources, outputs = (
        [np.empty(graph.tensor(str(name)).shape, graph.tensor(str(name)).dtype.numpy) for name in names]
        for names in (node.inputs, node.outputs)
    )
    joining = isinstance(operator, Joining)
    whole = (outputs if joining else sources)[0]
    views = []
    for at, (source, target) in enumerate(operator.moves(sources, outputs)):
        piece = target if joining else source
        if not piece.flags.c_contiguous or piece.size == whole.size:
            return ()
        part, name = (node.inputs[at], node.outputs[0]) if joining else (node.outputs[at], node.inputs[0])
        views.append(View(str(part), str(name), _address(piece) - _address(whole)))
    return tuple(views)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])
