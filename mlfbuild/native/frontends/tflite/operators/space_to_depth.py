"""SPACE_TO_DEPTH and DEPTH_TO_SPACE."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _block(kind: type[ops.SpaceToDepth | ops.DepthToSpace]) -> Callable[[TfliteSite], Operator]:
    def read(site: TfliteSite) -> Operator:
        with reading(site.place):
            return kind(site.read_options(f"{kind.__name__}Options").BlockSize())

    return read


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.DEPTH_TO_SPACE: OperatorKind(_block(ops.DepthToSpace), 1),
    BuiltinOperator.SPACE_TO_DEPTH: OperatorKind(_block(ops.SpaceToDepth), 1),
}
