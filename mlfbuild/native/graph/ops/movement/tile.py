"""TILE."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.movement import Move, Movement
from mlfbuild.native.graph.tensors import Array, Tensor


class Tile(Movement):
    """The input, repeated ``multiples[d]`` times along each dimension d."""

    multiples: tuple[int, ...]

    name = "TILE"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        shape = inputs[0].shape
        if len(self.multiples) != len(shape) or any(times < 1 for times in self.multiples):
            return f"multiples {list(self.multiples)} do not fit {inputs[0]}"
        return rules.shape(outputs[0], [size * times for size, times in zip(shape, self.multiples, strict=True)])

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        shape = sources[0].shape
        # Interleaved with the sizes: a new dimension before each one repeats it.
        pairs = [size for pair in zip(self.multiples, shape, strict=True) for size in pair]
        single = sources[0].reshape([size for length in shape for size in (1, length)])
        yield np.broadcast_to(single, pairs), outputs[0].reshape(pairs)
