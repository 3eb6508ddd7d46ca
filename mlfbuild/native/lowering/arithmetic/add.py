"""ADD, SUB and SQUARED_DIFFERENCE."""

from __future__ import annotations

from functools import partial

from mlfbuild.native.graph import DType, Graph, Node, Rescale
from mlfbuild.native.graph.bases import binary_tensors
from mlfbuild.native.graph.ops import Add, Addition
from mlfbuild.native.lowering.arithmetic.add_linear import addition_call, lower_add_either, lower_add_linear
from mlfbuild.native.lowering.arithmetic.add_mve import lower_add_mve
from mlfbuild.native.lowering.call import Candidate, KernelCall
from mlfbuild.native.lowering.common import binary
from mlfbuild.native.lowering.common.candidates import choose, obstacle
from mlfbuild.native.lowering.trained import by_values
from mlfbuild.native.settings import CodegenSettings

_HALF = Rescale(1 << 30, 0)
"""The factor of the input with the greater scale."""


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of the fastest kernel that the CPU and the node permit."""
    operator, dtype = node.operator, graph.outputs_of(node)[0].dtype
    if isinstance(operator, Add) and dtype is DType.INT16:
        scaled = None if settings.replaceable else _scaled_int16(graph, node, operator)
        return scaled or binary.lower(graph, node, settings)
    # The others have kernels for int8 only; int16 and plain integers are computed by the portable one.
    if not isinstance(operator, Addition) or dtype is not DType.INT8:
        return binary.lower(graph, node, settings)
    chosen = by_values(settings)
    either = []
    if settings.replaceable and isinstance(operator, Add):
        either = [Candidate("add_either", partial(lower_add_either, graph, node, operator))]
    # The linear function is portable C, and tried on every core before the general kernel.
    mve = obstacle(settings, "mve")
    return choose((
        Candidate("add_linear_mve", partial(lower_add_linear, graph, node, operator, helium=True), mve or chosen),
        Candidate("add_mve", partial(lower_add_mve, graph, node, operator), mve or chosen),
        *either,
        Candidate("add_linear", partial(lower_add_linear, graph, node, operator), chosen),
        Candidate("add", partial(binary.lower, graph, node, settings)),
    ))  # fmt: skip


def _scaled_int16(graph: Graph, node: Node, operator: Add) -> KernelCall | None:
    """Return the call of ``mlf_add_scaled_int16``; ``None`` if its conditions are not met."""
    first, second, output = binary_tensors(graph.inputs_of(node), graph.outputs_of(node))
    rescales = operator.numbers(first, second, output)
    own, other = rescales.inputs
    # The sum of the inputs has no order.
    if own != _HALF:
        first, second, own, other = second, first, other, own
    # With the same scale, the second one is doubled and then halved.
    other, shift = (Rescale(_HALF.multiplier, -1), 16) if other == _HALF else (other, 15)
    if first.shape != second.shape or own != _HALF or max(other.shift, rescales.output.shift) >= 0:
        return None
    factors: dict[str, int | Rescale] = {"first": own, "second": other, "output": rescales.output}
    numbers = binary.binary_quantization("mlf_add_quantization", factors, operator, (first, second, output))
    return addition_call("mlf_add_scaled_int16", "add.h", numbers, f"quantization, {shift}", (first, second, output))
