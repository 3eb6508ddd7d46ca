"""REVERSE_V2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.movement import Move, Movement
from mlfbuild.native.graph.tensors import Array, Tensor


class ReverseV2(Movement):
    """The elements in reverse order along ``axes``, which are counted from 0."""

    axes: tuple[int, ...]

    name = "REVERSE_V2"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        if len(set(self.axes)) < len(self.axes) or any(not 0 <= axis < len(inputs[0].shape) for axis in self.axes):
            return f"{list(self.axes)} are not different dimensions of {inputs[0]}"
        return rules.shape(outputs[0], inputs[0].shape)

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        yield np.flip(sources[0], self.axes), outputs[0]
