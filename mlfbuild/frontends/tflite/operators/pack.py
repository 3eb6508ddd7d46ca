"""PACK and UNPACK."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.frontends.tflite.operators.axes import dimension
from mlfbuild.frontends.tflite.operators.kind import ANY_NUMBER, OperatorKind
from mlfbuild.frontends.tflite.operators.site import TfliteSite
from mlfbuild.frontends.tflite.operators.split import check_parts
from mlfbuild.frontends.tflite.reader import reading
from mlfbuild.graph import Operator, ops


def _pack(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("PackOptions")
        axis, count = options.Axis(), options.ValuesCount()
    if count != len(site.inputs):
        raise site.wrong(f"packs {count} tensors, but has {len(site.inputs)} inputs")
    return ops.Pack(dimension(site, axis, len(site.input(0).shape) + 1))


def _unpack(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("UnpackOptions")
        axis, count = options.Axis(), options.Num()
    check_parts(site, count)
    return ops.Unpack(dimension(site, axis, len(site.input(0).shape)))


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.PACK: OperatorKind(_pack, ANY_NUMBER),
    BuiltinOperator.UNPACK: OperatorKind(_unpack, 1),
}
