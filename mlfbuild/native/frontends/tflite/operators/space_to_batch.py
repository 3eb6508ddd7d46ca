"""SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import Operator, ops


def _phases(kind: type[ops.SpaceToBatchNd | ops.BatchToSpaceNd]) -> Callable[[TfliteSite], Operator]:
    def read(site: TfliteSite) -> Operator:
        block, margins = site.constant(1, "block").tolist(), site.constant(2, "margins")
        if margins.size != 2 * len(block):
            raise site.wrong(f"{margins.size} margins do not fit blocks {block}")
        return kind(tuple(block), tuple((int(before), int(after)) for before, after in margins.reshape(-1, 2)))

    return read


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.BATCH_TO_SPACE_ND: OperatorKind(_phases(ops.BatchToSpaceNd), 1, 2),
    BuiltinOperator.SPACE_TO_BATCH_ND: OperatorKind(_phases(ops.SpaceToBatchNd), 1, 2),
}
