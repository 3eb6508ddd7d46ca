"""DFT and STFT."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import GraphError, Tensor, ops

_AXIS_IS_AN_INPUT_SINCE = 20


def _dft(site: OnnxSite) -> tuple[Value, ...]:
    source = site.tensor(0)
    rank = len(source.shape)
    if site.opset < _AXIS_IS_AN_INPUT_SINCE:
        wanted = site.integer("axis", 1)
    else:
        wanted = site.constant_integer(2, "axis") if site.has(2) else -2
    axis = site.axis(wanted, rank)
    if axis == rank - 1:
        raise GraphError(site.node.place, f"transforms dimension {axis}, which has the parts of complex numbers")
    inverse, half = site.integer("inverse", 0) != 0, site.integer("onesided", 0) != 0
    mirrored = inverse and half
    samples = source.shape[axis]
    default = 2 * (samples - 1) if mirrored else samples
    length = site.constant_integer(1, "length") if site.has(1) else default
    bins = length // 2 + 1 if half and not inverse else length
    sizes = (math.prod(source.shape[:axis]), samples, math.prod(source.shape[axis + 1 : -1]), source.shape[-1])
    operator = ops.Dft(length, 1, inverse, mirrored)
    parts = 1 if mirrored else 2
    made = _transformed(site, operator, [site.builder.reshaped(source, sizes)], (sizes[0], 1, bins, sizes[2], parts))
    return (site.made(site.builder.reshaped(made, (*source.shape[:axis], bins, *source.shape[axis + 1 : -1], parts))),)


def _stft(site: OnnxSite) -> tuple[Value, ...]:
    source, step = site.tensor(0), site.constant_integer(1, "step of frames")
    if len(source.shape) == 2:
        source = site.builder.reshaped(source, (*source.shape, 1))
    if len(source.shape) != 3:
        raise GraphError(site.node.place, f"the signal {source} must have 2 or 3 dimensions")
    batch, samples, parts = source.shape
    window = [site.tensor(2)] if site.has(2) else []
    length = window[0].elements if window else samples
    if site.has(3):
        length = site.constant_integer(3, "length of frames")
    if step < 1 or not 1 <= length <= samples:
        raise GraphError(site.node.place, f"frames of {length} samples every {step} do not fit {source}")
    frames = (samples - length) // step + 1
    bins = length // 2 + 1 if site.integer("onesided", 1) else length
    row = site.builder.reshaped(source, (batch, samples, 1, parts))
    made = _transformed(site, ops.Dft(length, step), [row, *window], (batch, frames, bins, 1, 2))
    return (site.made(site.builder.reshaped(made, (batch, frames, bins, 2))),)


def _transformed(site: OnnxSite, operator: ops.Dft, inputs: list[Tensor], shape: tuple[int, ...]) -> Tensor:
    if operator.length < 1:
        raise GraphError(site.node.place, f"transforms {operator.length} samples")
    return site.emit(operator, inputs, shape)


OPERATORS: Mapping[str, Converter] = {
    "DFT": _dft,
    "STFT": _stft,
}
