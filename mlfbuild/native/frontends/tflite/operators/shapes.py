"""Operators on shapes, whose values are known when the file is read, because shapes are fixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import EVERY, Array, DType, Tensor
from mlfbuild.native.graph.bases import WHOLE


@dataclass(frozen=True)
class ShapeKind:
    """The computation of an operator's only output; ``types`` are the possible types of that output."""

    read: Callable[[TfliteSite], Array]
    values: int = 1
    types: tuple[DType, ...] = (DType.INT32,)


def zeros(tensor: Tensor) -> Array:
    """Return the value of ZEROS_LIKE ``tensor``: for int8 and uint8 the zero point in every element.

    The array is one element, broadcast, because a small file may declare a huge tensor.
    """
    zero = np.int64(0)
    if tensor.quantization is not None and tensor.dtype in {DType.INT8, DType.UINT8}:
        zero = np.int64(tensor.quantization.zero_points[0])
    return np.broadcast_to(zero.astype(tensor.dtype.numpy), tensor.shape)


def _shape(site: TfliteSite) -> Array:
    return np.array(site.input(0).shape, site.output().dtype.numpy)


def _broadcast_args(site: TfliteSite) -> Array:
    shapes = [site.constant(index, "shape").reshape(-1).tolist() for index in (0, 1)]
    # numpy's broadcast_shapes refuses shapes with more elements than memory, but these are only numbers
    pairs = list(zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1))
    if any((one != other and 1 not in (one, other)) or min(one, other) < 0 for one, other in pairs):
        raise site.wrong(f"the shapes {shapes[0]} and {shapes[1]} do not broadcast")
    return np.array([one if other == 1 else other for one, other in reversed(pairs)], site.output().dtype.numpy)


def _range(site: TfliteSite) -> Array:
    """Return the numbers from the first input to the second (exclusive) in steps of the third."""
    bounds = [site.input(index) for index in (0, 1, 2)]
    for bound in bounds:
        if bound.data is None or bound.elements != 1 or bound.dtype is not site.output().dtype:
            raise site.unsupported(
                f"{bound} must be one constant number of the type of {site.output()}", code="input-not-constant"
            )
    start, end, step = (int(bound.data.reshape(-1)[0]) for bound in bounds if bound.data is not None)
    if step == 0:
        raise site.wrong("a step of 0 has no end")
    # Rounded up: the last step may end before the bound.
    count = max(0, -((start - end) // step))
    if count != site.output().elements:
        raise site.wrong(f"{site.output()} should have {count} elements")
    return np.asarray(start + np.arange(count) * step, site.output().dtype.numpy)


SHAPES: Mapping[int, ShapeKind] = {
    BuiltinOperator.BROADCAST_ARGS: ShapeKind(_broadcast_args, 2, WHOLE),
    BuiltinOperator.RANGE: ShapeKind(_range, 3, WHOLE),
    BuiltinOperator.RANK: ShapeKind(lambda site: np.array(len(site.input(0).shape), np.int32)),
    BuiltinOperator.SHAPE: ShapeKind(_shape, types=WHOLE),
    BuiltinOperator.ZEROS_LIKE: ShapeKind(lambda site: zeros(site.output()), types=EVERY),
}
"""Operators whose values follow from the shapes of their inputs, by code."""
