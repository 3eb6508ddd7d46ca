"""Fuse a PAD into the padding of the convolutions after it."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.native.graph import Graph, Node
from mlfbuild.native.graph.bases import resting
from mlfbuild.native.graph.ops import Conv2D, DepthwiseConv2D, Pad
from mlfbuild.native.passes.rewrite import rebuild


def fuse_padding(graph: Graph) -> Graph:
    """Let convolutions read the input of a PAD of rows and columns, with their padding increased by it.

    Convolutions pad with the zero point of their input, and only a PAD of that value is fused. If an operator other
    than a convolution reads the PAD, nothing changes. ``remove_dead_nodes`` removes PADs that are no longer read.

    ``value`` of the PAD is compared in stored numbers: the zero point of an integer tensor, 0 of float32.
    """
    fused: dict[Node, Node] = {}
    for pad in graph.nodes:
        # The padded image must exist if the caller reads it.
        if isinstance(pad.operator, Pad) and pad.outputs[0] not in graph.results:
            users = graph.readers(pad.outputs[0])
            wider = [_fuse(graph, pad, pad.operator, user) for user in users]
            # All readers or none: if one still reads the padded image, it must be made, and reading the other one gains
            # nothing.
            if None not in wider:
                fused.update((user, new) for user, new in zip(users, wider, strict=True) if new is not None)
    return rebuild(graph, [fused.get(node, node) for node in graph.nodes])


def _fuse(graph: Graph, pad: Node, operator: Pad, user: Node) -> Node | None:
    """Return ``user`` with the input and padding of ``pad``, or ``None`` if they cannot be fused."""
    source, padded = graph.inputs_of(pad)[0], graph.outputs_of(pad)[0]
    convolution = user.operator
    # Pads of other ranks cannot precede an NHWC convolution; PADV2 is a subclass of PAD, so its value is checked below.
    if not isinstance(convolution, Conv2D | DepthwiseConv2D) or len(operator.paddings) != 4:
        return None
    batch, rows, columns, channels = operator.paddings
    if operator.value(padded) != resting(padded):
        return None
    # A window pads rows and columns only. Different scales would make the PAD a rescaling.
    if any(batch) or any(channels) or source.quantization != padded.quantization:
        return None
    # Both are zeros around the same image, so that the numbers add up: the convolution's lie outside of the PAD's.
    (top, bottom), (left, right) = convolution.padding
    padding = ((top + rows[0], bottom + rows[1]), (left + columns[0], right + columns[1]))
    # The check of the operator refuses a padding that is wider than the filter.
    new = replace(user, operator=replace(convolution, padding=padding), inputs=(pad.inputs[0], *user.inputs[1:]))
    inputs = graph.inputs_of(user).with_operand(0, source)
    return new if new.operator.check(inputs, graph.outputs_of(user)) is None else None
