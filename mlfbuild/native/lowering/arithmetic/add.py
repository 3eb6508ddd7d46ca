"""ADD, SUB and SQUARED_DIFFERENCE."""

from __future__ import annotations

from functools import partial

from mlfbuild.native.graph import DType, Graph, Node
from mlfbuild.native.graph.ops import Addition
from mlfbuild.native.lowering.arithmetic.add_linear import lower_add_linear
from mlfbuild.native.lowering.arithmetic.add_mve import lower_add_mve
from mlfbuild.native.lowering.call import Candidate, KernelCall
from mlfbuild.native.lowering.common import binary
from mlfbuild.native.lowering.common.candidates import choose, obstacle
from mlfbuild.native.settings import CodegenSettings


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the fastest kernel that the CPU and the node permit."""
    operator = node.operator
    # The others have kernels for int8 only; int16 and plain integers are computed by the portable one.
    if not isinstance(operator, Addition) or graph.outputs_of(node)[0].dtype is not DType.INT8:
        return binary.lower(graph, node, settings)
    # The linear function is portable C, and tried on every core before the general kernel.
    return choose((
        Candidate("add_mve", partial(lower_add_mve, graph, node, operator), obstacle(settings, "mve")),
        Candidate("add_linear", partial(lower_add_linear, graph, node, operator)),
        Candidate("add", partial(binary.lower, graph, node, settings)),
    ))  # fmt: skip
