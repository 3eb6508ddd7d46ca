"""SOFTMAX and LOG_SOFTMAX."""

from __future__ import annotations

from mlfbuild.library.cgen import floating
from mlfbuild.native.graph import (
    DType,
    Graph,
    Node,
    Rescale,
    Tensor,
    log_softmax_rescale,
    softmax_rescale,
    softmax_table_rescale,
)
from mlfbuild.native.graph.ops import EXPONENTIALS, RECIPROCALS, LogSoftmax, Softmax
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, unsupported
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.lowering.common.parameters import array, constant, input_and_output, struct
from mlfbuild.native.settings import CodegenSettings

_LARGEST_DEPTH = {Softmax: {DType.INT8: 8191, DType.INT16: 1 << 16}, LogSoftmax: {DType.INT8: 4095}}
"""The most elements whose exponentials, at most 1 each, add up without overflow.

int8 SOFTMAX adds Q12.19 numbers in 32 bits without a sign, LOG_SOFTMAX with a sign, and int16 SOFTMAX numbers with 15
fraction bits.
"""
"""The input may be overwritten: elements are written in order, each after it was last read."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_softmax_<type>`` or ``mlf_log_softmax_<type>``."""
    operator = node.operator
    assert isinstance(operator, Softmax | LogSoftmax)
    (source,), (output,) = graph.inputs_of(node), graph.outputs_of(node)
    depth, word = source.shape[-1], operator.name.lower()
    most = _LARGEST_DEPTH[type(operator)].get(source.dtype, depth)
    if depth > most:
        kind = f"{source.dtype.value} {word.replace('_', ' ')}"
        raise unsupported(node, f"{kind} has at most {most} elements, this one {depth}")
    rows, kernel = str(source.elements // depth), f"mlf_{word}_{suffix(source.dtype)}"
    if source.dtype is not output.dtype:
        kernel += f"_{suffix(output.dtype)}"
    constants = _constants(operator, source)
    names = [parameter.name for parameter in constants]
    if source.dtype is DType.FLOAT32 and isinstance(operator, Softmax):
        # The scale of integers includes beta already.
        names.append(floating(operator.beta))
    return KernelCall(word, "softmax.h", (
        *constants,
        *input_and_output(source, output),
    ), (f"{kernel}({', '.join((rows, str(depth), *names, 'input', 'output'))});",),
        # Types of other sizes: an output element could overwrite inputs that are not read yet.
        (0,) if source.dtype is output.dtype else ())  # fmt: skip


def _constants(operator: Softmax | LogSoftmax, source: Tensor) -> tuple[Parameter, ...]:
    """Return the constants of an integer kernel, in its order."""
    if source.dtype is DType.FLOAT32:
        return ()
    if source.dtype is DType.INT16:
        assert isinstance(operator, Softmax)
        return (
            _rescale("rescale", softmax_table_rescale(source, operator.beta)),
            array("exponentials", "int16_t", EXPONENTIALS),
            array("reciprocals", "int16_t", RECIPROCALS),
        )
    scaling = softmax_rescale(source, operator.beta if isinstance(operator, Softmax) else 1)
    fields: dict[str, int | Rescale] = {"rescale": scaling.rescale, "least_difference": scaling.least_difference}
    quantization = struct("quantization", "mlf_softmax_quantization", fields)
    if isinstance(operator, Softmax):
        return (quantization,)
    return quantization, _rescale("back", log_softmax_rescale(scaling.rescale))


def _rescale(name: str, rescale: Rescale) -> Parameter:
    return constant(Constant.rescale(name, rescale))
