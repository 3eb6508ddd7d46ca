"""BROADCAST_TO."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mlfbuild.native.graph.bases.movement import Move, Movement
from mlfbuild.native.graph.tensors import Array, Tensor


class BroadcastTo(Movement):
    """The input, broadcast to the output's shape."""

    name = "BROADCAST_TO"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        try:
            # numpy's rule is the operator's rule: sizes are equal or 1, from the last dimension on.
            fits = np.broadcast_shapes(inputs[0].shape, outputs[0].shape) == outputs[0].shape
        except ValueError:
            fits = False
        return None if fits else f"{inputs[0]} cannot be repeated to {outputs[0]}"

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        # The broadcast view has strides of 0, which the lowering turns into a loop that reads the same elements again.
        yield np.broadcast_to(sources[0], outputs[0].shape), outputs[0]
