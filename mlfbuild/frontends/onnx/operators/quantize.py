"""DequantizeLinear and QuantizeLinear, Cast, and integer products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from mlfbuild.frontends.onnx.affine import Affine, check_scales
from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.arithmetic import Converter, add, cast, divide, multiply, subtract, unary
from mlfbuild.frontends.onnx.operators.convolution import convolved
from mlfbuild.frontends.onnx.operators.parameters import LayerParameters
from mlfbuild.frontends.onnx.operators.relu import clamped, limited
from mlfbuild.frontends.onnx.reader import ELEMENT_TYPES
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.frontends.onnx.targets import affine_of
from mlfbuild.graph import Array, DType, GraphError, Tensor, ops


def _dequantize(site: OnnxSite) -> tuple[Value, ...]:
    """Record the scale and zero point of the tensor; compute real numbers only if it cannot hold them."""
    value = site.held(0)
    if site.integer("block_size", 0):
        return (_computed_by_blocks(site),)
    affine = _affine(site, value.dtype.numpy)
    held = affine.held()
    if held is not None and value.tensor.quantization == held and value.dtype is affine.declared:
        return (Value(value.tensor, value.order, DType.FLOAT32),)
    return (_computed(site, site.builder.plain(value), affine),)


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
          int(onnx.TensorProto.INT16): np.int16}  # fmt: skip


def _quantize(site: OnnxSite) -> tuple[Value, ...]:
    """Quantise the input, unless its tensor is quantised this way already."""
    value = site.held(0)
    wanted = site.integer("output_dtype", 0) or int(onnx.TensorProto.UINT8)
    if wanted not in _TYPES:
        raise site.unsupported(
            f"output_dtype {wanted} is not supported", "use uint8, int8 or int16", code="type-unsupported"
        )
    if site.integer("block_size", 0):
        return (_rounded_by_blocks(site, np.dtype(_TYPES[wanted])),)
    affine = _affine(site, np.dtype(_TYPES[wanted]))
    held = affine.held() if affine.exact or site.only_dequantized else None
    if held is None and affine.zero_points.dtype not in _TYPES.values():
        raise site.unsupported(
            f"zero points of {affine.zero_points.dtype} are not supported",
            "use uint8, int8 or int16",
            code="type-unsupported",
        )
    if held is None:
        return (_rounded(site, site.value(0), affine),)
    declared = affine.declared
    tensor = value.tensor
    if value.quantization != held or tensor.dtype is not affine.holder:
        tensor = site.emit(ops.Quantize(), [tensor], tensor.shape, affine.holder, held)
    return (Value(limited(site, tensor, *affine.limit()), value.order, declared),)


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
            f"zero points of {zero_points.dtype} are not supported", "use uint8, int8 or int16", code="type-unsupported"
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
    return (_converted(site, site.held(1).dtype),)


def _converted(site: OnnxSite, dtype: DType) -> Value:
    value = site.held(0)
    if value.dtype is dtype:
        return value
    value = site.builder.plain(value)
    return Value(site.emit(ops.Cast(), [value.tensor], value.tensor.shape, dtype), value.order)


_EXACT = 1 << 24
"""Sums of integers below it are exact in float32, in any order."""


def _integer_product(site: OnnxSite) -> tuple[Value, ...]:
    """MatMulInteger: sums of int8 products as int32, computed in float32 if that is exact."""
    value, weights = site.value(0), site.constant(1, "matrix B")
    if weights.ndim != 2 or value.rank < 2 or value.shape[-1] != weights.shape[0]:
        raise site.unsupported(
            f"the product of {value.tensor} and a tensor {list(weights.shape)} is not supported",
            "use a constant matrix that fits",
        )
    zero_points = _zero_points(site, 3, weights.dtype)
    if zero_points.size not in {1, weights.shape[1]}:
        raise GraphError(site.node.place, f"{zero_points.size} zero points do not fit {list(weights.shape)}")
    centred = weights.astype(np.float32) - zero_points.reshape(-1).astype(np.float32)
    source = _centred(site, value)
    _check_exact(site, value.dtype, np.abs(centred).sum(axis=0))
    tensor = site.builder.stored(Value(source, value.order), tuple(range(value.rank)))
    inputs = [tensor, site.weights("weights", centred.T), None]
    shape = (*tensor.shape[:-1], weights.shape[1])
    sums = site.emit(ops.FullyConnected(keep_num_dims=True), inputs, shape)
    return (site.made(site.emit(ops.Cast(), [sums], shape, DType.INT32)),)


def _integer_convolution(site: OnnxSite) -> tuple[Value, ...]:
    """ConvInteger: sums of int8 products as int32, computed in float32 if that is exact."""
    value, weights = site.value(0), site.constant(1, "filter")
    if weights.ndim < 3 or weights.size == 0:
        raise GraphError(site.node.place, f"the filter has the shape {list(weights.shape)}")
    zero_points = _zero_points(site, 3, weights.dtype)
    if zero_points.size not in {1, weights.shape[0]}:
        raise GraphError(site.node.place, f"{zero_points.size} zero points do not fit {list(weights.shape)}")
    spread = (-1, *(1 for _ in weights.shape[1:]))
    centred = weights.astype(np.float32) - zero_points.reshape(-1).astype(np.float32).reshape(spread)
    _check_exact(site, value.dtype, np.abs(centred).reshape(len(centred), -1).sum(axis=1))
    source = Value(_centred(site, value), value.order)
    made = convolved(site, source, LayerParameters(centred, None), None)
    assert made is not None
    return (Value(site.emit(ops.Cast(), [made.tensor], made.tensor.shape, DType.INT32), made.order),)


def _zero_points(site: OnnxSite, index: int, dtype: np.dtype[np.generic]) -> Array:
    return site.constant(index, "zero point") if site.has(index) else np.zeros((), dtype)


def _centred(site: OnnxSite, value: Value) -> Tensor:
    """Return the integers ``value`` without their zero point, as float32."""
    zero_point = _zero_points(site, 2, value.dtype.numpy)
    if zero_point.size != 1:
        raise site.unsupported(f"{zero_point.size} zero points of input 0 are not supported", "use one")
    shape = value.tensor.shape
    real = site.emit(ops.Cast(), [value.tensor], shape, DType.FLOAT32)
    if not zero_point.any():
        return real
    return site.emit(ops.Sub(), [real, site.number("zero point", float(zero_point.reshape(-1)[0]))], shape)


def _check_exact(site: OnnxSite, dtype: DType, magnitudes: Array) -> None:
    greatest = 255 * float(magnitudes.max(initial=0))
    if dtype not in {DType.INT8, DType.UINT8} or greatest >= _EXACT:
        raise site.unsupported(
            f"sums of up to {greatest:.0f}, beyond {_EXACT}, are not supported",
            "quantise the network statically, with QuantizeLinear and DequantizeLinear around its operators",
        )


OPERATORS: Mapping[str, Converter] = {
    "BitCast": _bit_cast,
    "Cast": _cast,
    "CastLike": _cast_like,
    "ConvInteger": _integer_convolution,
    "DequantizeLinear": _dequantize,
    "MatMulInteger": _integer_product,
    "QuantizeLinear": _quantize,
}
