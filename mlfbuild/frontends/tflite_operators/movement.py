"""Operators that move elements and compute none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tflite.BuiltinOperator import BuiltinOperator
from tflite.MirrorPadMode import MirrorPadMode

from mlfbuild.frontends.tflite_operators.kind import ANY_NUMBER, OperatorKind
from mlfbuild.frontends.tflite_operators.site import Site
from mlfbuild.frontends.tflite_reader import reading
from mlfbuild.graph import Activation, Operator, ops
from mlfbuild.graph.ops.rules import same_quantization
from mlfbuild.graph.ops.slice import Steps


def _reshape(site: Site) -> Operator:
    # The output's own shape is the truth; one that is computed at run time would make it a guess.
    if len(site.inputs) > 1 and site.inputs[1] is not None:
        wanted, shape = site.constant(1, "new shape").tolist(), site.output().shape
        if not _fits(shape, wanted):
            raise site.wrong(f"{site.output()} should have the shape {wanted}")
    return ops.Reshape()


def _fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Return whether ``shape`` is what ``wanted`` says, in which -1 is any size, and the only size 0 a scalar."""
    if list(wanted) == [0]:
        return not shape
    return len(shape) == len(wanted) and all(size in {-1, real} for size, real in zip(wanted, shape, strict=True))


def _expand_dims(site: Site) -> Operator:
    shape = site.input(0).shape
    axis = _only_axis(site, 1, len(shape) + 1)
    wanted = (*shape[:axis], 1, *shape[axis:])
    if site.output().shape != wanted:
        raise site.wrong(f"{site.output()} should have the shape {list(wanted)}")
    return ops.ExpandDims()


def _dimension(site: Site, axis: int, rank: int) -> int:
    """Return ``axis`` counted from 0, of ``rank`` dimensions."""
    if not -rank <= axis < rank:
        raise site.wrong(f"axis {axis} is not one of {rank} dimensions")
    return axis % rank


