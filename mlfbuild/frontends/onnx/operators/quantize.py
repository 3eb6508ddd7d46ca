"""DequantizeLinear and QuantizeLinear, with constant or computed scales, and Cast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from mlfbuild.frontends.onnx.affine import Affine, check_scales
from mlfbuild.frontends.onnx.builder import element_type
from mlfbuild.frontends.onnx.layout import Value, as_onnx
from mlfbuild.frontends.onnx.operators.arithmetic import Converter, add, cast, divide, multiply, subtract, unary
from mlfbuild.frontends.onnx.operators.gather import taken
from mlfbuild.frontends.onnx.operators.relu import clamped, limited
from mlfbuild.frontends.onnx.reader import ELEMENT_TYPES
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.frontends.onnx.targets import affine_of
from mlfbuild.graph import Array, DType, GraphError, Tensor, ops


def _dequantize(site: OnnxSite) -> tuple[Value, ...]:
    """Record the scale and zero point of the tensor; compute real numbers only if it cannot hold them."""
    value = site.held(0)
    if not _is_constant(site):
        real = cast(site, site.tensor(0), DType.FLOAT32)
        if site.has(2):
            real = subtract(site, real, _spread(site, 2, real))
        return (site.made(multiply(site, real, _spread(site, 1, real))),)
    if site.integer("block_size", 0):
        return (_computed_by_blocks(site),)
    affine = _affine(site, value.dtype.numpy)
    held = affine.held()
    if held is not None and value.tensor.quantization == held and value.dtype is affine.declared:
        return (Value(value.tensor, value.order, DType.FLOAT32),)
    return (_computed(site, site.builder.plain(value), affine),)


def _is_constant(site: OnnxSite) -> bool:
    """Return whether scales and zero points are constant."""
    return all(site.is_constant(index) or not site.has(index) for index in (1, 2))


def _spread(site: OnnxSite, index: int, source: Tensor) -> Tensor:
    """Return scales or zero points, perhaps computed, as float32 that broadcasts to ``source``."""
    tensor, rank = cast(site, site.tensor(index), DType.FLOAT32), len(source.shape)
    block = site.integer("block_size", 0)
    if block:
        axis = site.axis(site.integer("axis", 1), rank)
        wanted = (*source.shape[:axis], -(-source.shape[axis] // max(block, 1)), *source.shape[axis + 1 :])
        if block < 1 or tensor.shape != wanted:
            raise GraphError(site.node.place, f"blocks of {block} with {list(tensor.shape)} scales do not fit {source}")
        return site.builder.stored(taken(site, site.made(tensor), axis, np.arange(source.shape[axis]) // block),
                                   as_onnx(rank))  # fmt: skip
    if tensor.elements == 1:
        return site.builder.reshaped(tensor, ())
    if len(tensor.shape) == rank > 1:  # QLinearMatMul has scales of rows and columns of each matrix
        return tensor
    axis = site.axis(site.integer("axis", 1), rank)
    if tensor.shape != source.shape[axis : axis + 1]:
        raise GraphError(site.node.place, f"{list(tensor.shape)} scales do not fit {source}")
    return site.builder.reshaped(tensor, [tensor.elements if at == axis else 1 for at in range(rank)])


def _affine(site: OnnxSite, dtype: np.dtype[np.generic]) -> Affine:
    affine = affine_of(site.node, site.known, dtype)
    if affine is None:
        raise site.unsupported(
            "the scales and zero points must be constant, and the scales float32", code="input-not-constant"
        )
    check_scales(site.node.place, affine.scales)
    if not affine.fits(site.held(0).shape):
        raise GraphError(site.node.place, f"{affine.scales.size} scales do not fit {site.held(0).tensor}")
    return affine


def _computed(site: OnnxSite, value: Value, affine: Affine) -> Value:
    """Return scale * (value - zero point), computed in float32."""
    axis = None if affine.per_tensor else value.stored(affine.axis % value.rank)
    shape = value.tensor.shape
    real = site.emit(ops.Cast(), [value.tensor], shape, DType.FLOAT32)
    if affine.zero_points.any():
        real = site.emit(ops.Sub(), [real, _along(site, "zero points", affine.zero_points, axis, value.rank)], shape)
    return Value(
        site.emit(ops.Mul(), [real, _along(site, "scales", affine.scales, axis, value.rank)], shape), value.order
    )


def _computed_by_blocks(site: OnnxSite) -> Value:
    """Return scale * (value - zero point), with one scale and zero point per block along an axis."""
    source = site.tensor(0)
    axis = site.axis(site.integer("axis", 1), len(source.shape))
    scales = _for_each(site, _block_scales(site), source, axis)
    real = cast(site, source, DType.FLOAT32)
    if site.has(2):
        real = subtract(site, real, _for_each(site, site.constant(2, "zero points"), source, axis))
    return site.made(multiply(site, real, scales))


def _block_scales(site: OnnxSite) -> Array:
    scales = site.constant(1, "scales")
    check_scales(site.node.place, scales)
    return scales


def _for_each(site: OnnxSite, values: Array, source: Tensor, axis: int) -> Tensor:
    """Return ``values``, one per block along ``axis``, as float32 with one number per element of ``source``."""
    block, size = site.integer("block_size", 0), source.shape[axis]
    wanted = (*source.shape[:axis], -(-size // max(block, 1)), *source.shape[axis + 1 :])
    if block < 1 or values.shape != wanted:
        raise GraphError(site.node.place, f"blocks of {block} with {list(values.shape)} scales do not fit {source}")
    block = min(block, size)
    site.check_room((*values.shape, block), DType.FLOAT32.size)
    repeated = np.repeat(values.astype(np.float32), block, axis).take(range(size), axis)
    return site.weights("blocks", repeated)


def _along(site: OnnxSite, word: str, values: Array, axis: int | None, rank: int) -> Tensor:
    """Add ``values`` as float32 along the stored ``axis``."""
    spread = () if axis is None else tuple(-1 if other == axis else 1 for other in range(rank))
    return site.weights(word, values.astype(np.float32).reshape(spread))


_TYPES = {int(onnx.TensorProto.UINT8): np.uint8, int(onnx.TensorProto.INT8): np.int8,
          int(onnx.TensorProto.INT16): np.int16, int(onnx.TensorProto.UINT16): np.uint16}  # fmt: skip


def _quantize(site: OnnxSite) -> tuple[Value, ...]:
    """Quantise the input, unless its tensor is quantised this way already."""
    value = site.held(0)
    if not _is_constant(site):
        return (_rounded_by_computed(site),)
    wanted = site.integer("output_dtype", 0) or int(onnx.TensorProto.UINT8)
    if wanted not in _TYPES:
        raise site.unsupported(
            f"output_dtype {wanted} is not supported", "use uint8, int8, uint16 or int16", code="type-unsupported"
        )
    if site.integer("block_size", 0):
        return (_rounded_by_blocks(site, np.dtype(_TYPES[wanted])),)
    affine = _affine(site, np.dtype(_TYPES[wanted]))
    held = affine.held() if affine.exact or site.only_dequantized else None
    if held is None and affine.zero_points.dtype not in _TYPES.values():
        raise site.unsupported(
            f"zero points of {affine.zero_points.dtype} are not supported",
            "use uint8, int8, uint16 or int16",
            code="type-unsupported",
        )
    if held is None:
        return (_rounded(site, site.value(0), affine),)
    declared = affine.declared
    tensor = value.tensor
    if value.quantization != held or tensor.dtype is not affine.holder:
        tensor = site.emit(ops.Quantize(), [tensor], tensor.shape, affine.holder, held)
    return (Value(limited(site, tensor, *affine.limit()), value.order, declared),)


def _rounded_by_computed(site: OnnxSite) -> Value:
    """Return input 0 quantised with computed scales or zero points, in float32."""
    wanted = site.integer("output_dtype", 0) or int(onnx.TensorProto.UINT8)
    dtype = site.held(2).dtype if site.has(2) else ELEMENT_TYPES.get(wanted)
    if dtype is None or dtype.numpy not in _TYPES.values():
        raise site.unsupported(
            f"quantising to {dtype.value if dtype else wanted} is not supported",
            "use uint8, int8, uint16 or int16",
            code="type-unsupported",
        )
    source = site.tensor(0)
    zero_points = _spread(site, 2, source) if site.has(2) else site.number("zero point", 0.0)
    return site.made(_steps(site, source, _spread(site, 1, source), zero_points, dtype.numpy))


def _rounded(site: OnnxSite, value: Value, affine: Affine) -> Value:
    """Return value / scale, rounded, plus zero point, computed in float32, for quantisations that no tensor has."""
    axis = None if affine.per_tensor else value.stored(affine.axis % value.rank)
    scales = _along(site, "scales", affine.scales, axis, value.rank)
    zero_points = _along(site, "zero points", affine.zero_points, axis, value.rank)
    return Value(_steps(site, value.tensor, scales, zero_points, affine.zero_points.dtype), value.order)


def _rounded_by_blocks(site: OnnxSite, dtype: np.dtype[np.generic]) -> Value:
    source, scales = site.tensor(0), _block_scales(site)
    axis = site.axis(site.integer("axis", 1), len(source.shape))
    zero_points = site.constant(2, "zero points") if site.has(2) else np.zeros(scales.shape, dtype)
    if zero_points.dtype not in _TYPES.values():
        raise site.unsupported(
            f"zero points of {zero_points.dtype} are not supported",
            "use uint8, int8, uint16 or int16",
            code="type-unsupported",
        )
    steps, offsets = _for_each(site, scales, source, axis), _for_each(site, zero_points, source, axis)
    return site.made(_steps(site, source, steps, offsets, zero_points.dtype))


def _steps(site: OnnxSite, x: Tensor, scales: Tensor, zero_points: Tensor, dtype: np.dtype[Any]) -> Tensor:
    """Return x / scale, rounded half to even, plus zero point, clamped to the range of ``dtype``."""
    limits = np.iinfo(dtype)
    whole = add(site, unary(site, ops.Round(), divide(site, x, scales)), zero_points)
    return cast(site, clamped(site, whole, limits.min, limits.max), DType(dtype.name))


def _cast(site: OnnxSite) -> tuple[Value, ...]:
    return (_converted(site, _wanted(site)),)


def _bit_cast(site: OnnxSite) -> tuple[Value, ...]:
    value, dtype = site.value(0), _wanted(site)
    return (Value(site.emit(ops.BitCast(), [value.tensor], value.tensor.shape, dtype), value.order),)


def _wanted(site: OnnxSite) -> DType:
    """Return the type that the attribute ``to`` names."""
    wanted = site.integer("to", 0)
    if wanted not in ELEMENT_TYPES:
        names = onnx.TensorProto.DataType
        name = names.Name(wanted) if wanted in names.values() else str(wanted)
        raise site.unsupported(
            f"a conversion to {name} is not supported",
            "convert to another type, such as FLOAT or INT8",
            code="type-unsupported",
        )
    return ELEMENT_TYPES[wanted]


def _cast_like(site: OnnxSite) -> tuple[Value, ...]:
    like = element_type(site.constant(1, "type")) if site.is_constant(1) else site.held(1).dtype
    if site.is_constant(0) and site.constant(0, "value").dtype == np.float64:  # which no tensor can have
        return (site.made(site.weights("cast", site.constant(0, "value").astype(like.numpy))),)
    return (_converted(site, like),)


def _converted(site: OnnxSite, dtype: DType) -> Value:
    value = site.held(0)
    if value.dtype is dtype:
        return value
    value = site.builder.plain(value)
    return Value(site.emit(ops.Cast(), [value.tensor], value.tensor.shape, dtype), value.order)


OPERATORS: Mapping[str, Converter] = {
    "BitCast": _bit_cast,
    "Cast": _cast,
    "CastLike": _cast_like,
    "DequantizeLinear": _dequantize,
    "QuantizeLinear": _quantize,
}
