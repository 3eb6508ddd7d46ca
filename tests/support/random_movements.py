"""Steps of random networks that move elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from support.random_operators import LARGEST

if TYPE_CHECKING:
    from support.random_graphs import RandomGraph


def rearrange(g: RandomGraph, source: int) -> None:
    """Apply one of the movements below, if the shape of ``source`` allows it."""
    shape = g.shape_of(source)
    if not shape or np.prod(shape) > LARGEST / 2:
        return
    movements = {**_ANY, **(_IMAGE if len(shape) == 4 else {})}
    for output in movements[g.choice(sorted(movements))](g, source, shape):
        g.learn(output, g.spread[source], exact=source in g.exact)


def _pack(g: RandomGraph, source: int, shape: tuple[int, ...]) -> list[int]:
    axis, count = g.number(0, len(shape)), g.number(1, 2)
    output = g.network.like(source, (*shape[:axis], count, *shape[axis:]))
    return [g.network.operator("PACK", [source] * count, output, "PackOptions", Axis=axis, ValuesCount=count)]


def _unpack(g: RandomGraph, source: int, shape: tuple[int, ...]) -> list[int]:
    axis = g.number(0, len(shape) - 1)
    if shape[axis] > 4:
        return []
    parts = [g.network.like(source, (*shape[:axis], *shape[axis + 1 :])) for _ in range(shape[axis])]
    return g.network.many("UNPACK", [source], parts, "UnpackOptions", Axis=axis, Num=len(parts))


def _split_v(g: RandomGraph, source: int, shape: tuple[int, ...]) -> list[int]:
    axis = g.number(0, len(shape) - 1)
    if shape[axis] < 2:
        return []
    first = g.number(1, shape[axis] - 1)
    lengths = (first, shape[axis] - first)
    parts = [g.network.like(source, (*shape[:axis], length, *shape[axis + 1 :])) for length in lengths]
    attributes = [g.network.integers(lengths), g.network.integers(axis)]
    return g.network.many("SPLIT_V", [source, *attributes], parts, "SplitVOptions", NumSplits=2)


def _strided_slice(g: RandomGraph, source: int, shape: tuple[int, ...]) -> list[int]:
    """Slice whole dimensions, or steps through them in either direction; negative ends are masked."""
    if len(shape) > 4:
        return []
    steps = [g.choice((1, 1, 2, -1)) for _ in shape]
    bounds = [[0 if step > 0 else size - 1 for size, step in zip(shape, steps, strict=True)], list(shape), steps]
    result = [-(-size // abs(step)) for size, step in zip(shape, steps, strict=True)]
    masks = {"EndMask": (1 << len(shape)) - 1}
    attributes = [g.network.integers(values) for values in bounds]
    return [g.network.move("STRIDED_SLICE", source, result, *attributes, kind="StridedSliceOptions", **masks)]


def _mirror_pad(g: RandomGraph, source: int, shape: tuple[int, ...]) -> list[int]:
    paddings = [g.pair(0, min(size - 1, 2)) for size in shape]
    padded, attribute = _padded(shape, paddings), g.network.integers(paddings)
    return [g.network.move("MIRROR_PAD", source, padded, attribute, kind="MirrorPadOptions", Mode=g.number(0, 1))]


def _padv2(g: RandomGraph, source: int, shape: tuple[int, ...]) -> list[int]:
    if len(shape) > 4:
        return []
    paddings, spec = [g.pair(0, 1) for _ in shape], g.network.tensors[source]
    affine = (spec.scales[0], spec.zero_points[0]) if spec.scales else ()
    value = g.network.constant(g.data((1,), quantized=g.quantized(source)), *affine)
    attributes = g.network.integers(paddings), value
    return [g.network.move("PADV2", source, _padded(shape, paddings), *attributes, kind="PadV2Options")]


def _padded(shape: Sequence[int], paddings: Sequence[tuple[int, int]]) -> list[int]:
    return [size + sum(pair) for size, pair in zip(shape, paddings, strict=True)]


def _gather(g: RandomGraph, source: int, shape: tuple[int, ...]) -> list[int]:
    axis, count = g.number(0, len(shape) - 1), g.number(1, 4)
    positions = g.network.integers(g.random.integers(0, shape[axis], count))
    result = (*shape[:axis], count, *shape[axis + 1 :])
    return [g.network.move("GATHER", source, result, positions, kind="GatherOptions", Axis=axis)]


def _expand_dims(g: RandomGraph, source: int, shape: tuple[int, ...]) -> list[int]:
    axis = g.number(0, len(shape))
    if len(shape) > 4:
        return []
    return [g.network.move("EXPAND_DIMS", source, (*shape[:axis], 1, *shape[axis:]), g.network.integers(axis))]


def _broadcast_to(g: RandomGraph, source: int, shape: tuple[int, ...]) -> list[int]:
    wanted = [g.choice((1, 2, 3)) if size == 1 else size for size in shape]
    if np.prod(wanted) > LARGEST or len(shape) > 4:
        return []
    return [g.network.move("BROADCAST_TO", source, wanted, g.network.integers(wanted), kind="BroadcastToOptions")]


def _blocks(name: str) -> Callable[[RandomGraph, int, tuple[int, ...]], list[int]]:
    """Return a step that moves blocks of 2x2 to the channels or the batch, or back."""

    def move(g: RandomGraph, source: int, shape: tuple[int, ...]) -> list[int]:
        batch, rows, columns, depth = shape
        apart = name.startswith("SPACE_")
        if (apart and (rows % 2 or columns % 2)) or (name == "DEPTH_TO_SPACE" and depth % 4):
            return []
        if name == "BATCH_TO_SPACE_ND" and batch % 4:
            return []
        rows, columns = (rows // 2, columns // 2) if apart else (2 * rows, 2 * columns)
        if "DEPTH" in name:
            channels = 4 * depth if apart else depth // 4
            kind = f"{name.title().replace('_', '').replace('To', 'To')}Options"
            return [g.network.move(name, source, (batch, rows, columns, channels), kind=kind, BlockSize=2)]
        batches = 4 * batch if apart else batch // 4
        attributes = g.network.integers([2, 2]), g.network.integers([(0, 0), (0, 0)])
        kind = f"{'SpaceToBatch' if apart else 'BatchToSpace'}NDOptions"
        return [g.network.move(name, source, (batches, rows, columns, depth), *attributes, kind=kind)]

    return move


def _resize(g: RandomGraph, source: int, shape: tuple[int, ...]) -> list[int]:
    """Resize by nearest pixels; interpolation is tested in single-operator networks, because float32 is not exact."""
    wanted, (corners, half) = g.pair(1, 8), g.choice(((False, False), (True, False), (False, True)))
    if shape[0] * shape[3] * wanted[0] * wanted[1] > LARGEST:
        return []
    bilinear = g.quantized(source) and g.often(0.5)
    name, kind = (
        ("RESIZE_BILINEAR", "ResizeBilinearOptions")
        if bilinear
        else ("RESIZE_NEAREST_NEIGHBOR", "ResizeNearestNeighborOptions")
    )
    result = (shape[0], *wanted, shape[3])
    options = {"AlignCorners": corners, "HalfPixelCenters": half}
    return [g.network.move(name, source, result, g.network.integers(wanted), kind=kind, **options)]


_Movement = Callable[["RandomGraph", int, "tuple[int, ...]"], "list[int]"]

_ANY: Mapping[str, _Movement] = {
    "BROADCAST_TO": _broadcast_to, "EXPAND_DIMS": _expand_dims, "GATHER": _gather, "MIRROR_PAD": _mirror_pad,
    "PACK": _pack, "PADV2": _padv2, "SPLIT_V": _split_v, "STRIDED_SLICE": _strided_slice, "UNPACK": _unpack,
}  # fmt: skip

_IMAGE: Mapping[str, _Movement] = {
    **{name: _blocks(name)
       for name in ("BATCH_TO_SPACE_ND", "DEPTH_TO_SPACE", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH")},
    "RESIZE": _resize,
}  # fmt: skip
