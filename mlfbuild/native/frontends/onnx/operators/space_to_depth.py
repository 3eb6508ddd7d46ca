"""SpaceToDepth and DepthToSpace."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value, channels_last
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import GraphError, Tensor, ops


def _space_to_depth(site: OnnxSite) -> tuple[Value, ...]:
    value, block = _image(site)
    source, size = site.builder.stored(value, channels_last(4)), max(block, 1)
    batch, rows, columns, channels = source.shape
    shape = (batch, rows // size, columns // size, channels * size * size)
    made = site.moved(ops.SpaceToDepth(block), source, shape)
    if _mode(site) == "CRD":
        made = _transposed_channels(site, made, (size * size, channels))
    return (value.moved(made, channels_last(4)),)


def _mode(site: OnnxSite) -> str:
    """Return the order of the channels: depth varies fastest in DCR, the position in the block in CRD."""
    mode = site.text("mode", "DCR")
    if mode not in {"DCR", "CRD"}:
        raise GraphError(site.node.place, f"attribute mode is {mode!r}")
    return mode


def _transposed_channels(site: OnnxSite, tensor: Tensor, sizes: tuple[int, int]) -> Tensor:
    """Return ``tensor`` with its channels, a row-major matrix of ``sizes``, transposed."""
    outer = tensor.shape[:3]
    split = site.builder.reshaped(tensor, (*outer, *sizes))
    swapped = site.moved(ops.Transpose((0, 1, 2, 4, 3)), split, (*outer, *reversed(sizes)))
    return site.builder.reshaped(swapped, tensor.shape)


def _depth_to_space(site: OnnxSite) -> tuple[Value, ...]:
    value, block = _image(site)
    source, size = site.builder.stored(value, channels_last(4)), max(block, 1)
    batch, rows, columns, channels = source.shape
    depth = channels // (size * size)
    shape = (batch, rows * size, columns * size, depth)
    if depth * size * size != channels or block < 1:
        raise GraphError(site.node.place, f"cannot make blocks of {block} of {source}")
    if _mode(site) == "CRD":
        source = _transposed_channels(site, source, (depth, size * size))
    return (value.moved(site.moved(ops.DepthToSpace(block), source, shape), channels_last(4)),)


def _image(site: OnnxSite) -> tuple[Value, int]:
    value = site.held(0)
    if value.rank != 4:
        raise GraphError(site.node.place, f"takes images, not {value.tensor}")
    return value, site.integer("blocksize", 0)


OPERATORS: Mapping[str, Converter] = {
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
}
