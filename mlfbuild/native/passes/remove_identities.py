"""Remove nodes without effect: QUANTIZE to the same scale, RESHAPE to the same shape, PAD by nothing."""

from __future__ import annotations

from mlfbuild.native.graph import Graph, Node, Tensor
from mlfbuild.native.graph.ops import Pad, Quantize, Reshape
from mlfbuild.native.passes.rewrite import rebuild, rename


def remove_identities(graph: Graph) -> Graph:
    """Remove nodes whose output equals their input, bit for bit and in shape.

    A node that writes an output of the graph is removed only if its input can take the output's name: the input must be
    written by another node and must not be an output.
    """
    names: dict[str, str] = {}
    removed: set[str] = set()
    written = {name for node in graph.nodes for name in node.outputs}
    for node in graph.nodes:
        if not _is_identity(node, *graph.inputs_of(node).present, *graph.outputs_of(node)):
            continue
        source, output = _resolve(names, str(node.inputs[0])), node.outputs[0]
        # Readers get the source instead; the output disappears with its node.
        if output not in graph.results:
            names[output] = source
        # The node that writes the input writes the output instead. An input of the network is not written by a node.
        # Renaming the source must not rename an output: an output has a name that the caller knows.
        elif source in written and source not in graph.results:
            names[source] = output
        else:
            continue
        removed.add(output)
    # Chains of identities leave names that point to removed tensors; follow each one to its end.
    final = {name: _resolve(names, name) for name in names}
    return rebuild(graph, [rename(node, final) for node in graph.nodes if node.outputs[0] not in removed])


def _resolve(names: dict[str, str], name: str) -> str:
    while name in names:
        name = names[name]
    return name


def _is_identity(node: Node, *tensors: Tensor) -> bool:
    source, output = tensors[0], tensors[-1]
    return (
        isinstance(node.operator, Quantize | Reshape | Pad)
        and source.shape == output.shape
        and source.dtype is output.dtype
        # Equal shapes and quantisations: a QUANTIZE rescales by exactly 1, whose fixed-point product rounds nothing.
        and source.quantization == output.quantization
    )
