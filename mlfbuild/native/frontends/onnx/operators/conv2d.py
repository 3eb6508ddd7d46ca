"""Conv; on volumes, it is the sum of one image convolution for each depth of the filter."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value, channels_last
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter, add
from mlfbuild.native.frontends.onnx.operators.convolution import check_filter, conv, convolved_image
from mlfbuild.native.frontends.onnx.operators.image import WindowLine, across, lines
from mlfbuild.native.frontends.onnx.operators.parameters import LayerParameters, real_parameters
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Tensor, ops
from mlfbuild.native.graph.ops import Steps

_MOST_TAPS = 64


def _conv(site: OnnxSite) -> tuple[Value, ...]:
    return (_of_volumes(site, site.value(0), real_parameters(site)),) if site.held(0).rank == 5 else conv(site)


def _of_volumes(site: OnnxSite, value: Value, parameters: LayerParameters) -> Value:
    check_filter(site, value, parameters.weights.shape)
    depth, rows, columns = lines(site, value.shape[2:], parameters.weights.shape[2:])
    if depth.filter > _MOST_TAPS:
        raise site.unsupported(f"a filter {depth.filter} deep is not supported", f"use a depth of at most {_MOST_TAPS}")
    source = _padded(site, site.builder.stored(value, channels_last(5)), depth)
    total: Tensor | None = None
    for tap in range(depth.filter):
        own = LayerParameters(parameters.weights[:, :, tap], None if tap else parameters.bias)
        part = convolved_image(site, _slices(site, source, depth, tap), own, across(rows, columns), None)
        assert part is not None
        total = part if total is None else add(site, total, part)
    assert total is not None
    made = site.builder.reshaped(total, (source.shape[0], depth.output, *total.shape[1:]))
    return Value(made, channels_last(5))


def _padded(site: OnnxSite, source: Tensor, depth: WindowLine) -> Tensor:
    """Return the volume ``source`` [batch, depth, height, width, channels], padded with zeros along the depth."""
    if not any(depth.padding):
        return source
    paddings = ((0, 0), depth.padding, (0, 0), (0, 0), (0, 0))
    shape = [size + sum(pair) for size, pair in zip(source.shape, paddings, strict=True)]
    return site.moved(ops.Pad(paddings), source, shape)


def _slices(site: OnnxSite, source: Tensor, depth: WindowLine, tap: int) -> Tensor:
    """Return the images that depth ``tap`` of the filter covers, one per output position, joined in the batch."""
    seen = Steps(tap * depth.dilation, depth.stride, depth.output)
    shape = (source.shape[0], depth.output, *source.shape[2:])
    steps = (Steps(0, 1, shape[0]), seen, *(Steps(0, 1, size) for size in shape[2:]))
    part = site.moved(ops.StridedSlice(steps), source, shape)
    return site.builder.reshaped(part, (shape[0] * shape[1], *shape[2:]))


OPERATORS: Mapping[str, Converter] = {
    "Conv": _conv,
}
