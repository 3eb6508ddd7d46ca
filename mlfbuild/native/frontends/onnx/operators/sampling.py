"""GridSample, RoiAlign and DeformConv."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter
from mlfbuild.native.frontends.onnx.conversion.image import lines
from mlfbuild.native.frontends.onnx.layout import Value, channels_last
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import DType, GraphError, Tensor, ops
from mlfbuild.native.graph.ops import Interpolation, Outside

_MODES = {
    "nearest": Interpolation.NEAREST,
    "linear": Interpolation.LINEAR,
    "bilinear": Interpolation.LINEAR,
    "cubic": Interpolation.CUBIC,
    "bicubic": Interpolation.CUBIC,
}
_HALF_PIXEL_SINCE = 16
"""The version of RoiAlign that has coordinate_transformation_mode, by ONNX's version of its operators."""


def _grid_sample(op: OpContext) -> tuple[Value, ...]:
    value, grid = op.value(0), op.tensor(1)
    mode, outside = op.text("mode", "linear"), op.text("padding_mode", "zeros")
    if mode not in _MODES or outside.upper() not in Outside.__members__:
        raise GraphError(op.node.place, f"attribute mode is {mode!r}, and padding_mode {outside!r}")
    if not 3 <= value.rank <= 5 or len(grid.shape) != value.rank:
        raise op.unsupported(
            f"an image of {value.rank} dimensions and a grid of {len(grid.shape)} are not supported",
            "use images of up to 3 spatial dimensions, and a grid of as many dimensions as the image",
        )
    operator = ops.GridSample(_MODES[mode], Outside[outside.upper()], op.integer("align_corners", 0) != 0)
    source = _image(op, value)
    made = op.emit(operator, [source, grid], (*grid.shape[:-1], source.shape[-1]))
    return (Value(made, channels_last(value.rank)),)


def _roi_align(op: OpContext) -> tuple[Value, ...]:
    default = "half_pixel" if op.opset >= _HALF_PIXEL_SINCE else "output_half_pixel"
    place, mode = op.text("coordinate_transformation_mode", default), op.text("mode", "avg").lower()
    if place not in {"half_pixel", "output_half_pixel"} or mode not in {"avg", "max"}:
        raise GraphError(op.node.place, f"attribute mode is {mode!r}, and coordinate_transformation_mode {place!r}")
    value, boxes, images = op.value(0), op.tensor(1), op.tensor(2)
    if value.rank != 4:
        raise GraphError(op.node.place, f"{value.tensor} is not a batch of images with 4 dimensions")
    if images.dtype is not DType.INT64:
        raise op.type_unsupported(images, "int64")
    size = op.integer("output_height", 1), op.integer("output_width", 1)
    operator = ops.RoiAlign(
        size, max(op.integer("sampling_ratio", 0), 0), op.real_attribute("spatial_scale", 1.0),
        half_pixel=place == "half_pixel", greatest=mode == "max",
    )  # fmt: skip
    source = _image(op, value)
    made = op.emit(operator, [source, boxes, images], (*images.shape, *size, source.shape[3]))
    return (Value(made, channels_last(4)),)


def _deform_conv(op: OpContext) -> tuple[Value, ...]:
    value, weights, offsets = op.value(0), op.value(1), op.value(2)
    if value.rank != 4 or weights.rank != 4 or offsets.rank != 4:
        raise op.unsupported("only images of 2 dimensions are supported", "use 2-D images")
    if op.integers("kernel_shape") not in {None, weights.shape[2:]}:
        raise GraphError(op.node.place, f"attribute kernel_shape does not fit the filter {list(weights.shape)}")
    rows, columns = lines(op, value.shape[2:], weights.shape[2:])
    filters = op.builder.stored(weights, (2, 3, 1, 0))
    outputs = weights.shape[0]
    bias = op.tensor(3) if op.has(3) else op.filled("bias", (outputs,), 0.0, "float32")
    mask = [_image(op, op.value(4))] if op.has(4) else []
    operator = ops.DeformConv(
        (rows.stride, columns.stride), (rows.dilation, columns.dilation), (rows.padding[0], columns.padding[0]),
        op.integer("group", 1), op.integer("offset_group", 1),
    )  # fmt: skip
    if min(operator.groups, operator.offset_groups) < 1:
        raise GraphError(
            op.node.place, f"attribute group is {operator.groups}, and offset_group {operator.offset_groups}"
        )
    shape = (value.shape[0], rows.output, columns.output, outputs)
    made = op.emit(operator, [_image(op, value), filters, _image(op, offsets), bias, *mask], shape)
    return (Value(made, channels_last(4)),)


def _image(op: OpContext, value: Value) -> Tensor:
    return op.builder.stored(value, channels_last(value.rank))


OPERATORS: Mapping[str, Converter] = {
    "DeformConv": _deform_conv,
    "GridSample": _grid_sample,
    "RoiAlign": _roi_align,
}
