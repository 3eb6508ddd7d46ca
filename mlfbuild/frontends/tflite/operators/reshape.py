"""RESHAPE and EXPAND_DIMS."""

from __future__ import annotations

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
        if not _fits(shape, wanted):
            raise site.wrong(f"{site.output()} should have the shape {wanted}")
    return ops.Reshape()


def _fits(shape: Sequence[int], wanted: Sequence[int]) -> bool:
    """Return whether ``shape`` matches ``wanted``, in which -1 is any size; a ``wanted`` of [0] means a scalar."""
    if list(wanted) == [0]:
        return not shape
    return len(shape) == len(wanted) and all(size in {-1, real} for size, real in zip(wanted, shape, strict=True))


def _expand_dims(site: TfliteSite) -> Operator:
    shape = site.input(0).shape
    axis = only_axis(site, 1, len(shape) + 1)
    wanted = (*shape[:axis], 1, *shape[axis:])
    if site.output().shape != wanted:
        raise site.wrong(f"{site.output()} should have the shape {list(wanted)}")
    return ops.ExpandDims()


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.EXPAND_DIMS: OperatorKind(_expand_dims, 1, 1),
    BuiltinOperator.RESHAPE: OperatorKind(_reshape, 1, 1),
}
