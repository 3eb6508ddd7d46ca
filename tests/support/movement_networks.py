"""Networks of one operator that moves elements."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from hypothesis import strategies as st

from support.drawing import Drawing

EVERY = ("int8", "int16", "int32", "int64", "uint8", "float32", "bool")


def _axis(d: Drawing, rank: int) -> tuple[int, int]:
    """Draw a dimension of ``rank``; return it counted from 0, and as written to the file."""
    axis = d.size(0, rank - 1)
    return axis, d.choice(axis, axis - rank)


def _concatenation(d: Drawing) -> None:
    shape = d.shape()
    axis, written = _axis(d, len(shape))
    affine = d.affine()
    lengths = [d.size(1, 4) for _ in range(d.size(1, 4))]
    sources = [d.input((*shape[:axis], length, *shape[axis + 1 :]), **affine) for length in lengths]
    output = d.network.like(sources[0], (*shape[:axis], sum(lengths), *shape[axis + 1 :]))
    d.network.operator("CONCATENATION", sources, output, "ConcatenationOptions", Axis=written)


def _pack(d: Drawing) -> None:
    shape, affine = d.shape(0, 3), d.affine()
    axis, written = _axis(d, len(shape) + 1)
    sources = [d.input(shape, **affine) for _ in range(d.size(1, 4))]
    output = d.network.like(sources[0], (*shape[:axis], len(sources), *shape[axis:]))
    d.network.operator("PACK", sources, output, "PackOptions", Axis=written, ValuesCount=len(sources))


def _unpack(d: Drawing) -> None:
    shape = d.shape(1, 4)
    axis, written = _axis(d, len(shape))
    source = d.input(shape)
    outputs = [d.network.like(source, (*shape[:axis], *shape[axis + 1 :])) for _ in range(shape[axis])]
    d.network.many("UNPACK", [source], outputs, "UnpackOptions", Axis=written, Num=len(outputs))


def _split(d: Drawing) -> None:
    shape = d.shape()
    axis, written = _axis(d, len(shape))
    count, length = d.size(1, 3), d.size(1, 3)
    source = d.input((*shape[:axis], count * length, *shape[axis + 1 :]))
    outputs = [d.network.like(source, (*shape[:axis], length, *shape[axis + 1 :])) for _ in range(count)]
    d.network.many("SPLIT", [d.network.integers(written), source], outputs, "SplitOptions", NumSplits=count)


def _split_v(d: Drawing) -> None:
    shape = d.shape()
    axis, written = _axis(d, len(shape))
    lengths = [d.size(1, 4) for _ in range(d.size(1, 4))]
    source = d.input((*shape[:axis], sum(lengths), *shape[axis + 1 :]))
    outputs = [d.network.like(source, (*shape[:axis], length, *shape[axis + 1 :])) for length in lengths]
    attributes = [d.network.integers(lengths), d.network.integers(written)]
    d.network.many("SPLIT_V", [source, *attributes], outputs, "SplitVOptions", NumSplits=len(lengths))


def _slice(d: Drawing) -> None:
    shape = d.shape(1, 5)
    starts = [d.size(0, size - 1) for size in shape]
    sizes = [d.size(1, size - start) for size, start in zip(shape, starts, strict=True)]
    to_the_end = [d.choice(True, False) for _ in shape]
    written = [-1 if rest and start + count == size else count
               for rest, start, count, size in zip(to_the_end, starts, sizes, shape, strict=True)]  # fmt: skip
    kind = d.choice("int32", "int64")
    attributes = d.network.integers(starts, kind), d.network.integers(written, kind)
    d.network.move("SLICE", d.input(shape), sizes, *attributes, kind="SliceOptions")


def _strided_slice(d: Drawing) -> None:
    """Draw positive and negative begins and ends, also outside the tensor or masked; some dimensions are dropped."""
    shape = d.shape(1, 4, 6)
    masks = {"BeginMask": 0, "EndMask": 0, "ShrinkAxisMask": 0}
    bounds, result = [], []
    for axis, size in enumerate(shape):
        start, end, step = d.size(-size - 2, size + 1), d.size(-size - 2, size + 2), d.choice(1, 1, 2, 3, -1, -2)
        first, last = d.choice(True, False), d.choice(True, False)
        count = len(range(*slice(None if first else start, None if last else end, step).indices(size)))
        if count == 0 or d.choice(True, False, False):
            first, last, start, step, count = False, False, d.size(-size, size - 1), 1, 0
            masks["ShrinkAxisMask"] |= 1 << axis
        masks["BeginMask"] |= first << axis
        masks["EndMask"] |= last << axis
        bounds.append((start, end, step))
        result += [count] if count else []
    attributes = [d.network.integers(values) for values in zip(*bounds, strict=True)]
    d.network.move("STRIDED_SLICE", d.input(shape), result, *attributes, kind="StridedSliceOptions", **masks)


def _transpose(d: Drawing) -> None:
    shape = d.shape(2, 5)
    order = d.random.permutation(len(shape)).tolist()
    d.network.move("TRANSPOSE", d.input(shape), [shape[axis] for axis in order], d.network.integers(order))


def _squeeze(d: Drawing) -> None:
    """Remove all dimensions of size 1, which is the default without a list."""
    shape = (*d.shape(1, 2), 1, d.size(2, 3), 1)
    kept = [size for size in shape if size > 1]
    d.network.move("SQUEEZE", d.input(shape), kept, kind="SqueezeOptions")


def _expand_dims(d: Drawing) -> None:
    shape = d.shape(1, 3)
    axis, written = _axis(d, len(shape) + 1)
    d.network.move("EXPAND_DIMS", d.input(shape), (*shape[:axis], 1, *shape[axis:]), d.network.integers(written))


def _broadcast_to(d: Drawing) -> None:
    shape = d.shape(1, 4)
    source = tuple(d.choice(size, 1) for size in shape)[d.size(0, len(shape) - 1) :]
    d.network.move("BROADCAST_TO", d.input(source), shape, d.network.integers(shape), kind="BroadcastToOptions")


def _fill(d: Drawing) -> None:
    shape, affine = d.shape(1, 4), d.affine()
    dims, value = d.network.integers(shape), d.input((), **affine)
    d.network.operator("FILL", [dims, value], d.network.activation(shape, **affine), "FillOptions")


def _reverse(d: Drawing) -> None:
    """Reverse consecutive dimensions, which TensorFlow Lite Micro assumes."""
    shape = d.shape(1, 4)
    first = d.size(0, len(shape) - 1)
    axes = range(first, d.size(first, len(shape) - 1) + 1)
    d.network.move("REVERSE_V2", d.input(shape), shape, d.network.integers(list(axes)), kind="ReverseV2Options")


def _reverse_sequence(d: Drawing) -> None:
    """Draw constant or computed lengths."""
    shape = d.shape(2, 4)
    sequence, batch = d.draw(st.permutations(range(len(shape))))[:2]
    lengths = d.random.integers(0, shape[sequence] + 1, shape[batch]).astype(d.choice("int32", "int64"))
    source = d.input(shape)
    places = d.network.integers(lengths, str(lengths.dtype))
    if d.choice(True, False):
        d.values.append(lengths)
        places = d.network.input(lengths.shape, dtype=str(lengths.dtype))
    d.network.move("REVERSE_SEQUENCE", source, shape, places, kind="ReverseSequenceOptions", SeqDim=sequence,
                   BatchDim=batch)  # fmt: skip


def _scatter_nd(d: Drawing) -> None:
    """Draw constant or computed positions, some of them twice."""
    shape = d.shape(1, 4)
    depth = d.size(1, len(shape))
    counts = d.shape(1, 2)
    places = d.random.integers(0, shape[:depth], (*counts, depth)).astype(np.int32)
    source = d.input((*counts, *shape[depth:]))
    indices = d.network.integers(places)
    if d.choice(True, False):
        d.values.append(places)
        indices = d.network.input(places.shape, dtype="int32")
    d.network.move("SCATTER_ND", source, shape, d.network.integers(shape), before=[indices], kind="ScatterNdOptions")


def _space_to_depth(d: Drawing) -> None:
    block, (rows, columns), channels = d.size(1, 3), d.pair(1, 3), d.size(1, 4)
    source = d.input((d.size(1, 2), rows * block, columns * block, channels))
    shape = (d.network.tensors[source].shape[0], rows, columns, channels * block**2)
    d.network.move("SPACE_TO_DEPTH", source, shape, kind="SpaceToDepthOptions", BlockSize=block)


def _depth_to_space(d: Drawing) -> None:
    block, (rows, columns), channels = d.size(1, 3), d.pair(1, 3), d.size(1, 4)
    source = d.input((d.size(1, 2), rows, columns, channels * block**2))
    shape = (d.network.tensors[source].shape[0], rows * block, columns * block, channels)
    d.network.move("DEPTH_TO_SPACE", source, shape, kind="DepthToSpaceOptions", BlockSize=block)


def _padv2(d: Drawing) -> None:
    shape = d.shape()
    source = d.input(shape)
    spec = d.network.tensors[source]
    affine = (spec.scales[0], spec.zero_points[0]) if spec.scales else ()
    value = d.network.constant(d.data((1,)), *affine)
    paddings = [d.pair(0, 2) for _ in shape]
    padded = [size + sum(pair) for size, pair in zip(shape, paddings, strict=True)]
    d.network.move("PADV2", source, padded, d.network.integers(paddings), value, kind="PadV2Options")


def _mirror_pad(d: Drawing) -> None:
    shape, symmetric = tuple(d.size(2, 4) for _ in range(d.size(1, 4))), d.choice(True, False)
    paddings = [d.pair(0, size - (not symmetric)) for size in shape]
    padded = [size + sum(pair) for size, pair in zip(shape, paddings, strict=True)]
    attribute = d.network.integers(paddings)
    d.network.move("MIRROR_PAD", d.input(shape), padded, attribute, kind="MirrorPadOptions", Mode=int(symmetric))


def _gather(d: Drawing) -> None:
    """Draw constant or computed indices, with or without batch dimensions."""
    shape = d.shape(1, 4)
    axis, written = _axis(d, len(shape))
    common = d.size(0, axis)
    positions = d.random.integers(0, shape[axis], (*shape[:common], *d.shape(1, 2)))
    source = d.input(shape)
    indices = d.network.integers(positions)
    if d.choice(True, False):
        d.values.append(positions.astype(np.int32))
        indices = d.network.activation(positions.shape, dtype="int32")
        d.network.inputs.append(indices)
    result = (*shape[:axis], *positions.shape[common:], *shape[axis + 1 :])
    d.network.move("GATHER", source, result, indices, kind="GatherOptions", Axis=written, BatchDims=common)


def _gather_nd(d: Drawing) -> None:
    """Draw constant or computed positions, some in all dimensions."""
    shape = d.shape(1, 4)
    depth = d.size(1, len(shape))
    counts = d.shape(1, 2)
    places = d.random.integers(0, shape[:depth], (*counts, depth)).astype(np.int32)
    source = d.input(shape)
    indices = d.network.integers(places)
    if d.choice(True, False):
        d.values.append(places)
        indices = d.network.activation(places.shape, dtype="int32")
        d.network.inputs.append(indices)
    d.network.move("GATHER_ND", source, (*counts, *shape[depth:]), indices, kind="GatherNdOptions")


def _blocks(d: Drawing) -> tuple[list[int], list[tuple[int, int]], list[int], list[int]]:
    """Draw block sizes and margins, and return them with the sizes of the fine and the coarse tensor."""
    dimensions = d.size(1, 2)
    block = [d.size(1, 3) for _ in range(dimensions)]
    counts = [d.size(1, 4) for _ in range(dimensions)]
    margins, fine = [], []
    for size, count in zip(block, counts, strict=True):
        before = d.size(0, min(size, size * count - 1))
        after = d.size(0, min(2, size * count - before - 1))
        margins.append((before, after))
        fine.append(size * count - before - after)
    return block, margins, fine, counts


def _space_to_batch(d: Drawing) -> None:
    """Use no margins, because TensorFlow Lite Micro does not initialise them."""
    dimensions, batch, depth = d.size(1, 2), d.size(1, 2), d.size(1, 3)
    block, counts = [d.size(1, 3) for _ in range(dimensions)], [d.size(1, 4) for _ in range(dimensions)]
    source = d.input((batch, *(size * count for size, count in zip(block, counts, strict=True)), depth))
    attributes = d.network.integers(block), d.network.integers([(0, 0)] * dimensions)
    shape = (batch * int(np.prod(block)), *counts, depth)
    d.network.move("SPACE_TO_BATCH_ND", source, shape, *attributes, kind="SpaceToBatchNDOptions")


def _batch_to_space(d: Drawing) -> None:
    (block, margins, fine, counts), batch, depth = _blocks(d), d.size(1, 2), d.size(1, 3)
    attributes = d.network.integers(block), d.network.integers(margins)
    source = d.input((batch * int(np.prod(block)), *counts, depth))
    d.network.move("BATCH_TO_SPACE_ND", source, (batch, *fine, depth), *attributes, kind="BatchToSpaceNDOptions")


def _resize(name: str, kind: str) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        source, wanted = d.input((d.size(1, 2), *d.pair(1, 6), d.size(1, 4))), d.pair(1, 9)
        batch, _, _, depth = d.network.tensors[source].shape
        corners, half = d.choice((False, False), (True, False), (False, True))
        d.network.move(name, source, (batch, *wanted, depth), d.network.integers(wanted), kind=kind,
                       AlignCorners=corners, HalfPixelCenters=half)  # fmt: skip

    return draw


def _tile(d: Drawing) -> None:
    shape = d.shape()
    multiples = [d.size(1, 3) for _ in shape]
    result = [size * times for size, times in zip(shape, multiples, strict=True)]
    d.network.move("TILE", d.input(shape), result, d.network.integers(multiples), kind="TileOptions")


OPERATORS: Mapping[str, Callable[[Drawing], None]] = {
    "BATCH_TO_SPACE_ND": _batch_to_space,
    "BROADCAST_TO": _broadcast_to,
    "CONCATENATION": _concatenation,
    "DEPTH_TO_SPACE": _depth_to_space,
    "EXPAND_DIMS": _expand_dims,
    "FILL": _fill,
    "GATHER": _gather,
    "GATHER_ND": _gather_nd,
    "MIRROR_PAD": _mirror_pad,
    "PACK": _pack,
    "PADV2": _padv2,
    "RESIZE_BILINEAR": _resize("RESIZE_BILINEAR", "ResizeBilinearOptions"),
    "RESIZE_NEAREST_NEIGHBOR": _resize("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions"),
    "REVERSE_SEQUENCE": _reverse_sequence,
    "REVERSE_V2": _reverse,
    "SCATTER_ND": _scatter_nd,
    "SLICE": _slice,
    "SPACE_TO_BATCH_ND": _space_to_batch,
    "SPACE_TO_DEPTH": _space_to_depth,
    "SPLIT": _split,
    "SPLIT_V": _split_v,
    "SQUEEZE": _squeeze,
    "STRIDED_SLICE": _strided_slice,
    "TILE": _tile,
    "TRANSPOSE": _transpose,
    "UNPACK": _unpack,
}

TYPES: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(OPERATORS, ("int8", "int16", "float32")),
    **dict.fromkeys(("DEPTH_TO_SPACE", "GATHER", "MIRROR_PAD", "SPACE_TO_DEPTH"), ("int8", "float32")),
    **dict.fromkeys(("BATCH_TO_SPACE_ND", "RESIZE_BILINEAR", "SPACE_TO_BATCH_ND"), ("int8", "float32")),
    **dict.fromkeys(("BROADCAST_TO", "SQUEEZE"), EVERY),
    "CONCATENATION": ("int8", "int16", "int32", "int64", "float32", "bool"),
    "PACK": ("int8", "int16", "int32", "int64", "float32"),
    "SLICE": ("int8", "int16", "int32", "float32", "bool"),
    **dict.fromkeys(("PADV2", "SPLIT", "SPLIT_V", "UNPACK"), ("int8", "int16", "int32", "float32")),
    "STRIDED_SLICE": ("int8", "int16", "int32", "float32", "bool"),
    "FILL": ("int8", "int32", "float32"),
    "GATHER_ND": ("int8", "float32"),
    "REVERSE_V2": EVERY,
    **dict.fromkeys(("REVERSE_SEQUENCE", "SCATTER_ND", "TILE"), ()),
}
"""The element types of each operator that TensorFlow Lite Micro supports."""

_BLOCKS = ("BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND")

LITERT: Mapping[str, Sequence[str]] = {
    **dict.fromkeys((*_BLOCKS, "GATHER", "MIRROR_PAD"), ("int16", "int32", "int64", "uint8", "bool")),
    **dict.fromkeys(("DEPTH_TO_SPACE", "SPACE_TO_DEPTH"), ("int32", "int64", "uint8")),
    **dict.fromkeys(("EXPAND_DIMS", "TRANSPOSE"), ("int32", "int64", "uint8", "bool")),
    **dict.fromkeys(("CONCATENATION", "PACK"), ("uint8",)),
    **dict.fromkeys(("SLICE", "SPLIT", "SPLIT_V", "STRIDED_SLICE"), ("int64", "uint8")),
    "FILL": ("int16", "int64", "uint8", "bool"),
    "GATHER_ND": ("int16", "int32", "int64", "uint8", "bool"),
    "RESIZE_BILINEAR": ("int16",),
    "RESIZE_NEAREST_NEIGHBOR": ("int32",),
    "REVERSE_SEQUENCE": ("int16", "int32", "int64", "uint8", "float32"),
    "SCATTER_ND": ("int8", "int32", "int64", "float32", "bool"),
    "TILE": EVERY,
    "UNPACK": ("uint8", "bool"),
}
"""The element types of each operator that only LiteRT supports."""
