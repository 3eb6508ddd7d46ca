"""SCATTER_ND."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class ScatterNd(Operator):
    """The first input's slices, added to zeros at the positions in the rows of the second one.

    Slices with a computed position that is out of range are left out. Stored values of int8 are added to 0, and wrap.
    """

    name = "SCATTER_ND"
    types = (DType.INT8, DType.INT32, DType.INT64, DType.FLOAT32, DType.BOOL)

    @rules.takes(2)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        (updates, indices), output = inputs, outputs[0]
        return (
            rules.arithmetic(updates, output, types=self.types)
            or rules.arithmetic(indices, types=(DType.INT32, DType.INT64))
            or rules.same_quantization(updates, output)
            or self._check_positions(updates, indices, output)
        )

    def _check_positions(self, updates: Tensor, indices: Tensor, output: Tensor) -> str | None:
        if not indices.shape or indices.shape[-1] > len(output.shape):
            return f"{indices} has no rows of at most {len(output.shape)} positions in {output}"
        depth = indices.shape[-1]
        if indices.data is not None and ((indices.data < 0) | (indices.data >= output.shape[:depth])).any():
            return f"{indices} holds positions that are not in {output}"
        return rules.shape(updates, (*indices.shape[:-1], *output.shape[depth:]))

    # Updates are whole slices: the rows of positions name the leading dimensions only.
    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        (updates, places), output = values, outputs[0]
        depth = places.shape[-1]
        result = np.zeros(output.shape, output.dtype.numpy)
        slices = updates.reshape(-1, *output.shape[depth:])
        # NumPy warns when integers wrap, which is the result here.
        with np.errstate(over="ignore", invalid="ignore"):
            for place, part in zip(places.reshape(-1, depth), slices, strict=True):
                # A network on a device should go on, and must not write outside of the tensor.
                if all(0 <= at < size for at, size in zip(place, output.shape, strict=False)):
                    # Added and not assigned: positions that occur twice sum up.
                    result[tuple(place)] += part
        return (result,)
