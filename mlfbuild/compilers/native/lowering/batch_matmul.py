"""BATCH_MATMUL."""

from __future__ import annotations

import math

from mlfbuild.cgen import C_TYPES, braces
from mlfbuild.compilers.native.lowering.call import Constant, KernelCall, Parameter, struct_lines, unsupported
from mlfbuild.compilers.native.lowering.common.activation import suffix
from mlfbuild.compilers.native.settings import CodegenSettings
from mlfbuild.graph import Activation, DType, Graph, Node, Tensor, activation_range, wide_rescale, zero_point_of
from mlfbuild.graph.bases import binary_tensors
from mlfbuild.graph.ops import BatchMatmul

_DIMENSIONS = 3


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_batch_matmul_<type>``."""
    operator = node.operator
    assert isinstance(operator, BatchMatmul)
    first, second, output = binary_tensors(graph.inputs_of(node), graph.outputs_of(node))
    if len(output.shape) - 2 > _DIMENSIONS:
        raise unsupported(node, f"{output} has more than {_DIMENSIONS} dimensions of batches")
    c_type = C_TYPES[output.dtype]
    parameters = [
        Parameter(f"const {c_type} *", "first", first.name),
        Parameter(f"const {C_TYPES[second.dtype]} *", "second", second.name),
        Parameter(f"{c_type} *", "output", output.name),
    ]
    arguments = "&shape, first, second, output"
    if output.dtype is DType.INT8:
        constant = _quantization(operator, first, second, output)
        parameters.insert(0, Parameter("const struct mlf_mul_quantization *", "quantization", constant))
        arguments = f"quantization, {arguments}"
    if output.dtype is DType.INT16:
        constant = _wide_rescale(operator, first, second, output)
        parameters.insert(0, Parameter("const struct mlf_wide_rescale *", "rescale", constant))
        arguments = f"rescale, {arguments}"
    (rows, depth), (_, columns) = operator.sizes(first, second)
    fields = {
        "batches": braces([1] * (_DIMENSIONS + 2 - len(output.shape)) + list(output.shape[:-2])),
        "first_batch": braces(_batch_strides(first)),
        "second_batch": braces(_batch_strides(second)),
        "rows": str(rows),
        "depth": str(depth),
        "columns": str(columns),
        "first": braces([1, rows] if operator.adj_x else [depth, 1]),
        "second": braces([1, depth] if operator.adj_y else [columns, 1]),
    }
    kernel = suffix(output.dtype) if second.dtype is output.dtype else "int16_int8"
    line = f"mlf_batch_matmul_{kernel}({arguments});"
    shape = struct_lines("mlf_batch_matmul", "shape", fields)
    header = "batch_matmul_int16.h" if output.dtype is DType.INT16 else "batch_matmul.h"
    return KernelCall("batch_matmul", header, tuple(parameters), (*shape, line))


def _batch_strides(tensor: Tensor) -> list[int]:
    """Return the strides of the batch dimensions, 0 for those along which a matrix is repeated."""
    sizes = [1] * (_DIMENSIONS + 2 - len(tensor.shape)) + list(tensor.shape)
    return [0 if sizes[axis] == 1 else math.prod(sizes[axis + 1 :]) for axis in range(_DIMENSIONS)]


def _wide_rescale(operator: BatchMatmul, first: Tensor, second: Tensor, output: Tensor) -> Constant:
    rescale = wide_rescale(operator.rescale(first, second, output))
    return Constant("rescale", "struct mlf_wide_rescale", braces([rescale.multiplier, rescale.right_shift]), 4)


def _quantization(operator: BatchMatmul, first: Tensor, second: Tensor, output: Tensor) -> Constant:
    minimum, maximum = activation_range(Activation.NONE, output)
    return Constant.struct(
        "quantization",
        "mlf_mul_quantization",
        {
            "first_zero_point": zero_point_of(first),
            "second_zero_point": zero_point_of(second),
            "output_zero_point": zero_point_of(output),
            "minimum": minimum,
            "maximum": maximum,
            "output": operator.rescale(first, second, output),
        },
    )
