"""SVDF: zero points are folded into biases, and the state is updated in place."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph import C_TYPES, Array, DType, Graph, Node, Rescale
from mlfbuild.native.graph.ops import Svdf, SvdfTensors, svdf_tensors
from mlfbuild.native.lowering.call import KernelCall, Parameter, folded_bias, struct_lines
from mlfbuild.native.lowering.common.activation import float_range_line, suffix, zero_point
from mlfbuild.native.lowering.common.parameters import array, float_bias, reads, struct, writes
from mlfbuild.native.settings import CodegenSettings

_STATE = (4, 1)
"""(input, output) positions of the state."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_svdf_<type of the state>``."""
    operator = node.operator
    assert isinstance(operator, Svdf)
    tensors = svdf_tensors(graph.inputs_of(node), graph.outputs_of(node))
    constants = _float(tensors) if tensors.source.dtype is DType.FLOAT32 else _quantized(tensors, operator)
    parameters = (
        *constants,
        reads("input", tensors.source),
        writes("state", tensors.after),
        writes("output", tensors.output),
    )
    filters, memory = tensors.time.shape
    fields = {
        "batches": tensors.source.shape[0],
        "inputs": tensors.source.shape[1],
        "units": filters // operator.rank,
        "rank": operator.rank,
        "memory": memory,
    }
    shape = struct_lines("mlf_svdf_shape", "shape", fields)
    arguments = "svdf, input, feature, feature_bias, time, bias, state, output"
    lines = list(shape)
    if tensors.source.dtype is DType.FLOAT32:
        arguments = "range, input, feature, time, bias, state, output"
        lines.append(float_range_line(operator.activation))
    lines.append(f"mlf_svdf_{suffix(tensors.after.dtype)}(&shape, {arguments});")
    return KernelCall("svdf", "svdf.h", parameters, tuple(lines), updates=(_STATE,))


def _float(tensors: SvdfTensors) -> tuple[Parameter, ...]:
    bias = None if tensors.bias is None else _data(tensors.bias.data)
    return (
        array("feature", "float", _data(tensors.feature.data)),
        array("time", "float", _data(tensors.time.data)),
        float_bias(bias, tensors.output.shape[1]),
    )


def _quantized(tensors: SvdfTensors, operator: Svdf) -> tuple[Parameter, ...]:
    feature, time = _data(tensors.feature.data), _data(tensors.time.data)
    first, second = operator.rescales(tensors)
    factors: dict[str, int | Rescale] = {
        "feature": first,
        "output": second,
        "state_zero_point": zero_point(tensors.before),
        "output_zero_point": zero_point(tensors.output),
    }
    bias = None if tensors.bias is None else _data(tensors.bias.data)
    by_unit = time.reshape(-1, operator.rank * time.shape[1])
    return (
        struct("svdf", "mlf_svdf", factors),
        array("feature", "int8_t", feature),
        array("feature_bias", "int32_t", folded_bias(None, feature, 0, zero_point(tensors.source))),
        array("time", C_TYPES[tensors.time.dtype], time),
        array("bias", "int32_t", folded_bias(bias, by_unit, 0, zero_point(tensors.before))),
    )  # fmt: skip


def _data(data: Array | None) -> Array:
    return np.ascontiguousarray(data)
