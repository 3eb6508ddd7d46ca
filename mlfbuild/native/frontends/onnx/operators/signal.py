"""DFT, STFT and Col2Im."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.conversion.image import lines
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import GraphError, Tensor, ops


def _col2im(op: OpContext) -> tuple[Value, ...]:
    source, size, block = op.tensor(0), op.integers("image_shape", 1) or (), op.integers("block_shape", 2) or ()
    if len(source.shape) != 3 or not 1 <= len(size) <= 3:
        raise op.unsupported(
            f"images of {len(size)} dimensions from {source} are not supported", "use images of up to 3 dimensions"
        )
    windows = lines(op, size, block)
    taps = math.prod(block)
    if source.shape[1] % taps or math.prod(line.output for line in windows) != source.shape[2]:
        raise GraphError(op.node.place, f"windows {list(block)} in images {list(size)} do not fit {source}")
    flat = (1,) * (3 - len(size))
    operator = ops.Col2Im(
        (*flat, *size), (*flat, *block),
        (*flat, *(line.stride for line in windows)), (*flat, *(line.dilation for line in windows)),
        (*(0 for _ in flat), *(line.padding[0] for line in windows)), (*flat, *(line.output for line in windows)),
    )  # fmt: skip
    images = source.shape[0] * (source.shape[1] // taps)
    rows = op.builder.reshaped(source, (images, taps, source.shape[2]))
    made = op.emit(operator, [rows], (images, *operator.size))
    return (op.made(op.builder.reshaped(made, (source.shape[0], images // source.shape[0], *size))),)


_AXIS_IS_AN_INPUT_SINCE = 20


def _dft(op: OpContext) -> tuple[Value, ...]:
    source = op.tensor(0)
    rank = len(source.shape)
    if op.opset < _AXIS_IS_AN_INPUT_SINCE:
        # The axis moved from an attribute to an input in opset 20, with another default.
        wanted = op.integer("axis", 1)
    else:
        wanted = op.constant_integer(2, "axis") if op.has(2) else -2
    axis = op.axis(wanted, rank)
    if axis == rank - 1:
        raise GraphError(op.node.place, f"transforms dimension {axis}, which has the parts of complex numbers")
    inverse, half = op.integer("inverse", 0) != 0, op.integer("onesided", 0) != 0
    mirrored = inverse and half
    samples = source.shape[axis]
    # The inverse of half a spectrum has an even number of samples unless the length is given.
    default = 2 * (samples - 1) if mirrored else samples
    length = op.constant_integer(1, "length") if op.has(1) else default
    bins = length // 2 + 1 if half and not inverse else length
    sizes = (math.prod(source.shape[:axis]), samples, math.prod(source.shape[axis + 1 : -1]), source.shape[-1])
    operator = ops.Dft(length, 1, inverse, mirrored)
    parts = 1 if mirrored else 2
    made = _transformed(op, operator, [op.builder.reshaped(source, sizes)], (sizes[0], 1, bins, sizes[2], parts))
    return (op.made(op.builder.reshaped(made, (*source.shape[:axis], bins, *source.shape[axis + 1 : -1], parts))),)


def _stft(op: OpContext) -> tuple[Value, ...]:
    source, step = op.tensor(0), op.constant_integer(1, "step of frames")
    if len(source.shape) == 2:
        # A real signal may come without a last dimension.
        source = op.builder.reshaped(source, (*source.shape, 1))
    if len(source.shape) != 3:
        raise GraphError(op.node.place, f"the signal {source} must have 2 or 3 dimensions")
    batch, samples, parts = source.shape
    window = [op.tensor(2)] if op.has(2) else []
    length = window[0].elements if window else samples
    if op.has(3):
        length = op.constant_integer(3, "length of frames")
    if step < 1 or not 1 <= length <= samples:
        raise GraphError(op.node.place, f"frames of {length} samples every {step} do not fit {source}")
    # Only frames that are complete, as ONNX's STFT has no padding.
    frames = (samples - length) // step + 1
    bins = length // 2 + 1 if op.integer("onesided", 1) else length
    row = op.builder.reshaped(source, (batch, samples, 1, parts))
    made = _transformed(op, ops.Dft(length, step), [row, *window], (batch, frames, bins, 1, 2))
    return (op.made(op.builder.reshaped(made, (batch, frames, bins, 2))),)


def _transformed(op: OpContext, operator: ops.Dft, inputs: list[Tensor], shape: tuple[int, ...]) -> Tensor:
    if operator.length < 1:
        raise GraphError(op.node.place, f"transforms {operator.length} samples")
    return op.emit(operator, inputs, shape)


OPERATORS: Mapping[str, Converter] = {
    "Col2Im": _col2im,
    "DFT": _dft,
    "STFT": _stft,
}
