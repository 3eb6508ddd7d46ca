"""RESHAPE, SQUEEZE and EXPAND_DIMS: the same elements with another shape."""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.unary import Single
from mlfbuild.native.graph.tensors import EVERY, Array, Inputs, Tensor, Values


class Reshape(Single):
    """Copies the bytes unchanged; the new shape is the output's."""

    name = "RESHAPE"
    types = EVERY

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        if source.dtype is not output.dtype:
            return f"mixes {source} and {output}"
        # Scales are not compared: the bytes stay the same, whatever they mean.
        return rules.same_elements(source, output)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        (value,) = values
        return (value.reshape(outputs[0].shape),)


class Squeeze(Reshape):
    """Removes dimensions of size 1."""

    name = "SQUEEZE"

    def _check(self, source: Tensor, output: Tensor) -> str | None:
        if [size for size in source.shape if size != 1] != [size for size in output.shape if size != 1]:
            return super()._check(source, output) or f"{source} and {output} differ in more than dimensions of 1"
        return super()._check(source, output)


class ExpandDims(Squeeze):
    """Inserts dimensions of size 1."""

    name = "EXPAND_DIMS"
