"""Operators that move elements to other places without computing with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tflite.MirrorPadMode import MirrorPadMode

from mlfbuild.native.frontends.tflite.operators.site import ANY_NUMBER, TfliteRow, TfliteSite
from mlfbuild.native.graph import Operator, ops
from mlfbuild.native.graph.bases import same_quantization
from mlfbuild.native.graph.ops import Steps

_Margins = tuple[tuple[int, int], ...]


def _shaped(operator: Operator, index: int = 1, what: str = "shape") -> Callable[[TfliteSite], Operator]:
    """Return a reader of ``operator``, whose constant input ``index`` is the shape of its output."""

    def read(site: TfliteSite) -> Operator:
        site.check_shape(index, what)
        return operator

    return read


def _concatenation(site: TfliteSite, axis: int, activation: int) -> Operator:
    site.check_no_activation(activation)
    return ops.Concatenation(site.dimension(axis, len(site.input(0).shape)))


def _pack(site: TfliteSite, axis: int, count: int) -> Operator:
    if count != len(site.inputs):
        raise site.wrong(f"packs {count} tensors, but has {len(site.inputs)} inputs")
    return ops.Pack(site.dimension(axis, len(site.input(0).shape) + 1))


def _unpack(site: TfliteSite, axis: int, count: int) -> Operator:
    _check_parts(site, count)
    return ops.Unpack(site.dimension(axis, len(site.input(0).shape)))


def _split(site: TfliteSite, count: int) -> Operator:
    _check_parts(site, count)
    return ops.Split(site.dimension_in(1, len(site.input(0).shape)))


def _check_parts(site: TfliteSite, count: int) -> None:
    """Refuse another number of outputs than ``count``."""
    if count != len(site.outputs):
        raise site.wrong(f"makes {count} tensors, but has {len(site.outputs)} outputs")


def _split_v(site: TfliteSite) -> Operator:
    sizes = site.constant(1, "sizes").tolist()
    axis = site.dimension_in(2, len(site.input(0).shape))
    lengths = [output.shape[axis] if axis < len(output.shape) else 0 for output in site.outputs]
    known = sum(size for size in sizes if size != -1)
    # -1 is what the other sizes leave, as in TensorFlow.
    if [site.input(0).shape[axis] - known if size == -1 else size for size in sizes] != lengths:
        raise site.wrong(f"the sizes {sizes} are not those of its outputs, {lengths}")
    return ops.SplitV(axis)


def _gather(site: TfliteSite, axis: int, common: int) -> Operator:
    axis, rank = site.dimension(axis, len(site.input(0).shape)), len(site.input(1).shape)
    if not -rank <= common <= rank:
        raise site.wrong(f"{common} common dimensions do not fit {site.input(1)}")
    # Negative ``batch_dims`` count from the end of the indices.
    return ops.Gather(axis, common + rank if common < 0 else common)


def _reverse(site: TfliteSite) -> Operator:
    rank = len(site.input(0).shape)
    return ops.ReverseV2(tuple(site.dimension(int(axis), rank) for axis in site.constant(1, "axes")))


def _transpose(site: TfliteSite) -> Operator:
    rank = len(site.input(0).shape)
    return ops.Transpose(tuple(site.dimension(axis, rank) for axis in site.integers(1, "permutation", rank)))


def _paddings(site: TfliteSite) -> _Margins:
    paddings = site.constant(1, "paddings")
    if paddings.size != 2 * len(site.input(0).shape):
        raise site.wrong(f"{paddings.size} paddings do not fit {site.input(0)}")
    return tuple((int(before), int(after)) for before, after in paddings.reshape(-1, 2))


def _padv2(site: TfliteSite) -> Operator:
    source, filling = site.input(0), site.input(2)
    if filling.data is None:
        raise site.unsupported(f"the value {filling} must be constant", code="input-not-constant")
    if filling.dtype is not source.dtype or filling.elements != 1:
        raise site.wrong(f"the value {filling} must be one element of the type of {source}")
    # The stored value is copied, so that it must be in the scale of the output.
    reason = same_quantization(filling, site.output())
    if reason is not None:
        raise site.wrong(reason)
    return ops.PadV2(_paddings(site), filling.data.reshape(-1)[0].item())


def _mirror_pad(site: TfliteSite, mode: int) -> Operator:
    if mode not in {MirrorPadMode.REFLECT, MirrorPadMode.SYMMETRIC}:
        raise site.wrong(f"mode {mode} is neither REFLECT nor SYMMETRIC")
    return ops.MirrorPad(_paddings(site), mode == MirrorPadMode.SYMMETRIC)


def _blocks(site: TfliteSite) -> tuple[tuple[int, ...], _Margins]:
    """Return the block and the margins (before and after, per dimension of the block)."""
    # Paddings and crops are rows of two, one for each dimension of the block.
    block, margins = site.constant(1, "block").tolist(), site.constant(2, "margins")
    if margins.size != 2 * len(block):
        raise site.wrong(f"{margins.size} margins do not fit blocks {block}")
    return tuple(block), tuple((int(before), int(after)) for before, after in margins.reshape(-1, 2))


def _slice(site: TfliteSite) -> Operator:
    shape = site.input(0).shape
    starts, sizes = site.integers(1, "begin", len(shape)), site.integers(2, "size", len(shape))
    # A size of -1 extends to the end of the dimension.
    counts = [size - start if count == -1 else count for size, start, count in zip(shape, starts, sizes, strict=True)]
    return ops.Slice(tuple(Steps(start, 1, count) for start, count in zip(starts, counts, strict=True)))


def _strided_slice(
    site: TfliteSite, begin: int, end: int, shrink: int, ellipsis: int, new_axis: int, relative: object
) -> Operator:
    """Return the slice; ``begin`` to ``new_axis`` are masks with a bit for each dimension."""
    shape = site.input(0).shape
    if ellipsis or new_axis:
        raise site.unsupported("ellipsis and new axes are not supported", "give every dimension a begin and an end")
    starts, ends, strides = (
        site.integers(index, what, len(shape)) for index, what in enumerate(("begin", "end", "strides"), 1)
    )
    if 0 in strides:
        raise site.wrong(f"strides {strides} must not be 0")
    # The attribute ``offset``: ends count from the begins.
    if relative:
        ends = [start + end for start, end in zip(starts, ends, strict=True)]
    masks = begin, end, shrink
    steps = [_steps(axis, size, (starts[axis], ends[axis], strides[axis]), masks) for axis, size in enumerate(shape)]
    return ops.StridedSlice(tuple(steps), tuple(axis for axis in range(len(shape)) if shrink >> axis & 1))


def _steps(axis: int, size: int, bounds: tuple[int, int, int], masks: tuple[int, int, int]) -> Steps:
    """Return the positions of one dimension; ``bounds`` are (begin, end, stride), which bits of ``masks`` override."""
    start, end, stride = bounds
    begin_mask, end_mask, shrink_mask = (mask >> axis & 1 for mask in masks)
    # Python's slices have the rules of strided slices: negative numbers count from the end, and others are clamped.
    first = slice(None if begin_mask else start, None, stride).indices(size)[0]
    # One position, whatever the end and the stride are, as in TensorFlow.
    if shrink_mask:
        return Steps(first, 1, 1)
    return Steps.of(range(*slice(None if begin_mask else start, None if end_mask else end, stride).indices(size)))


def _reshape(site: TfliteSite) -> Operator:
    # The output's shape is used; a requested shape that is computed at run time could contradict it.
    if site.optional_input(1) is not None:
        wanted, shape = site.constant(1, "new shape").tolist(), site.output().shape
        if site.has_complex:
            # The parts of complex numbers are one more dimension, which the file does not count.
            wanted = [*([] if wanted == [0] else wanted), 2]
        whole = _whole(wanted, site.input(0).elements)
        if not _fits(shape, wanted) or (whole is not None and list(shape) != whole):
            raise site.misshapen(wanted if whole is None else whole)
    return ops.Reshape()


def _whole(wanted: Sequence[int], elements: int) -> list[int] | None:
    """Return ``wanted`` with the size of its -1, ``None`` if it does not have ``elements``."""
    if list(wanted) == [0]:
        return [] if elements == 1 else None
    known = math.prod(size for size in wanted if size != -1)
    if min(wanted, default=0) < -1 or wanted.count(-1) > 1 or (-1 in wanted and (known == 0 or elements % known)):
        return None
    whole = [elements // known if size == -1 else size for size in wanted]
    return whole if math.prod(whole) == elements else None


def _fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Return whether ``shape`` matches ``wanted``, in which -1 is any size; a ``wanted`` of [0] means a scalar."""
    if list(wanted) == [0]:
        return not shape
    return len(shape) == len(wanted) and all(size in {-1, real} for size, real in zip(wanted, shape, strict=True))


