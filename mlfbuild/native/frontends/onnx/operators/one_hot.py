"""OneHot and EyeLike, computed by comparing positions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.conversion import runtime_parameters
from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter, binary, relation
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.frontends.onnx.raw_graph import ELEMENT_TYPES
from mlfbuild.native.graph import DType, GraphError, Tensor, ops


def _one_hot(op: OpContext) -> tuple[Value, ...]:
    """Write one value at the index and another one elsewhere; negative indices count from the end."""
    indices, values = op.tensor(0), op.tensor(2)
    depth = op.constant_integer(1, "depth")
    if depth < 1 or values.elements != 2:
        raise GraphError(op.node.place, f"has the depth {depth} and {values.elements} values")
    rank = len(indices.shape) + 1
    axis = op.axis(op.integer("axis", -1), rank)
    checked(op.name, (*indices.shape, depth), DType.INT64)  # before an array of that size is allocated
    whole = op.emit(ops.Cast(), [indices], indices.shape, DType.INT32)
    column = op.builder.reshaped(whole, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    op.check_room((depth,), DType.INT32.size)
    places = np.arange(depth, dtype=np.int32).reshape([depth if other == axis else 1 for other in range(rank)])
    hit = relation(op, ops.Equal(), column, op.weights("places", places))
    if indices.dtype not in {DType.UINT8, DType.BOOL}:
        from_end = relation(op, ops.Equal(), column, op.weights("places", places - np.int32(depth)))
        hit = binary(op, ops.LogicalOr(), hit, from_end)
    off, on = (_one_of_two(op, values, index) for index in range(2))
    return (op.made(op.emit(ops.SelectV2(), [hit, on, off], hit.shape, on.dtype)),)


def _one_of_two(op: OpContext, values: Tensor, index: int) -> Tensor:
    if values.data is not None:
        return op.weights(("off", "on")[index], values.data.reshape(-1)[index])
    return op.builder.reshaped(runtime_parameters.element(op, op.builder.reshaped(values, (2,)), index), ())


def _eye_like(op: OpContext) -> tuple[Value, ...]:
    """Return a constant matrix of the input's shape with 1 on a diagonal and 0 elsewhere."""
    value = op.held(0)
    if value.rank != 2:
        raise GraphError(op.node.place, f"takes a matrix, not {value.tensor}")
    code = op.integer("dtype", 0)
    if code and code not in ELEMENT_TYPES:
        raise op.unsupported(
            f"dtype {code} is not supported", "use another type, such as FLOAT or INT8", code="type-unsupported"
        )
    dtype = ELEMENT_TYPES[code] if code else value.dtype
    rows, columns = value.shape
    op.check_room(value.shape, dtype.size)
    diagonal = np.eye(rows, columns, k=op.integer("k", 0), dtype=dtype.numpy)
    return (op.made(op.weights("diagonal", diagonal)),)


OPERATORS: Mapping[str, Converter] = {
    "EyeLike": _eye_like,
    "OneHot": _one_hot,
}
