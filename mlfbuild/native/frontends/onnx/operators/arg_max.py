"""ArgMax and ArgMin."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, subtract
from mlfbuild.native.frontends.onnx.operators.reduce import without
from mlfbuild.native.frontends.onnx.operators.slice import sliced
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import DType, Tensor, ops


def _position(kind: type[ops.ArgMax | ops.ArgMin]) -> Callable[[OnnxSite], tuple[Value, ...]]:
    def convert(site: OnnxSite) -> tuple[Value, ...]:
        value = site.held(0)
        axis = site.axis(site.integer("axis", 0), value.rank)
        stored = value.stored(axis)
        shape = [size for other, size in enumerate(value.tensor.shape) if other != stored]
        if site.integer("select_last_index", 0):
            found = _last_position(site, kind(stored), value, axis, shape)
        else:
            found = site.emit(kind(stored), [value.tensor], shape, DType.INT32)
        wide = site.emit(ops.Cast(), [found], shape, DType.INT64)
        if not site.integer("keepdims", 1):
            return (Value(wide, without(value.order, (axis,))),)
        return (Value(site.builder.reshaped(wide, (*shape[:stored], 1, *shape[stored:])), value.order),)

    return convert


def _last_position(
    site: OnnxSite, operator: ops.ArgMax | ops.ArgMin, value: Value, axis: int, shape: Sequence[int]
) -> Tensor:
    """Return the position of the last extreme element, computed in float32 from the reversed tensor."""
    ranges = [range(size)[::-1] if other == axis else range(size) for other, size in enumerate(value.shape)]
    turned = sliced(site, value, ranges)
    found = site.emit(operator, [turned.tensor], shape, DType.INT32)
    number = site.emit(ops.Cast(), [found], shape, DType.FLOAT32)
    return subtract(site, site.number("last", value.shape[axis] - 1), number)


OPERATORS: Mapping[str, Converter] = {
    "ArgMax": _position(ops.ArgMax),
    "ArgMin": _position(ops.ArgMin),
}
