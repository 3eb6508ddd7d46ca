"""Col2Im."""

from __future__ import annotations

import math
from collections.abc import Mapping

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter
from mlfbuild.native.frontends.onnx.conversion.image import lines
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import GraphError, ops


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


OPERATORS: Mapping[str, Converter] = {
    "Col2Im": _col2im,
}
