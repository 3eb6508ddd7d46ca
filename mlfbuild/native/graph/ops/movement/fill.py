"""FILL."""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.native.graph.ops.movement.broadcast_to import BroadcastTo
from mlfbuild.native.graph.tensors import Tensor


class Fill(BroadcastTo):
    """One element, repeated."""

    name = "FILL"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        if inputs[0].elements != 1:
            return f"{inputs[0]} must have one element"
        return super()._check_shapes(inputs, outputs)
