"""Conv; on volumes, it is the sum of one image convolution for each depth of the filter."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.conversion.convolution import check_filter, conv, convolved_image
from mlfbuild.native.frontends.onnx.conversion.image import WindowLine, across, lines
from mlfbuild.native.frontends.onnx.conversion.parameters import LayerParameters, real_parameters
from mlfbuild.native.frontends.onnx.layout import Value, channels_last
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import Tensor, ops
from mlfbuild.native.graph.ops import Steps

_MOST_TAPS = 64


def _of_volumes(op: OpContext, value: Value, parameters: LayerParameters) -> Value:
    check_filter(op, value, parameters.weights.shape)
    depth, rows, columns = lines(op, value.shape[2:], parameters.weights.shape[2:])
    if depth.filter > _MOST_TAPS:
        raise op.unsupported(f"a filter {depth.filter} deep is not supported", f"use a depth of at most {_MOST_TAPS}")
    # The graph has convolutions of images only: each depth of the filter is one of them.
    source = _padded(op, op.builder.stored(value, channels_last(5)), depth)

    def at_depth(tap: int) -> Tensor:
        # The bias is added once, with the first depth.
        own = LayerParameters(parameters.weights[:, :, tap], None if tap else parameters.bias)
        return op.required(convolved_image(op, _slices(op, source, depth, tap), own, across(rows, columns), None))

    total = op.summed(map(at_depth, range(depth.filter)))
    made = op.builder.reshaped(total, (source.shape[0], depth.output, *total.shape[1:]))
    return Value(made, channels_last(5))


def _padded(op: OpContext, source: Tensor, depth: WindowLine) -> Tensor:
    """Return the volume ``source`` [batch, depth, height, width, channels], padded with zeros along the depth."""
    if not any(depth.padding):
        return source
    paddings = ((0, 0), depth.padding, (0, 0), (0, 0), (0, 0))
    shape = [size + sum(pair) for size, pair in zip(source.shape, paddings, strict=True)]
    return op.moved(ops.Pad(paddings), source, shape)


def _slices(op: OpContext, source: Tensor, depth: WindowLine, tap: int) -> Tensor:
    """Return the images that depth ``tap`` of the filter covers, one per output position, joined in the batch."""
    # Depth is moved into the batch, so that one convolution computes all output depths of this tap.
    seen = Steps(tap * depth.dilation, depth.stride, depth.output)
    shape = (source.shape[0], depth.output, *source.shape[2:])
    steps = (Steps(0, 1, shape[0]), seen, *(Steps(0, 1, size) for size in shape[2:]))
    part = op.moved(ops.StridedSlice(steps), source, shape)
    return op.builder.reshaped(part, (shape[0] * shape[1], *shape[2:]))


OPERATORS: Mapping[str, Converter] = {
    "Conv": lambda op: (_of_volumes(op, op.value(0), real_parameters(op)),) if op.held(0).rank == 5 else conv(op),
}
