"""SPLIT and SPLIT_V."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.axes import only_axis
from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _split(site: TfliteSite) -> Operator:
    with reading(site.place):
        count = site.read_options("SplitOptions").NumSplits()
    check_parts(site, count)
    return ops.Split(only_axis(site, 1, len(site.input(0).shape)))


def _split_v(site: TfliteSite) -> Operator:
    sizes = site.constant(1, "sizes").tolist()
    axis = only_axis(site, 2, len(site.input(0).shape))
    lengths = [output.shape[axis] if axis < len(output.shape) else 0 for output in site.outputs]
    known = sum(size for size in sizes if size != -1)
    if [site.input(0).shape[axis] - known if size == -1 else size for size in sizes] != lengths:
        raise site.wrong(f"the sizes {sizes} are not those of its outputs, {lengths}")
    return ops.SplitV(axis)


def check_parts(site: TfliteSite, count: int) -> None:
    """Refuse another number of outputs than ``count``."""
    if count != len(site.outputs):
        raise site.wrong(f"makes {count} tensors, but has {len(site.outputs)} outputs")


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.SPLIT: OperatorKind(_split, 1, 1, order=(1, 0)),
    BuiltinOperator.SPLIT_V: OperatorKind(_split_v, 1, 2),
}
