"""RESHAPE and EXPAND_DIMS."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.frontends.tflite.operators.axes import only_axis
from mlfbuild.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.frontends.tflite.operators.site import TfliteSite
from mlfbuild.graph import Operator, ops


def _reshape(site: TfliteSite) -> Operator:
    # The output's shape is used; a requested shape that is computed at run time could contradict it.
    if len(site.inputs) > 1 and site.inputs[1] is not None:
        wanted, shape = site.constant(1, "new shape").tolist(), site.output().shape
        if site.has_complex:
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
    axis = only_axis(site, 1, len(shape) + (0 if site.has_complex else 1))
    wanted = (*shape[:axis], 1, *shape[axis:])
    if site.output().shape != wanted:
        raise site.misshapen(wanted)
    return ops.ExpandDims()


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.EXPAND_DIMS: OperatorKind(_expand_dims, 1, 1),
    BuiltinOperator.RESHAPE: OperatorKind(_reshape, 1, 1),
}
