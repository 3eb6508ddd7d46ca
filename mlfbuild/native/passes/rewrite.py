"""Functions that passes share: rebuild a graph, rename tensors, select channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph import Graph, Node, Quantization, Tensor


def rebuild(graph: Graph, nodes: Sequence[Node], extra: Sequence[Tensor] = ()) -> Graph:
    """Return ``graph`` with other ``nodes`` and the tensors that they use; ``extra`` tensors replace those by name.

    The nodes must be in an order of execution. Inputs, outputs and states stay, even if no node uses them now; other
    tensors without a user are dropped. Raises ``GraphError`` if the result is not a valid graph.
    """
    used = {name for node in nodes for name in (*node.inputs, *node.outputs) if name is not None}
    # Inputs that no node reads and outputs that are constant stay in the interface.
    used.update(graph.sources, graph.results)
    tensors = dict(graph.tensors)
    tensors.update((tensor.name, tensor) for tensor in extra)
    kept = [tensor for name, tensor in tensors.items() if name in used]
    return Graph(graph.name, kept, nodes, graph.inputs, graph.outputs, graph.states, graph.notes)


def rename(node: Node, names: Mapping[str, str]) -> Node:
    """Return ``node`` with the tensors it reads and writes renamed by ``names``.

    ``names`` maps old to new names; tensors without an entry keep theirs. Absent optional inputs stay ``None``.
    """
    return replace(
        node,
        inputs=tuple(None if name is None else names.get(name, name) for name in node.inputs),
        outputs=tuple(names.get(name, name) for name in node.outputs),
    )


def picked(affine: Quantization | None, part: npt.NDArray[np.bool_] | slice, axis: int) -> Quantization | None:
    """Return the quantisation of what ``part`` selects along dimension ``axis``."""
    # A single scale applies to every channel; scales along another dimension are not affected.
    if affine is None or not affine.per_channel or affine.axis != axis:
        return affine
    scales, zero_points = np.array(affine.scales)[part], np.array(affine.zero_points)[part]
    return Quantization(tuple(scales.tolist()), tuple(zero_points.tolist()), affine.axis)
