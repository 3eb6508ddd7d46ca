"""Operators that move elements or repeat them and compute none: Reshape, Transpose, Concat, Split and others; Range."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from mlfbuild.native.frontends.onnx.builder import MAXIMUM_DIMENSIONS
from mlfbuild.native.frontends.onnx.conversion.elementwise import common_order
from mlfbuild.native.frontends.onnx.layout import Order, Value, as_onnx, channels_last
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import DType, GraphError, Quantization, Tensor, ops


def _transpose(op: OpContext) -> tuple[Value, ...]:
    """Return the same tensor with another order; no element is moved yet."""
    value = op.held(0)
    axes = op.integers("perm") or tuple(reversed(as_onnx(value.rank)))
    if sorted(axes) != list(as_onnx(value.rank)):
        raise GraphError(op.node.place, f"perm {list(axes)} does not order {value.rank} dimensions")
    # Whoever needs ONNX's order transposes then, and many operators do not: pairs of Transpose around an image cancel
    # out.
    return (value.moved(value.tensor, tuple(axes.index(axis) for axis in value.order)),)


def _dropout(op: OpContext) -> tuple[Value, ...]:
    """Return the input unchanged and a mask that is true everywhere: only training drops elements."""
    value = op.held(0)
    training = op.has(2) and (not op.is_constant(2) or op.constant(2, "training_mode").any())
    # The ratio of a Dropout of 0 drops nothing, even in training mode.
    if training and (not op.is_constant(1) or op.constant(1, "ratio").any()):
        raise op.unsupported(
            "training_mode, which drops elements at random, is not supported", "export the network for inference"
        )
    if len(op.node.outputs) < 2 or not op.node.outputs[1]:
        return (value,)
    return value, op.made(op.filled("mask", value.shape, 1, np.bool_))


def _reshape(op: OpContext) -> tuple[Value, ...]:
    value = op.held_in_order(0)
    source = value.tensor
    wanted = list(op.integers("shape", 1) or ())
    if not op.integer("allowzero", 0):
        if any(size == 0 and axis >= len(source.shape) for axis, size in enumerate(wanted)):
            raise GraphError(op.node.place, f"the shape {wanted} copies a dimension that {source} does not have")
        wanted = [source.shape[axis] if size == 0 else size for axis, size in enumerate(wanted)]
    if wanted.count(-1) == 1:
        known = math.prod(size for size in wanted if size != -1)
        # -1 stays and is refused below: 0 elements fit any size.
        wanted[wanted.index(-1)] = source.elements // known if known else -1
    if min(wanted, default=1) < 0 or math.prod(wanted) != source.elements:
        raise GraphError(op.node.place, f"{source} cannot have the shape {wanted}")
    return (value.moved(op.builder.reshaped(source, wanted)),)


def _flatten(op: OpContext) -> tuple[Value, ...]:
    value = op.held_in_order(0)
    source = value.tensor
    rank = len(source.shape)
    axis = op.integer("axis", 1)
    # ONNX permits the axis to be the rank: then all dimensions are in the first one.
    axis = rank if axis == rank else op.axis(axis, rank)
    shape = (math.prod(source.shape[:axis]), math.prod(source.shape[axis:]))
    return (value.moved(op.builder.reshaped(source, shape)),)


def _squeeze(op: OpContext) -> tuple[Value, ...]:
    value = op.held_in_order(0)
    source = value.tensor
    axes = op.integers("axes", 1)
    found = [axis for axis, size in enumerate(source.shape) if size == 1]
    if axes is not None:
        found = list(op.axes(axes, len(source.shape)))
        if any(source.shape[axis] != 1 for axis in found):
            raise GraphError(op.node.place, f"the dimensions {found} of {source} are not all 1")
    shape = [size for axis, size in enumerate(source.shape) if axis not in found]
    return (value.moved(op.builder.reshaped(source, shape)),)


def _unsqueeze(op: OpContext) -> tuple[Value, ...]:
    value = op.held_in_order(0)
    source = value.tensor
    axes = op.integers("axes", 1) or ()
    rank = len(source.shape) + len(axes)
    new = op.axes(axes, rank)
    sizes = iter(source.shape)
    return (value.moved(op.builder.reshaped(source, [1 if axis in new else next(sizes) for axis in range(rank)])),)


def _expand(op: OpContext) -> tuple[Value, ...]:
    value = op.held_in_order(0)
    wanted = list(op.integers("shape", 1) or ())
    if len(wanted) > MAXIMUM_DIMENSIONS:
        raise op.unsupported(
            f"a shape of {len(wanted)} dimensions is not supported", f"use at most {MAXIMUM_DIMENSIONS}"
        )
    try:
        shape = np.broadcast_shapes(value.shape, tuple(wanted))
    except ValueError:
        raise GraphError(op.node.place, f"{value.tensor} does not broadcast to {wanted}") from None
    if shape == value.shape:
        return (value,)
    return (value.moved(op.moved(ops.BroadcastTo(), value.tensor, shape)),)


def _range(op: OpContext) -> tuple[Value, ...]:
    """Count from a computed start in computed steps, as far as the declared shape says."""
    numbers = op.tensor(0), op.tensor(2)
    if any(tensor.elements != 1 for tensor in numbers):
        raise GraphError(op.node.place, f"the start {numbers[0]} and the step {numbers[1]} are not one number each")
    start, step = (op.builder.reshaped(tensor, ()) for tensor in numbers)
    # The length of the result is the number of steps that the file declares.
    (count,) = op.declared(next(index for index in range(3) if not op.is_constant(index)), "limits", 1)
    if start.dtype is not step.dtype or start.dtype not in {DType.INT16, DType.INT32, DType.INT64, DType.FLOAT32}:
        raise op.type_unsupported(start, "int16, int32, int64 or float32 for all inputs")
    op.not_read(1)
    # Arithmetic has no int16 without a scale.
    wide = DType.INT32 if start.dtype is DType.INT16 else start.dtype
    op.check_room((count,), wide.size)
    places = op.weights("places", np.arange(count).astype(wide.numpy))
    distances = op.multiply(places, op.cast(step, wide))
    return (op.made(op.cast(op.add(distances, op.cast(start, wide)), start.dtype)),)


def _tile(op: OpContext) -> tuple[Value, ...]:
    value = op.held(0)
    repeats = list(op.integers("repeats", 1) or ())
    if len(repeats) != value.rank or min(repeats, default=1) < 0:
        raise GraphError(op.node.place, f"repeats {repeats} do not fit {value.tensor}")
    tensor, multiples = value.tensor, [repeats[axis] for axis in value.order]
    repeated = [axis for axis, count in enumerate(multiples) if count != 1]
    for start in range(0, len(repeated), _TILED_AT_ONCE):
        now = repeated[start : start + _TILED_AT_ONCE]
        counts = tuple(count if axis in now else 1 for axis, count in enumerate(multiples))
        shape = [size * count for size, count in zip(tensor.shape, counts, strict=True)]
        tensor = op.moved(ops.Tile(counts), tensor, shape)
    return (value.moved(tensor, value.order),)


_TILED_AT_ONCE = 2
"""Each repeated dimension takes two dimensions of the kernel that moves elements, whose number is limited."""


def _split(op: OpContext) -> tuple[Value, ...]:
    value = op.held(0)
    axis = op.axis(op.integer("axis", 0), value.rank)
    size, count = value.shape[axis], len(op.node.outputs)
    lengths = op.integers("split", 1)
    if op.integer("num_outputs", count) != count:
        raise GraphError(op.node.place, f"attribute num_outputs is {op.integer('num_outputs', 0)}, has {count}")
    if lengths is None:
        # Since version 18: all parts are equally long, and only the last one may be shorter.
        longest = -(-size // count)
        lengths = (*(longest for _ in range(count - 1)), size - longest * (count - 1))
    if len(lengths) != count or sum(lengths) != size or min(lengths) < 0:
        raise GraphError(op.node.place, f"{list(lengths)} do not make {count} parts of {size} elements")
    if count == 1:
        return (value,)
    stored = value.stored(axis)
    shape = value.tensor.shape
    # Parts of other lengths than the first have a shape of their own.
    shapes = [(*shape[:stored], length, *shape[stored + 1 :]) for length in lengths]
    return tuple(value.moved(part, value.order) for part in op.outputs(ops.Split(stored), value.tensor, shapes))


def _concat(op: OpContext) -> tuple[Value, ...]:
    values = [op.held(index) for index in range(len(op.node.inputs))]
    if len(values) == 1:
        op.axis(op.integer("axis", 1), values[0].rank)
        return (values[0],)
    if len({value.rank for value in values}) > 1:
        raise GraphError(op.node.place, "takes tensors of one rank")
    quantization = _common_quantization(op, values)
    if quantization is None:
        values = [op.builder.plain(value) for value in values]
    order = common_order(values)
    tensors = [op.builder.stored(value, order) for value in values]
    if quantization is not None:
        # The integers of the result: those of the target, or of the first quantised part.
        dtype = op.target.holder if op.target is not None else next(t.dtype for t in tensors if t.quantization)
        brought = [op.brought_to(tensor, quantization, dtype) for tensor in tensors]
        # The scales of one input do not allow integers, so that all are joined in float32.
        if None in brought:
            return _concat_real(op, values, order)
        tensors = [tensor for tensor in brought if tensor is not None]
    return (values[0].moved(_joined(op, tensors, order), order),)


def _concat_real(op: OpContext, values: Sequence[Value], order: Order) -> tuple[Value, ...]:
    tensors = [op.builder.stored(op.builder.plain(value), order) for value in values]
    return (op.made(_joined(op, tensors, order), order),)


def _joined(op: OpContext, tensors: Sequence[Tensor], order: Order) -> Tensor:
    axis = order.index(op.axis(op.integer("axis", 1), len(order)))
    shape = list(tensors[0].shape)
    shape[axis] = sum(tensor.shape[axis] for tensor in tensors)
    return op.emit(ops.Concatenation(axis), tensors, shape, quantization=tensors[0].quantization)


def _common_quantization(op: OpContext, values: Sequence[Value]) -> Quantization | None:
    """Return the quantisation with which float32 values are joined as int8, ``None`` to join them unchanged."""
    if all(value.quantization is None for value in values):
        return None
    if op.held_target is not None:
        return op.held_target
    first = values[0].quantization
    return first if all(value.quantization == first for value in values) else None


def _space_to_depth(op: OpContext) -> tuple[Value, ...]:
    value, block = _image_and_block(op)
    source, size = op.builder.stored(value, channels_last(4)), max(block, 1)
    batch, rows, columns, channels = source.shape
    shape = (batch, rows // size, columns // size, channels * size * size)
    # The operator of the graph has the order DCR: the position in the block first, then the depth.
    made = op.moved(ops.SpaceToDepth(block), source, shape)
    if _channel_order(op) == "CRD":
        made = _transposed_channels(op, made, (size * size, channels))
    return (value.moved(made, channels_last(4)),)


def _channel_order(op: OpContext) -> str:
    """Return the order of the channels: depth varies fastest in DCR, the position in the block in CRD."""
    mode = op.text("mode", "DCR")
    if mode not in {"DCR", "CRD"}:
        raise GraphError(op.node.place, f"attribute mode is {mode!r}")
    return mode


def _transposed_channels(op: OpContext, tensor: Tensor, sizes: tuple[int, int]) -> Tensor:
    """Return ``tensor`` with its channels, a row-major matrix of ``sizes``, transposed."""
    outer = tensor.shape[:3]
    split = op.builder.reshaped(tensor, (*outer, *sizes))
    swapped = op.moved(ops.Transpose((0, 1, 2, 4, 3)), split, (*outer, *reversed(sizes)))
    return op.builder.reshaped(swapped, tensor.shape)


def _depth_to_space(op: OpContext) -> tuple[Value, ...]:
    value, block = _image_and_block(op)
    source, size = op.builder.stored(value, channels_last(4)), max(block, 1)
    batch, rows, columns, channels = source.shape
    depth = channels // (size * size)
    shape = (batch, rows * size, columns * size, depth)
    if depth * size * size != channels or block < 1:
        raise GraphError(op.node.place, f"cannot make blocks of {block} of {source}")
    if _channel_order(op) == "CRD":
        source = _transposed_channels(op, source, (depth, size * size))
    return (value.moved(op.moved(ops.DepthToSpace(block), source, shape), channels_last(4)),)


def _image_and_block(op: OpContext) -> tuple[Value, int]:
    value = op.held(0)
    if value.rank != 4:
        raise GraphError(op.node.place, f"takes images, not {value.tensor}")
    return value, op.integer("blocksize", 0)


OPERATORS: Mapping[str, Converter] = {
    "Concat": _concat,
    "DepthToSpace": _depth_to_space,
    "Dropout": _dropout,
    "Expand": _expand,
    "Flatten": _flatten,
    "Identity": lambda op: (op.held(0),),
    "Range": _range,
    "Reshape": _reshape,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
