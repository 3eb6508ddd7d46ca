"""PAD (with zeros), PADV2 (with any value) and MIRROR_PAD (with the tensor's own elements)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.movement import Move, Movement
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

Paddings = tuple[tuple[int, int], ...]
"""(before, after) of each dimension, in elements."""


class Pad(Single):
    """Adds ``paddings[d] = (before, after)`` elements to dimension d: 0, or the output's zero point."""

    paddings: Paddings

    name = "PAD"
    types = (DType.INT8, DType.INT16, DType.INT32, DType.FLOAT32)

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        return rules.arithmetic(source, output, types=self.types) or padded_shape(self.paddings, source, output)

    def value(self, output: Tensor) -> float:
        """Return the stored value of the padding."""
        return rules.resting(output)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        (value,) = values
        return (np.pad(value, self.paddings, constant_values=value.dtype.type(self.value(outputs[0]))),)


class PadV2(Pad):
    """Adds elements with the stored value ``filling``."""

    filling: float

    name = "PADV2"

    def value(self, output: Tensor) -> float:
        return self.filling


class MirrorPad(Movement):
    """Adds elements that mirror the tensor at its borders; ``symmetric`` also repeats those on the border."""

    paddings: Paddings
    symmetric: bool

    name = "MIRROR_PAD"

    def _check_shapes(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
        reason = padded_shape(self.paddings, inputs[0], outputs[0])
        if reason is not None:
            return reason
        for size, pair in zip(inputs[0].shape, self.paddings, strict=True):
            # Without the border, one element fewer is available to mirror.
            if max(pair) > size - (not self.symmetric):
                return f"paddings {self.paddings} are wider than {inputs[0]} can mirror"
        return None

    def moves(self, sources: Sequence[Array], outputs: Sequence[Array]) -> Iterator[Move]:
        """Copy the input to its place, then mirror the result along one dimension after the other."""
        target, shape = outputs[0], sources[0].shape
        inner = [slice(before, before + size) for size, (before, _) in zip(shape, self.paddings, strict=True)]
        yield sources[0], target[tuple(inner)]
        skipped = 0 if self.symmetric else 1
        # Axis by axis, each over the full extent of those before it, so that corners are mirrored mirrors.
        for axis, (before, after) in enumerate(self.paddings):
            rows = np.moveaxis(target[(slice(None),) * (axis + 1) + tuple(inner[axis + 1 :])], axis, 0)
            end = before + shape[axis]
            if before:
                yield rows[before + skipped : 2 * before + skipped][::-1], rows[:before]
            if after:
                yield rows[end - skipped - after : end - skipped][::-1], rows[end:]


def padded_shape(paddings: Paddings, source: Tensor, output: Tensor) -> str | None:
    """Return why ``source`` with ``paddings`` does not have the shape of ``output``, or ``None``.

    ``paddings`` has one pair for each dimension, in elements.
    """
    if len(paddings) != len(source.shape):
        return f"{len(paddings)} pairs of paddings do not fit {source}"
    if any(min(pair) < 0 for pair in paddings):
        return f"paddings {paddings} must not be negative"
    return rules.shape(output, [size + sum(pair) for size, pair in zip(source.shape, paddings, strict=True)])
