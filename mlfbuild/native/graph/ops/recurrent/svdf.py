"""SVDF: a fully connected layer with weights of low rank over the features of the last runs.

Each of ``filters = units * rank`` filters computes one feature of an input ``x`` [batch, inputs]. The state [batch,
filters * memory] has the last ``memory`` features of each filter, the latest one at the end::

    state'[filter] = state[filter][1:], weights_feature[filter] . x
    y[unit] = activation(bias[unit] + sum over the unit's filters of weights_time[filter] . state'[filter])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.accumulate import centred, finish_float, finish_quantized
from mlfbuild.native.graph.operator import Activation, Operator
from mlfbuild.native.graph.quantize import Rescale, quantize_multiplier
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values


class SvdfTensors(NamedTuple):
    """The tensors of an SVDF."""

    source: Tensor
    feature: Tensor
    """Weights of the input [filters, inputs]."""
    time: Tensor
    """Weights of the state [filters, memory]."""
    bias: Tensor | None
    before: Tensor
    output: Tensor
    after: Tensor


def svdf_tensors(inputs: Inputs, outputs: Sequence[Tensor]) -> SvdfTensors:
    """Return the named tensors of a checked node."""
    (source, feature, time), bias, before = inputs[:3], inputs.optional(3), inputs[4]
    return SvdfTensors(source, feature, time, bias, before, *outputs)


class Svdf(Operator):
    """A layer of ``rank`` filters for each unit; int8 is clamped only to its range, regardless of ``activation``.

    TensorFlow Lite Micro does the same: the zero point of the output takes the place of a RELU.
    """

    rank: int = 1
    activation: Activation = Activation.NONE
    rounded_product: bool = False
    """Whether factors are computed in float32, as TensorFlow Lite Micro did until 2026-10-12."""

    name = "SVDF"

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        if len(inputs) != 5 or len(outputs) != 2:
            return f"has {len(inputs)} inputs and {len(outputs)} outputs, takes 5 and writes 2"
        # Bias, at position 3, is the only optional input of SVDF.
        absent = next((at for at in (0, 1, 2, 4) if inputs.optional(at) is None), None)
        if absent is not None:
            return f"input {absent} is absent"
        tensors = svdf_tensors(inputs, outputs)
        return self._check_types(tensors) or self._check_shapes(tensors) or self._check_scales(tensors)

    def _check_types(self, tensors: SvdfTensors) -> str | None:
        # The state of the integer form is int8 or int16, depending on the converter.
        source, feature, time, _, before, output, after = tensors
        kept = (DType.FLOAT32,) if source.dtype is DType.FLOAT32 else (DType.INT8, DType.INT16)
        return (
            rules.arithmetic(source, feature, output)
            or rules.arithmetic(time, before, after, types=kept)
            or rules.parameters(feature, None, 1, axis=0)
            or (None if time.constant else f"the weights {time} are not constant")
        )

    def _check_shapes(self, tensors: SvdfTensors) -> str | None:
        source, feature, time, bias, before, output, _ = tensors
        reason = rules.first(rules.rank(tensor, 2) for tensor in (source, feature, time, output))
        if reason is not None:
            return reason
        filters, batches = feature.shape[0], source.shape[0]
        if self.rank < 1 or filters % self.rank:
            return f"{filters} filters cannot be shared by units of {self.rank} each"
        return (
            rules.shape(feature, (filters, source.shape[1]))
            or rules.shape(time, (filters, time.shape[1]))
            or rules.shape(before, (batches, filters * time.shape[1]))
            or rules.shape(output, (batches, filters // self.rank))
            or (None if bias is None else rules.parameters(feature, bias, filters // self.rank, axis=0))
        )

    def rescales(self, tensors: SvdfTensors) -> tuple[Rescale, Rescale]:
        """Return the rescalings of a feature to the state and of a sum over the state to the output.

        They are computed in double, or in float32 with ``rounded_product``. Raises ``OverflowError``.

        The first factor is input scale times feature scale divided by state scale, the second one state scale times
        time scale divided by output scale.
        """
        kind = np.float32 if self.rounded_product else np.float64
        scales = [kind(tensor.affine.scale) for tensor in (tensors.source, tensors.feature, tensors.before)]
        more = [kind(tensor.affine.scale) for tensor in (tensors.before, tensors.time, tensors.output)]
        with np.errstate(over="ignore", under="ignore"):
            # The order of the operations matters in float32.
            first, second = (float(x * y / z) for x, y, z in (scales, more))
        return quantize_multiplier(first), quantize_multiplier(second)

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        """Return the number of products: one for each weight of the input and of the state, per row of the batch."""
        tensors = svdf_tensors(inputs, outputs)
        return tensors.source.shape[0] * (tensors.feature.elements + tensors.time.elements)

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        tensors = svdf_tensors(inputs, outputs)
        (x, feature, time), bias, before = values[:3], values.optional(3), values[4]
        # Rounded to the type of the state, before it counts in the sum, as in the kernel.
        latest = self._latest(tensors, centred(tensors.source, x) @ feature.T.astype(np.float64))
        rows = before.reshape(len(x), len(feature), -1)
        # The kernel shifts a row in the same pass that sums it, so that a ring buffer would save nothing.
        after = np.concatenate([rows[:, :, 1:], latest[:, :, np.newaxis]], axis=2)
        # Filters of a unit are adjacent, so that the sum over the rank is a sum over the last dimension.
        sums = (centred(tensors.before, after) * time).sum(axis=2).reshape(len(x), -1, self.rank).sum(axis=2)
        if bias is not None:
            sums = sums + bias.reshape(-1)
        if tensors.source.dtype is DType.FLOAT32:
            result = finish_float(sums, self.activation)
        else:
            # Only the second factor: the sum is over the state and the weights of time.
            result = finish_quantized(sums, self.rescales(tensors)[1:], tensors.output, Activation.NONE)
        return result, after.reshape(before.shape)

    def _latest(self, tensors: SvdfTensors, sums: Array) -> Array:
        """Return the features in the type of the state."""
        if tensors.source.dtype is DType.FLOAT32:
            return finish_float(sums, Activation.NONE)
        return finish_quantized(sums, self.rescales(tensors)[:1], tensors.before, Activation.NONE)

    def _check_scales(self, tensors: SvdfTensors) -> str | None:
        if tensors.source.dtype is DType.FLOAT32:
            return None
        if tensors.time.quantization is not None and tensors.time.quantization.zero_point != 0:
            return f"the weights {tensors.time} have a zero point that is not 0"
        return rules.same_quantization(tensors.before, tensors.after) or rules.computable(
            lambda: self.rescales(tensors)
        )