def _expand_dims(site: TfliteSite) -> Operator:
    shape = site.input(0).shape
    axis = site.dimension_in(1, len(shape) + (0 if site.has_complex else 1))
    wanted = (*shape[:axis], 1, *shape[axis:])
    if site.output().shape != wanted:
        raise site.misshapen(wanted)
    return ops.ExpandDims()


ROWS: Mapping[str, TfliteRow] = {
    "BATCH_TO_SPACE_ND": TfliteRow(lambda site: ops.BatchToSpaceNd(*_blocks(site)), 1, 2),
    "BROADCAST_TO": TfliteRow(_shaped(ops.BroadcastTo()), 1, 1),
    "CONCATENATION": TfliteRow(
        _concatenation, ANY_NUMBER, options=("ConcatenationOptions", "Axis", "FusedActivationFunction")
    ),
    "DEPTH_TO_SPACE": TfliteRow(lambda _, size: ops.DepthToSpace(size), options=("DepthToSpaceOptions", "BlockSize")),
    "EXPAND_DIMS": TfliteRow(_expand_dims, 1, 1),
    "FILL": TfliteRow(_shaped(ops.Fill()), 1, 1, order=(1, 0)),
    "GATHER": TfliteRow(_gather, 2, options=("GatherOptions", "Axis", "BatchDims")),
    "GATHER_ND": TfliteRow(lambda _: ops.GatherNd(), 2),
    "MIRROR_PAD": TfliteRow(_mirror_pad, 1, 1, ("MirrorPadOptions", "Mode")),
    "PACK": TfliteRow(_pack, ANY_NUMBER, options=("PackOptions", "Axis", "ValuesCount")),
    "PAD": TfliteRow(lambda site: ops.Pad(_paddings(site)), 1, 1),
    "PADV2": TfliteRow(_padv2, 1, 2),
    "RESHAPE": TfliteRow(_reshape, 1, 1),
    "REVERSE_SEQUENCE": TfliteRow(
        lambda _, axis, batch: ops.ReverseSequence(axis, batch), 2,
        options=("ReverseSequenceOptions", "SeqDim", "BatchDim"),
    ),
    "REVERSE_V2": TfliteRow(_reverse, 1, 1),
    "SCATTER_ND": TfliteRow(_shaped(ops.ScatterNd(), 2, "output shape"), 2, 1, order=(1, 0, 2)),
    "SLICE": TfliteRow(_slice, 1, 2),
    "SPACE_TO_BATCH_ND": TfliteRow(lambda site: ops.SpaceToBatchNd(*_blocks(site)), 1, 2),
    "SPACE_TO_DEPTH": TfliteRow(lambda _, size: ops.SpaceToDepth(size), options=("SpaceToDepthOptions", "BlockSize")),
    "SPLIT": TfliteRow(_split, 1, 1, ("SplitOptions", "NumSplits"), order=(1, 0)),
    "SPLIT_V": TfliteRow(_split_v, 1, 2),
    "STRIDED_SLICE": TfliteRow(
        _strided_slice, 1, 3,
        ("StridedSliceOptions", "BeginMask", "EndMask", "ShrinkAxisMask", "EllipsisMask", "NewAxisMask", "Offset"),
    ),
    "TILE": TfliteRow(lambda site: ops.Tile(tuple(site.integers(1, "multiples", len(site.input(0).shape)))), 1, 1),
    "TRANSPOSE": TfliteRow(_transpose, 1, 1),
    "UNPACK": TfliteRow(_unpack, options=("UnpackOptions", "Axis", "Num")),
}  # fmt: skip
