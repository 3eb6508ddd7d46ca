"""Whose kernel computes a node: that of CMSIS-NN where the project asks for it and it computes the same, or our own."""

from __future__ import annotations

from mlfbuild.compilers.native.cmsis_nn import lower_cmsis_nn
from mlfbuild.compilers.native.ops import lower as lower_to_ours
from mlfbuild.compilers.native.ops.call import Call
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import Graph, Node


def lower(graph: Graph, node: Node, settings: Settings) -> Call:
    """Return the call that computes ``node``; raises ``UnsupportedModelError`` where no kernel can."""
    call = lower_cmsis_nn(graph, node, settings) if settings.kernels == "cmsis-nn" else None
    return call or lower_to_ours(graph, node, settings)
