"""OneHot, Hardmax and EyeLike, computed by comparing positions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators import computed
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, binary
from mlfbuild.native.frontends.onnx.operators.softmax import along_rows
from mlfbuild.native.frontends.onnx.raw_graph import ELEMENT_TYPES
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, GraphError, Tensor, ops


def _one_hot(site: OnnxSite) -> tuple[Value, ...]:
    """Write one value at the index and another one elsewhere; negative indices count from the end."""
    indices, values = site.tensor(0), site.tensor(2)
    depth = site.constant_integer(1, "depth")
    if depth < 1 or values.elements != 2:
        raise GraphError(site.node.place, f"has the depth {depth} and {values.elements} values")
    rank = len(indices.shape) + 1
    axis = site.axis(site.integer("axis", -1), rank)
    checked(site.name, (*indices.shape, depth), DType.INT64)  # before an array of that size is allocated
    whole = site.emit(ops.Cast(), [indices], indices.shape, DType.INT32)
    column = site.builder.reshaped(whole, (*indices.shape[:axis], 1, *indices.shape[axis:]))
    site.check_room((depth,), DType.INT32.size)
    places = np.arange(depth, dtype=np.int32).reshape([depth if other == axis else 1 for other in range(rank)])
    hit = _equal(site, column, site.weights("places", places))
    if indices.dtype not in {DType.UINT8, DType.BOOL}:
        from_end = _equal(site, column, site.weights("places", places - np.int32(depth)))
        hit = binary(site, ops.LogicalOr(), hit, from_end)
    off, on = (_one_of_two(site, values, index) for index in range(2))
    return (site.made(site.emit(ops.SelectV2(), [hit, on, off], hit.shape, on.dtype)),)


def _one_of_two(site: OnnxSite, values: Tensor, index: int) -> Tensor:
    if values.data is not None:
        return site.weights(("off", "on")[index], values.data.reshape(-1)[index])
    return site.builder.reshaped(computed.element(site, site.builder.reshaped(values, (2,)), index), ())


def _equal(site: OnnxSite, first: Tensor, second: Tensor) -> Tensor:
    return site.emit(ops.Equal(), [first, second], np.broadcast_shapes(first.shape, second.shape), DType.BOOL)


def _hardmax(site: OnnxSite, rows: Tensor) -> Tensor:
    """Return 1 at the first greatest element of each row, 0 elsewhere."""
    if rows.dtype is not DType.FLOAT32:
        raise site.type_unsupported(rows, "float32")
    last = len(rows.shape) - 1
    site.check_room(rows.shape[-1:], DType.INT32.size)
    found = site.emit(ops.ArgMax(last), [rows], rows.shape[:-1], DType.INT32)
    column = site.builder.reshaped(found, (*rows.shape[:-1], 1))
    hit = _equal(site, column, site.weights("places", np.arange(rows.shape[-1], dtype=np.int32)))
    return site.emit(ops.Cast(), [hit], rows.shape, DType.FLOAT32)


def _eye_like(site: OnnxSite) -> tuple[Value, ...]:
    """Return a constant matrix of the input's shape with 1 on a diagonal and 0 elsewhere."""
    value = site.held(0)
    if value.rank != 2:
        raise GraphError(site.node.place, f"takes a matrix, not {value.tensor}")
    code = site.integer("dtype", 0)
    if code and code not in ELEMENT_TYPES:
        raise site.unsupported(
            f"dtype {code} is not supported", "use another type, such as FLOAT or INT8", code="type-unsupported"
        )
    dtype = ELEMENT_TYPES[code] if code else value.dtype
    rows, columns = value.shape
    site.check_room(value.shape, dtype.size)
    diagonal = np.eye(rows, columns, k=site.integer("k", 0), dtype=dtype.numpy)
    return (site.made(site.weights("diagonal", diagonal)),)


OPERATORS: Mapping[str, Converter] = {
    "EyeLike": _eye_like,
    "Hardmax": along_rows(_hardmax),
    "OneHot": _one_hot,
}
