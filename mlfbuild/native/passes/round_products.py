"""The numbers of TensorFlow Lite Micro until 2026-10-12: it rounded the product of two scales to float32."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.graph import Graph, Node, OperatorError
from mlfbuild.native.graph.ops import BatchMatmul, FullyConnected, Svdf, UnidirectionalSequenceLstm
from mlfbuild.native.passes.rewrite import rebuild


def rounded_products(graph: Graph) -> Graph:
    """Return ``graph`` with the older multipliers of operators that sum products of two scales.

    Raises ``UnsupportedModelError`` if a product of scales is not a float32.

    For firmware that must match an older TensorFlow Lite Micro bit for bit (the option ``tflm``).
    """
    # The attribute is checked again by the constructor of the graph, which is where a product may not fit.
    try:
        return rebuild(graph, [_rounded(node) for node in graph.nodes])
    except OperatorError as error:
        reason = f"with the product of its scales rounded to float32, {error.reason}"
        place, hint = f"{graph.name}: {error.where}", "remove the option tflm"
        raise UnsupportedModelError("product-of-scales", place=place, reason=reason, hint=hint) from None


def _rounded(node: Node) -> Node:
    # Operators whose multiplier was a float32 product of two scales in older versions; convolutions are not among them.
    if isinstance(node.operator, BatchMatmul | FullyConnected | Svdf | UnidirectionalSequenceLstm):
        return replace(node, operator=replace(node.operator, rounded_product=True))
    return node
