"""GATHER and GATHER_ND: slices of a tensor, selected by indices.

Elements are copied by their stored values, whatever the type.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import EVERY, Array, DType, Inputs, Tensor, Values


class Picking(Operator):
    """An operator that selects elements of the first input by the positions, or the lengths, in the second one."""

    types = EVERY

    @rules.takes(2)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        (source, indices), output = inputs, outputs[0]
        return (
            (None if source.dtype is output.dtype else f"mixes {source} and {output}")
            or rules.arithmetic(indices, types=(DType.INT32, DType.INT64))
            or rules.same_quantization(source, output)
            or self._check_positions(source, indices)
            or rules.shape(output, self._shape(source, indices))
        )

    @abc.abstractmethod
    def _check_positions(self, source: Tensor, indices: Tensor) -> str | None:
        """Return why ``indices`` are not positions or lengths in ``source``, or ``None``."""

    @abc.abstractmethod
    def _shape(self, source: Tensor, indices: Tensor) -> tuple[int, ...]:
        """Return the shape of the result."""


class Gather(Picking):
    """Slices of the first input along ``axis`` at the positions in the second one.

    Both inputs share the first ``batch_dims`` dimensions. A computed position out of range is replaced by the nearest
    valid one.
    """

    axis: int
    batch_dims: int = 0

    name = "GATHER"

    def _check_positions(self, source: Tensor, indices: Tensor) -> str | None:
        if not 0 <= self.axis < len(source.shape):
            return f"axis {self.axis} is not a dimension of {source}"
        if not 0 <= self.batch_dims <= min(self.axis, len(indices.shape)):
            return f"{self.batch_dims} common dimensions do not fit {indices} and axis {self.axis}"
        if source.shape[: self.batch_dims] != indices.shape[: self.batch_dims]:
            return f"{source} and {indices} differ in their first {self.batch_dims} dimensions"
        size = source.shape[self.axis]
        # A constant position out of range is a mistake of the file; only computed ones are clamped.
        if indices.data is not None and not (indices.data.min() >= 0 and indices.data.max() < size):
            return f"{indices} holds positions that are not in dimension {self.axis} of {source}"
        return None

    def _shape(self, source: Tensor, indices: Tensor) -> tuple[int, ...]:
        return (*source.shape[: self.axis], *indices.shape[self.batch_dims :], *source.shape[self.axis + 1 :])

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        value, positions = values
        common = value.shape[: self.batch_dims]
        batches = value.reshape(-1, *value.shape[self.batch_dims :])
        # A negative position becomes 0; np.take would count it from the end.
        rows = np.clip(positions.reshape(len(batches), *positions.shape[self.batch_dims :]), 0, None)
        axis = self.axis - self.batch_dims
        picked = [np.take(batch, row, axis=axis, mode="clip") for batch, row in zip(batches, rows, strict=True)]
        return (np.stack(picked).reshape((*common, *picked[0].shape)),)


class GatherNd(Picking):
    """Slices of the first input; each row of the second one has positions in the leading dimensions.

    A computed position out of range is replaced by the nearest valid one.
    """

    name = "GATHER_ND"

    def _check_positions(self, source: Tensor, indices: Tensor) -> str | None:
        if not indices.shape or indices.shape[-1] > len(source.shape):
            return f"{indices} has no rows of at most {len(source.shape)} positions in {source}"
        sizes = source.shape[: indices.shape[-1]]
        if indices.data is not None and ((indices.data < 0) | (indices.data >= sizes)).any():
            return f"{indices} holds positions that are not in {source}"
        return None

    def _shape(self, source: Tensor, indices: Tensor) -> tuple[int, ...]:
        return (*indices.shape[:-1], *source.shape[indices.shape[-1] :])

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        value, places = values
        sizes = np.array(value.shape[: places.shape[-1]])
        # A tuple of index arrays selects one slice for each row of positions.
        return (np.asarray(value[tuple(np.moveaxis(np.clip(places, 0, sizes - 1), -1, 0))]),)
