"""ADD, SUB and SQUARED_DIFFERENCE."""

from __future__ import annotations

from functools import partial

from mlfbuild.native.graph import DType, Graph, Node, Tensor, squared_difference_rescales
from mlfbuild.native.graph.ops import Addition
from mlfbuild.native.lowering.arithmetic.add_linear import lower_add_linear
from mlfbuild.native.lowering.arithmetic.add_mve import lower_add_mve
from mlfbuild.native.lowering.call import Candidate, KernelCall
from mlfbuild.native.lowering.common.binary import Fields, lower_binary, three_fields
from mlfbuild.native.lowering.common.candidates import choose, obstacle
from mlfbuild.native.settings import CodegenSettings

_STRUCT = "mlf_add_quantization"


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the fastest kernel that the CPU and the node permit."""
    operator = node.operator
    if not isinstance(operator, Addition):
        return lower_binary(graph, node, _STRUCT, _squared_difference)
    # The others have kernels for int8 only; int16 and plain integers are computed by the portable one.
    portable = partial(lower_binary, graph, node, _STRUCT, lambda *tensors: three_fields(operator.numbers(*tensors)))
    if graph.outputs_of(node)[0].dtype is not DType.INT8:
        return portable()
    # The linear function is portable C, and tried on every core before the general kernel.
    return choose((
        Candidate("add_mve", partial(lower_add_mve, graph, node, operator), obstacle(settings, "mve")),
        Candidate("add_linear", partial(lower_add_linear, graph, node, operator)),
        Candidate("add", portable),
    ))  # fmt: skip


def _squared_difference(first: Tensor, second: Tensor, output: Tensor) -> Fields:
    return three_fields(squared_difference_rescales(first, second, output))