def _concatenation(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options("ConcatenationOptions")
        axis, activation = options.Axis(), site.activation(options.FusedActivationFunction())
    if activation is not Activation.NONE:
        raise site.unsupported(f"fused activation {activation.name} is not supported here; put it behind")
    return ops.Concatenation(_dimension(site, axis, len(site.input(0).shape)))


def _pack(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options("PackOptions")
        axis, count = options.Axis(), options.ValuesCount()
    if count != len(site.inputs):
        raise site.wrong(f"packs {count} tensors, but has {len(site.inputs)} inputs")
    return ops.Pack(_dimension(site, axis, len(site.output().shape)))


def _unpack(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options("UnpackOptions")
        axis, count = options.Axis(), options.Num()
    _check_parts(site, count)
    return ops.Unpack(_dimension(site, axis, len(site.input(0).shape)))


def _check_parts(site: Site, count: int) -> None:
    if count != len(site.outputs):
        raise site.wrong(f"makes {count} tensors, but has {len(site.outputs)} outputs")


def _split(site: Site) -> Operator:
    with reading(site.place):
        count = site.read_options("SplitOptions").NumSplits()
    _check_parts(site, count)
    return ops.Split(_only_axis(site, 1, len(site.input(0).shape)))


def _split_v(site: Site) -> Operator:
    sizes = site.constant(1, "sizes").tolist()
    axis = _only_axis(site, 2, len(site.input(0).shape))
    lengths = [output.shape[axis] if axis < len(output.shape) else 0 for output in site.outputs]
    known = sum(size for size in sizes if size != -1)
    if [site.input(0).shape[axis] - known if size == -1 else size for size in sizes] != lengths:
        raise site.wrong(f"the sizes {sizes} are not those of its outputs, {lengths}")
    return ops.SplitV(axis)


def _only_axis(site: Site, index: int, rank: int) -> int:
    axes = site.constant(index, "axis")
    if axes.size != 1:
        raise site.wrong(f"has {axes.size} axes, takes 1")
    return _dimension(site, int(axes[0]), rank)


def _slice(site: Site) -> Operator:
    shape = site.input(0).shape
    starts, sizes = _integers(site, 1, "begin", len(shape)), _integers(site, 2, "size", len(shape))
    counts = [size - start if count == -1 else count for size, start, count in zip(shape, starts, sizes, strict=True)]
    return ops.Slice(tuple(Steps(start, 1, count) for start, count in zip(starts, counts, strict=True)))


def _strided_slice(site: Site) -> Operator:
    shape = site.input(0).shape
    with reading(site.place):
        options = site.read_options("StridedSliceOptions")
        masks = options.BeginMask(), options.EndMask(), options.ShrinkAxisMask()
        if options.EllipsisMask() or options.NewAxisMask():
            raise site.unsupported("ellipsis and new axes are not supported; give every dimension a begin and an end")
        relative = bool(options.Offset())
    starts = _integers(site, 1, "begin", len(shape))
    ends = _integers(site, 2, "end", len(shape))
    strides = _integers(site, 3, "strides", len(shape))
    if 0 in strides:
        raise site.wrong(f"strides {strides} must not be 0")
    if relative:
        ends = [start + end for start, end in zip(starts, ends, strict=True)]
    steps = [_steps(axis, size, (starts[axis], ends[axis], strides[axis]), masks) for axis, size in enumerate(shape)]
    return ops.StridedSlice(tuple(steps), tuple(axis for axis in range(len(shape)) if masks[2] >> axis & 1))


def _steps(axis: int, size: int, bounds: tuple[int, int, int], masks: tuple[int, int, int]) -> Steps:
    """Return the positions of one dimension; ``bounds`` are (begin, end, stride), bits of ``masks`` override them."""
    start, end, stride = bounds
    begin_mask, end_mask, shrink_mask = (mask >> axis & 1 for mask in masks)
    first = slice(None if begin_mask else start, None, stride).indices(size)[0]
    if shrink_mask:
        return Steps(first, 1, 1)
    return Steps.of(range(*slice(None if begin_mask else start, None if end_mask else end, stride).indices(size)))


def _integers(site: Site, index: int, what: str, count: int) -> list[int]:
    values = [int(value) for value in site.constant(index, what)]
    if len(values) != count:
        raise site.wrong(f"the {what} {values} does not fit {site.input(0)}")
    return values


def _transpose(site: Site) -> Operator:
    rank = len(site.input(0).shape)
    return ops.Transpose(tuple(_dimension(site, axis, rank) for axis in _integers(site, 1, "permutation", rank)))


def _tile(site: Site) -> Operator:
    return ops.Tile(tuple(_integers(site, 1, "multiples", len(site.input(0).shape))))


def _broadcast_to(site: Site) -> Operator:
    wanted = tuple(int(size) for size in site.constant(1, "shape"))
    if wanted != site.output().shape:
        raise site.wrong(f"{site.output()} should have the shape {list(wanted)}")
    return ops.BroadcastTo()


def _fill(site: Site) -> Operator:
    wanted = tuple(int(size) for size in site.constant(1, "shape"))
    if wanted != site.output().shape:
        raise site.wrong(f"{site.output()} should have the shape {list(wanted)}")
    return ops.Fill()


def _reverse(site: Site) -> Operator:
    rank = len(site.input(0).shape)
    return ops.ReverseV2(tuple(_dimension(site, int(axis), rank) for axis in site.constant(1, "axes")))


def _block(kind: type[ops.SpaceToDepth | ops.DepthToSpace]) -> Callable[[Site], Operator]:
    def read(site: Site) -> Operator:
        with reading(site.place):
            return kind(site.read_options(f"{kind.__name__}Options").BlockSize())

    return read


def _gather(site: Site) -> Operator:
    with reading(site.place):
        options = site.read_options("GatherOptions")
        axis = _dimension(site, options.Axis(), len(site.input(0).shape))
        common, rank = options.BatchDims(), len(site.input(1).shape)
    if not -rank <= common <= rank:
        raise site.wrong(f"{common} common dimensions do not fit {site.input(1)}")
    return ops.Gather(axis, common + rank if common < 0 else common)


def _phases(kind: type[ops.SpaceToBatchNd | ops.BatchToSpaceNd]) -> Callable[[Site], Operator]:
    def read(site: Site) -> Operator:
        block, margins = site.constant(1, "block").tolist(), site.constant(2, "margins")
        if margins.size != 2 * len(block):
            raise site.wrong(f"{margins.size} margins do not fit blocks {block}")
        return kind(tuple(block), tuple((int(before), int(after)) for before, after in margins.reshape(-1, 2)))

    return read


def _resize(kind: type[ops.ResizeBilinear | ops.ResizeNearestNeighbor]) -> Callable[[Site], Operator]:
    def read(site: Site) -> Operator:
        with reading(site.place):
            options = site.read_options(f"{kind.__name__}Options")
            operator = kind(bool(options.AlignCorners()), bool(options.HalfPixelCenters()))
        wanted = site.constant(1, "size").tolist()
        if list(site.output().shape[1:3]) != wanted:
            raise site.wrong(f"{site.output()} should have the height and width {wanted}")
        return operator

    return read


def _paddings(site: Site) -> tuple[tuple[int, int], ...]:
    paddings = site.constant(1, "paddings")
    if paddings.size != 2 * len(site.input(0).shape):
        raise site.wrong(f"{paddings.size} paddings do not fit {site.input(0)}")
    return tuple((int(before), int(after)) for before, after in paddings.reshape(-1, 2))


def _padv2(site: Site) -> Operator:
    source, filling = site.input(0), site.input(2)
    if filling.data is None:
        raise site.unsupported(f"the value {filling} must be constant")
    if filling.dtype is not source.dtype or filling.elements != 1:
        raise site.wrong(f"the value {filling} must be one element of the type of {source}")
    reason = same_quantization(filling, site.output())
    if reason is not None:
        raise site.wrong(reason)
    return ops.PadV2(_paddings(site), filling.data.reshape(-1)[0].item())


def _mirror_pad(site: Site) -> Operator:
    with reading(site.place):
        mode = site.read_options("MirrorPadOptions").Mode()
    if mode not in {MirrorPadMode.REFLECT, MirrorPadMode.SYMMETRIC}:
        raise site.wrong(f"mode {mode} is neither REFLECT nor SYMMETRIC")
    return ops.MirrorPad(_paddings(site), mode == MirrorPadMode.SYMMETRIC)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.BATCH_TO_SPACE_ND: OperatorKind(_phases(ops.BatchToSpaceNd), 1, 2),
    BuiltinOperator.BROADCAST_TO: OperatorKind(_broadcast_to, 1, 1),
    BuiltinOperator.CONCATENATION: OperatorKind(_concatenation, ANY_NUMBER),
    BuiltinOperator.DEPTH_TO_SPACE: OperatorKind(_block(ops.DepthToSpace), 1),
    BuiltinOperator.EXPAND_DIMS: OperatorKind(_expand_dims, 1, 1),
    BuiltinOperator.FILL: OperatorKind(_fill, 1, 1, order=(1, 0)),
    BuiltinOperator.GATHER: OperatorKind(_gather, 2),
    BuiltinOperator.GATHER_ND: OperatorKind(lambda _: ops.GatherNd(), 2),
    BuiltinOperator.MIRROR_PAD: OperatorKind(_mirror_pad, 1, 1),
    BuiltinOperator.PACK: OperatorKind(_pack, ANY_NUMBER),
    BuiltinOperator.PAD: OperatorKind(lambda site: ops.Pad(_paddings(site)), 1, 1),
    BuiltinOperator.PADV2: OperatorKind(_padv2, 1, 2),
    BuiltinOperator.RESHAPE: OperatorKind(_reshape, 1, 1),
    BuiltinOperator.RESIZE_BILINEAR: OperatorKind(_resize(ops.ResizeBilinear), 1, 1),
    BuiltinOperator.RESIZE_NEAREST_NEIGHBOR: OperatorKind(_resize(ops.ResizeNearestNeighbor), 1, 1),
    BuiltinOperator.REVERSE_V2: OperatorKind(_reverse, 1, 1),
    BuiltinOperator.SLICE: OperatorKind(_slice, 1, 2),
    BuiltinOperator.SPACE_TO_BATCH_ND: OperatorKind(_phases(ops.SpaceToBatchNd), 1, 2),
    BuiltinOperator.SPACE_TO_DEPTH: OperatorKind(_block(ops.SpaceToDepth), 1),
    BuiltinOperator.SPLIT: OperatorKind(_split, 1, 1, order=(1, 0)),
    BuiltinOperator.SPLIT_V: OperatorKind(_split_v, 1, 2),
    BuiltinOperator.SQUEEZE: OperatorKind(lambda _: ops.Squeeze(), 1),
    BuiltinOperator.STRIDED_SLICE: OperatorKind(_strided_slice, 1, 3),
    BuiltinOperator.TILE: OperatorKind(_tile, 1, 1),
    BuiltinOperator.TRANSPOSE: OperatorKind(_transpose, 1, 1),
    BuiltinOperator.UNPACK: OperatorKind(_unpack, 1),
}
