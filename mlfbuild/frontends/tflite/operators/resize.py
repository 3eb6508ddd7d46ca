"""RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.frontends.tflite.operators.site import TfliteSite
from mlfbuild.frontends.tflite.reader import reading
from mlfbuild.graph import Operator, ops

_Resize = TypeVar("_Resize", ops.ResizeBilinear, ops.ResizeNearestNeighbor)


def _resize(kind: type[_Resize]) -> Callable[[TfliteSite], _Resize]:
    def read(site: TfliteSite) -> _Resize:
        with reading(site.place):
            options = site.read_options(f"{kind.__name__}Options")
            operator = kind(bool(options.AlignCorners()), bool(options.HalfPixelCenters()))
        wanted: list[int] = site.constant(1, "size").tolist()
        image: tuple[int, ...] = site.input(0).shape
        if list(site.output().shape[1:3]) != wanted:
            raise site.misshapen((*image[:1], *wanted, *image[3:]))
        return operator

    return read


def _bilinear(site: TfliteSite) -> Operator:
    return replace(_resize(ops.ResizeBilinear)(site), half_up=site.unsigned)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.RESIZE_BILINEAR: OperatorKind(_bilinear, 1, 1),
    BuiltinOperator.RESIZE_NEAREST_NEIGHBOR: OperatorKind(_resize(ops.ResizeNearestNeighbor), 1, 1),
}
