"""BATCH_MATMUL and MATMUL_INTEGER."""

from __future__ import annotations

import math

import numpy as np

from mlfbuild.library.cgen import braces
from mlfbuild.native.graph import DType, Graph, Node, Tensor, wide_rescale
from mlfbuild.native.graph.bases import binary_tensors
from mlfbuild.native.graph.ops import BatchMatmul, MatmulInteger
from mlfbuild.native.lowering.call import Constant, KernelCall, record_words, struct_lines, unsupported
from mlfbuild.native.lowering.common.activation import suffix
from mlfbuild.native.lowering.common.binary import binary_quantization
from mlfbuild.native.lowering.common.parameters import array, constant, reads, writes
from mlfbuild.native.settings import CodegenSettings

_DIMENSIONS = 3


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_batch_matmul_<type>``."""
    operator = node.operator
    if isinstance(operator, MatmulInteger):
        return _lower_integer(graph, node, settings)
    assert isinstance(operator, BatchMatmul)
    first, second, output = binary_tensors(graph.inputs_of(node), graph.outputs_of(node))
    if len(output.shape) - 2 > _DIMENSIONS:
        raise unsupported(node, f"{output} has more than {_DIMENSIONS} dimensions of batches")
    # The kernel has three loops for batches at most.
    parameters = [reads("first", first), reads("second", second), writes("output", output)]
    arguments = "&shape, first, second, output"
    if output.dtype in {DType.INT8, DType.INT16}:
        rescale = operator.rescale(first, second, output)
        if output.dtype is DType.INT8:
            numbers = binary_quantization(
                "mlf_mul_quantization", {"output": rescale}, operator, (first, second, output)
            )
        else:
            wide = wide_rescale(rescale)
            factor = wide.multiplier, wide.right_shift
            words = record_words("i2,i2", [factor]).tobytes()
            numbers = Constant("rescale", "struct mlf_wide_rescale", braces(factor), len(words), words=words)
        parameters.insert(0, constant(numbers))
        arguments = f"{numbers.name}, {arguments}"
    (rows, depth), (_, columns) = operator.sizes(first, second)
    fields = {
        "batches": braces([1] * (_DIMENSIONS + 2 - len(output.shape)) + list(output.shape[:-2])),
        "first_batch": braces(_batch_strides(first)),
        "second_batch": braces(_batch_strides(second)),
        "rows": rows,
        "depth": depth,
        "columns": columns,
        # Transposing an operand only swaps two strides.
        "first": braces([1, rows] if operator.adj_x else [depth, 1]),
        "second": braces([1, depth] if operator.adj_y else [columns, 1]),
    }
    kernel = suffix(output.dtype) if second.dtype is output.dtype else "int16_int8"
    line = f"mlf_batch_matmul_{kernel}({arguments});"
    shape = struct_lines("mlf_batch_matmul", "shape", fields)
    header = "batch_matmul_int16.h" if output.dtype is DType.INT16 else "batch_matmul.h"
    return KernelCall("batch_matmul", header, tuple(parameters), (*shape, line))


def _lower_integer(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_matmul_integer``."""
    inputs, (output,) = graph.inputs_of(node), graph.outputs_of(node)
    (rows, zero_point, weights), offsets = inputs[:3], inputs.optional(3)
    outputs, depth = weights.shape
    known = np.zeros(outputs, np.int32) if offsets is None or offsets.data is None else offsets.data
    # The zero point of the rows, known at run time, is multiplied by these sums, instead of being subtracted from each
    # input.
    sums = weights.known.astype(np.int64).sum(axis=1) - known.astype(np.int64) * depth
    parameters = [
        reads("input", rows),
        reads("zero_point", zero_point),
        array("weights", "int8_t", weights.known),
        array("sums", "int32_t", sums.astype(np.int32)),
    ]
    arguments = "&matrix, input, *zero_point, weights, sums"
    # Without offsets, a simpler kernel does the same.
    shifted = offsets is not None if settings.replaceable else bool(known.any())
    if shifted:
        parameters.append(array("offsets", "int32_t", known))
        arguments += ", offsets"
    fields = {"rows": str(rows.elements // depth), "inputs": str(depth), "outputs": str(outputs)}
    kernel = "mlf_matmul_integer_offset" if shifted else "mlf_matmul_integer"
    return KernelCall("matmul_integer", "matmul_integer.h", (
        *parameters,
        writes("output", output),
    ), (*struct_lines("mlf_matrix", "matrix", fields), f"{kernel}({arguments}, output);"))  # fmt: skip


def _batch_strides(tensor: Tensor) -> list[int]:
    """Return the strides of the batch dimensions, 0 for those along which a matrix is repeated."""
    # Missing batch dimensions count as 1 in front, as in NumPy.
    sizes = [1] * (_DIMENSIONS + 2 - len(tensor.shape)) + list(tensor.shape)
    # A stride of 0 repeats a matrix without copying it.
    return [0 if sizes[axis] == 1 else math.prod(sizes[axis + 1 :]) for axis in range(_DIMENSIONS)]
