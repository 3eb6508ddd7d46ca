"""Operators of shapes: as these are fixed, their values are known when the file is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.frontends.tflite_operators.site import Site
from mlfbuild.graph import Array, DType, Tensor


@dataclass(frozen=True)
class ShapeKind:
    """The way from an operator of a file to its only value; ``types`` are those of its output."""

    read: Callable[[Site], Array]
    values: int = 1
    types: tuple[DType, ...] = (DType.INT32,)


def zeros(tensor: Tensor) -> Array:
    """Return what stands for zeros in ``tensor``: the zero point in all of an int8 or uint8 one.

    The array is one element seen everywhere: a file may declare a huge tensor in a few bytes.
    """
    zero = np.int64(0)
    if tensor.quantization is not None and tensor.dtype in {DType.INT8, DType.UINT8}:
        zero = np.int64(tensor.quantization.zero_points[0])
    return np.broadcast_to(zero.astype(tensor.dtype.numpy), tensor.shape)


def _shape(site: Site) -> Array:
    return np.array(site.input(0).shape, site.output().dtype.numpy)


def _rank(site: Site) -> Array:
    return np.array(len(site.input(0).shape), np.int32)


def _broadcast_args(site: Site) -> Array:
    shapes = [tuple(site.constant(index, "shape").tolist()) for index in (0, 1)]
    try:
        return np.array(np.broadcast_shapes(*shapes), site.output().dtype.numpy)
    except ValueError:
        raise site.wrong(f"the shapes {list(shapes[0])} and {list(shapes[1])} do not broadcast") from None


def _zeros_like(site: Site) -> Array:
    return zeros(site.output())


KINDS: Mapping[int, ShapeKind] = {
    BuiltinOperator.BROADCAST_ARGS: ShapeKind(_broadcast_args, 2, (DType.INT32, DType.INT64)),
    BuiltinOperator.RANK: ShapeKind(_rank),
    BuiltinOperator.SHAPE: ShapeKind(_shape, types=(DType.INT32, DType.INT64)),
    BuiltinOperator.ZEROS_LIKE: ShapeKind(_zeros_like, types=tuple(DType)),
}
