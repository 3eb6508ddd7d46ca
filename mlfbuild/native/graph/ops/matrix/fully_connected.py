"""FULLY_CONNECTED: input [..., I] flattened to rows of I, weights [O, I], optional bias [O], output [..., O]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from mlfbuild.library import round_half_away
from mlfbuild.native.graph.bases import rules, weighted
from mlfbuild.native.graph.bases.accumulate import Sums, centred, finish
from mlfbuild.native.graph.bases.convolution import convolution_tensors
from mlfbuild.native.graph.operator import Activation, Operator
from mlfbuild.native.graph.quantize import (
    Rescale,
    activation_range,
    double_scale,
    fully_connected_rescales,
    integer_range,
)
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class FullyConnected(Operator):
    """Every output is a weighted sum of one row of inputs; ``keep_num_dims`` keeps the input's leading dimensions."""

    activation: Activation = Activation.NONE
    keep_num_dims: bool = False
    int32_sums: bool = False
    """Whether int16 activations are summed in 32 bits if there is no bias, whose type would decide it."""
    rounded_product: bool = False
    """Whether the product of two scales is rounded to float32, as TensorFlow Lite Micro did until 2026-10-12."""

    in_double: bool = field(default=False, repr=False)
    """Whether int8 sums are multiplied by a double and rounded once, half away from zero, as LiteRT does for uint8."""

    fine: bool = field(default=False, repr=False)
    """Whether factors of int16 sums, which fit into 32 bits, have 32 bits after the point, as in ONNX networks."""

    name = "FULLY_CONNECTED"
    types = weighted.TYPES

    @rules.takes(2, optional=1)
    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        source, weights, bias, output = convolution_tensors(inputs, outputs)
        return (
            rules.rank(weights, 2)
            or weighted.check(source, weights, bias, output, 0, (DType.INT64, DType.INT32))
            or self._check_shapes(source, weights, output)
            or self._check_rescales(source, weights, bias, output)
            or (self._check_fine(source, weights, bias, output) if self.fine else None)
        )

    def _check_fine(self, source: Tensor, weights: Tensor, bias: Tensor | None, output: Tensor) -> str | None:
        return rules.computable(lambda: weighted.check_fine(weights, bias, 0, self.rescales(source, weights, output)))

    def _check_shapes(self, source: Tensor, weights: Tensor, output: Tensor) -> str | None:
        channels, depth = weights.shape
        # Rows are cut from the flattened input, as TFLite does: [1, 7, 7, 2] is one row of 98.
        if source.elements % depth:
            return f"{source} cannot be cut into rows of {depth}, as the weights {weights} ask"
        if self.keep_num_dims:
            if source.shape[-1:] != (depth,):
                return f"the last dimension of {source} should be {depth}"
            return rules.shape(output, (*source.shape[:-1], channels))
        if output.shape[-1:] != (channels,) or output.elements != source.elements // depth * channels:
            rows = source.elements // depth
            return rules.WrongShape.of(output, (rows, channels), f"{output} should hold {rows} rows of {channels}")
        return None

    def sums_are_wide(self, source: Tensor, bias: Tensor | None) -> bool:
        """Return whether sums have 64 bits."""
        return weighted.sums_are_wide(source, bias, int32_sums=self.int32_sums)

    def rescales(self, source: Tensor, weights: Tensor, output: Tensor) -> tuple[Rescale, ...]:
        """Return a rescaling for each output channel, none for float32 and a double; raises ``OverflowError``.

        The factor is input scale times weight scale divided by output scale. One scale of the weights gives the same
        factor for every channel.
        """
        if self.in_double:
            # Only its error matters here: the check calls this function to learn whether the scale is supported.
            double_scale(source, weights, output)
            return ()
        if source.dtype is DType.FLOAT32:
            return ()
        return fully_connected_rescales(source, weights, output, rounded=self.rounded_product)

    def _check_rescales(self, source: Tensor, weights: Tensor, bias: Tensor | None, output: Tensor) -> str | None:
        if source.dtype is DType.FLOAT32:
            return None
        wide = self.sums_are_wide(source, bias)
        if self.in_double:
            return rules.computable(
                lambda: self._check_largest(source, weights, bias, output),
                lambda: activation_range(self.activation, output),
            )
        return rules.computable(
            lambda: weighted.check_rescales(self.rescales(source, weights, output), wide=wide),
            lambda: activation_range(self.activation, output),
        )

    def _check_largest(self, source: Tensor, weights: Tensor, bias: Tensor | None, output: Tensor) -> None:
        """Raise ``OverflowError`` if a sum may exceed 32 bits after it is multiplied by a double."""
        inputs = max(abs(limit - source.affine.zero_point) for limit in integer_range(source.dtype))
        # A bound and not an estimate: as if every input had the worst value and the sign of its weight.
        largest = inputs * float(np.abs(centred(weights, weights.known)).sum(axis=1).max())
        if bias is not None and bias.data is not None:
            largest += float(np.abs(bias.data.astype(np.float64)).max())
        if largest * double_scale(source, weights, output).real >= 1 << 31:
            raise OverflowError(
                f"the output's scale {output.affine.scale:g} is too small for sums of up to {largest:g}"
            )

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        """Return the number of products: one for each row of inputs and each weight."""
        _, weights, _, output = convolution_tensors(inputs, outputs)
        return output.elements * weights.shape[1]

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        source, weights, offset, output = convolution_tensors(inputs, outputs)
        rows, matrix, bias = values[0], values[1], values.optional(2)
        # float64 products of int8 are exact, so that BLAS may add them in any order.
        sums = centred(source, rows).reshape(-1, weights.shape[1]) @ centred(weights, matrix).T
        if self.in_double:
            return (self._rounded_once(sums, bias, double_scale(source, weights, output).real, output),)
        rescales, wide = self.rescales(source, weights, output), self.sums_are_wide(source, offset)
        return (finish(sums, bias, rescales, output, self.activation, wide=wide, fine=self.fine).reshape(output.shape),)

    def _rounded_once(self, sums: Sums, bias: Array | None, scale: float, output: Tensor) -> Array:
        """Return the int8 result of sums, which wrap at 32 bits."""
        # The cast to int32 wraps like the kernel's accumulator.
        whole = (sums if bias is None else sums + bias.reshape(-1)).astype(np.int64).astype(np.int32)
        stored = round_half_away(whole.astype(np.float64) * scale) + output.affine.zero_point
        clamped = np.clip(stored, *activation_range(self.activation, output))
        return np.asarray(clamped, output.dtype.numpy).reshape(output.shape)
