"""SLICE and STRIDED_SLICE."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import integers
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops
from mlfbuild.native.graph.ops import Steps


def _slice(site: TfliteSite) -> Operator:
    shape = site.input(0).shape
    starts, sizes = integers(site, 1, "begin", len(shape)), integers(site, 2, "size", len(shape))
    counts = [size - start if count == -1 else count for size, start, count in zip(shape, starts, sizes, strict=True)]
    return ops.Slice(tuple(Steps(start, 1, count) for start, count in zip(starts, counts, strict=True)))


def _strided_slice(site: TfliteSite) -> Operator:
    shape = site.input(0).shape
    with reading(site.place):
        options = site.read_options("StridedSliceOptions")
        masks = options.BeginMask(), options.EndMask(), options.ShrinkAxisMask()
        if options.EllipsisMask() or options.NewAxisMask():
            raise site.unsupported("ellipsis and new axes are not supported", "give every dimension a begin and an end")
        relative = bool(options.Offset())
    starts = integers(site, 1, "begin", len(shape))
    ends = integers(site, 2, "end", len(shape))
    strides = integers(site, 3, "strides", len(shape))
    if 0 in strides:
        raise site.wrong(f"strides {strides} must not be 0")
    if relative:
        ends = [start + end for start, end in zip(starts, ends, strict=True)]
    steps = [_steps(axis, size, (starts[axis], ends[axis], strides[axis]), masks) for axis, size in enumerate(shape)]
    return ops.StridedSlice(tuple(steps), tuple(axis for axis in range(len(shape)) if masks[2] >> axis & 1))


def _steps(axis: int, size: int, bounds: tuple[int, int, int], masks: tuple[int, int, int]) -> Steps:
    """Return the positions of one dimension; ``bounds`` are (begin, end, stride), which bits of ``masks`` override."""
    start, end, stride = bounds
    begin_mask, end_mask, shrink_mask = (mask >> axis & 1 for mask in masks)
    first = slice(None if begin_mask else start, None, stride).indices(size)[0]
    if shrink_mask:
        return Steps(first, 1, 1)
    return Steps.of(range(*slice(None if begin_mask else start, None if end_mask else end, stride).indices(size)))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.SLICE: OperatorKind(_slice, 1, 2),
    BuiltinOperator.STRIDED_SLICE: OperatorKind(_strided_slice, 1, 3),
}
