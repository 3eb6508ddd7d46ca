"""SOFTMAX and LOG_SOFTMAX."""

from __future__ import annotations

from mlfbuild.compilers.native.literals import floating
from mlfbuild.compilers.native.ops.call import Call, Constant, Parameter, unsupported
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.graph import DType, Graph, Node
from mlfbuild.graph.ops import LogSoftmax, Softmax
from mlfbuild.graph.quantize import softmax_rescale

_LARGEST_DEPTH = 8191
"""Exponentials of at most 1 are summed as Q12.19 in 32 bits."""
_IN_PLACE = (0,)
"""Elements are written in order, each after its own last read."""


def lower(graph: Graph, node: Node, _settings: Settings) -> Call:
    """Return the call of ``mlf_softmax_int8`` or ``mlf_softmax_float``, or ``mlf_log_softmax_float``."""
    operator = node.operator
    assert isinstance(operator, Softmax | LogSoftmax)
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    assert source is not None
    depth = source.shape[-1]
    rows = source.elements // depth
    if isinstance(operator, LogSoftmax):
        return Call("log_softmax", "softmax.h", (
            Parameter("const float *", "input", source.name),
            Parameter("float *", "output", output.name),
        ), (f"mlf_log_softmax_float({rows}, {depth}, input, output);",), _IN_PLACE)  # fmt: skip
    if source.dtype is DType.FLOAT32:
        return Call("softmax", "softmax.h", (
            Parameter("const float *", "input", source.name),
            Parameter("float *", "output", output.name),
        ), (f"mlf_softmax_float({rows}, {depth}, {floating(operator.beta)}, input, output);",), _IN_PLACE)  # fmt: skip
    if depth > _LARGEST_DEPTH:
        raise unsupported(node, f"int8 softmax is supported over at most {_LARGEST_DEPTH} elements, here {depth}")
    rescale = softmax_rescale(source, operator.beta)
    quantization = Constant.struct(
        "quantization",
        "mlf_softmax_quantization",
        {"rescale": rescale.rescale, "least_difference": rescale.least_difference},
    )
    return Call("softmax", "softmax.h", (
        Parameter("const struct mlf_softmax_quantization *", "quantization", quantization),
        Parameter("const int8_t *", "input", source.name),
        Parameter("int8_t *", "output", output.name),
    ), (f"mlf_softmax_int8({rows}, {depth}, quantization, input, output);",), _IN_PLACE)  # fmt: skip
