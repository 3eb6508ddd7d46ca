"""SVDF: zero points are folded into biases, and the state is updated in place."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph import C_TYPES, Array, DType, Graph, Node, Rescale
from mlfbuild.native.graph.ops import Svdf, SvdfTensors, svdf_tensors
from mlfbuild.native.lowering.call import Constant, KernelCall, Parameter, float_bias, folded_bias, struct_lines
from mlfbuild.native.lowering.common.activation import float_range_line, suffix, zero_point
from mlfbuild.native.settings import CodegenSettings

_STATE = (4, 1)
"""(input, output) positions of the state."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_svdf_<type of the state>``."""
    operator = node.operator
    assert isinstance(operator, Svdf)
    tensors = svdf_tensors(graph.inputs_of(node), graph.outputs_of(node))
    constants = _float(tensors) if tensors.source.dtype is DType.FLOAT32 else _quantized(tensors, operator)
    kept = C_TYPES[tensors.after.dtype]
    parameters = (
        *constants,
        Parameter(f"const {C_TYPES[tensors.source.dtype]} *", "input", tensors.source.name),
        Parameter(f"{kept} *", "state", tensors.after.name),
        Parameter(f"{C_TYPES[tensors.output.dtype]} *", "output", tensors.output.name),
    )
    filters, memory = tensors.time.shape
    fields = {
        "batches": tensors.source.shape[0],
        "inputs": tensors.source.shape[1],
        "units": filters // operator.rank,
        "rank": operator.rank,
        "memory": memory,
    }
    shape = struct_lines("mlf_svdf_shape", "shape", {name: str(value) for name, value in fields.items()})
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
        Parameter("const float *", "feature", Constant.array("feature", "float", _data(tensors.feature.data))),
        Parameter("const float *", "time", Constant.array("time", "float", _data(tensors.time.data))),
        Parameter("const float *", "bias", float_bias(bias, tensors.output.shape[1])),
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
    time_type = C_TYPES[tensors.time.dtype]
    return (
        Parameter("const struct mlf_svdf *", "svdf", Constant.struct("svdf", "mlf_svdf", factors)),
        Parameter("const int8_t *", "feature", Constant.array("feature", "int8_t", feature)),
        Parameter("const int32_t *", "feature_bias", Constant.array(
            "feature_bias", "int32_t", folded_bias(None, feature, 0, zero_point(tensors.source)))),
        Parameter(f"const {time_type} *", "time", Constant.array("time", time_type, time)),
        Parameter("const int32_t *", "bias", Constant.array(
            "bias", "int32_t", folded_bias(bias, by_unit, 0, zero_point(tensors.before)))),
    )  # fmt: skip


def _data(data: Array | None) -> Array:
    return np.ascontiguousarray(data)
