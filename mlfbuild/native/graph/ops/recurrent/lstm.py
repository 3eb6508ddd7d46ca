"""UNIDIRECTIONAL_SEQUENCE_LSTM: each step maps a row of features to a row of units and keeps two rows as state.

For a sequence ``x`` [batch, time, features], with one matrix per gate for ``x`` and one for the hidden row ``h``::

    gate = squash(W x + R h + bias)            input, forget and output by 1 / (1 + exp(-a)), cell by tanh
    c' = clip(forget * c + input * cell)
    h' = output * tanh(c')                     the row of the result

As in TensorFlow Lite Micro, there are no peepholes, projections, layer normalisation or coupled gates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.bases.lstm_arithmetic import (
    LSTM_INPUTS,
    LstmParameters,
    LstmRescales,
    LstmTensors,
    lstm_rescales,
    lstm_tensors,
    real_step,
    whole_step,
)
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values
from mlfbuild.native.graph.wide_sums import LARGEST_SUM

_OUTPUTS = 3
_BIAS = {DType.INT8: DType.INT32, DType.INT16: DType.INT64, DType.FLOAT32: DType.FLOAT32}


class UnidirectionalSequenceLstm(Operator):
    """An LSTM layer; if ``time_major``, sequences are [time, batch, features].

    ``cell_clip``, if greater than 0, bounds the magnitude of the cell row.
    """

    time_major: bool = False
    cell_clip: float = 0.0
    rounded_product: bool = False
    """Whether the product of two scales is rounded to float32, as TensorFlow Lite Micro did until 2026-10-12."""

    name = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    types = (DType.INT8, DType.INT16, DType.FLOAT32)

    def rescales(self, tensors: LstmTensors) -> LstmRescales:
        """Return the factors of a quantised node; raises ``OverflowError`` if one has no fixed-point form."""
        return lstm_rescales(tensors, self.cell_clip, rounded=self.rounded_product)

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        if len(inputs) != LSTM_INPUTS or len(outputs) != _OUTPUTS:
            return f"has {len(inputs)} inputs and {len(outputs)} outputs, takes {LSTM_INPUTS} and writes {_OUTPUTS}"
        # All 15 are required: absent ones would be peepholes or a coupled gate.
        absent = next((at for at in range(len(inputs)) if inputs.optional(at) is None), None)
        if absent is not None:
            return f"input {absent} is absent"
        tensors = lstm_tensors(inputs, outputs)
        return self._check_types(tensors) or self._check_shapes(tensors) or self._check_quantization(tensors)

    def _check_types(self, tensors: LstmTensors) -> str | None:
        source, cell = tensors.source, tensors.before.cell
        cell_type = DType.FLOAT32 if source.dtype is DType.FLOAT32 else DType.INT16
        # Cells of integer layers are int16 even for int8 activations, as in TFLite.
        if cell.dtype is not cell_type:
            return f"the cell state {cell} must be {cell_type.value}"
        return (
            rules.arithmetic(source, tensors.before.hidden, tensors.output, tensors.after.hidden, types=self.types)
            or rules.arithmetic(cell, tensors.after.cell, types=(cell_type,))
            or rules.first(self._check_weights(source, weights) for weights in (*tensors.weights, *tensors.recurrent))
            or rules.first(self._check_bias(source, bias) for bias in tensors.biases)
        )

    def _check_weights(self, source: Tensor, weights: Tensor) -> str | None:
        wanted = DType.FLOAT32 if source.dtype is DType.FLOAT32 else DType.INT8
        if not weights.constant:
            return f"the weights {weights} are not constant"
        if weights.dtype is not wanted:
            return f"the weights {weights} must be {wanted.value} over {source.dtype.value}"
        if wanted is DType.FLOAT32:
            return None
        reason = rules.affine(weights)
        if reason is None and weights.quantization is not None and weights.quantization.zero_point:
            return f"the weights {weights} have a zero point that is not 0"
        return reason

    def _check_bias(self, source: Tensor, bias: Tensor) -> str | None:
        if not bias.constant:
            return f"the bias {bias} is not constant"
        wanted = _BIAS[source.dtype]
        return None if bias.dtype is wanted else f"the bias {bias} must be {wanted.value} over {source.dtype.value}"

    # The cell may have another shape in the file, but as many elements.
    def _check_shapes(self, tensors: LstmTensors) -> str | None:
        source = tensors.source
        reason = rules.rank(source, 3) or rules.rank(tensors.before.hidden, 2)
        if reason is not None:
            return reason
        batch, units, features = self.batch(tensors), tensors.before.hidden.shape[1], source.shape[2]
        return (
            rules.shape(tensors.before.hidden, (batch, units))
            or rules.first(rules.shape(weights, (units, features)) for weights in tensors.weights)
            or rules.first(rules.shape(weights, (units, units)) for weights in tensors.recurrent)
            or rules.first(rules.shape(bias, (units,)) for bias in tensors.biases)
            or rules.same_elements(tensors.before.hidden, tensors.before.cell)
            or rules.shape(tensors.output, (*source.shape[:2], units))
            or rules.shape(tensors.after.hidden, tensors.before.hidden.shape)
            or rules.shape(tensors.after.cell, tensors.before.cell.shape)
        )

    def _check_quantization(self, tensors: LstmTensors) -> str | None:
        if tensors.source.dtype is DType.FLOAT32:
            return None
        return (
            rules.same_quantization(tensors.before.hidden, tensors.output)
            or rules.same_quantization(tensors.before.hidden, tensors.after.hidden)
            or rules.same_quantization(tensors.before.cell, tensors.after.cell)
            or rules.computable(lambda: self.rescales(tensors))
            or (self._check_sums(tensors) if tensors.source.dtype is DType.INT16 else None)
        )

    def _check_sums(self, tensors: LstmTensors) -> str | None:
        for bias in tensors.biases:
            greatest = max(abs(int(bias.known.min())), abs(int(bias.known.max())))
            # A product of an int16 and an int8 is at most 2**22.
            if greatest + (tensors.source.shape[2] << 22) >= LARGEST_SUM:
                return f"sums with the bias {bias} may not fit 48 bits"
        return None

    def batch(self, tensors: LstmTensors) -> int:
        """Return the number of parallel sequences."""
        return tensors.source.shape[1 if self.time_major else 0]

    def macs(self, inputs: Inputs, outputs: Sequence[Tensor]) -> int:
        """Return the number of products: one per step and weight of the four gates, without element-wise ones."""
        tensors = lstm_tensors(inputs, outputs)
        steps = tensors.source.shape[0] * tensors.source.shape[1]
        return steps * sum(weights.elements for weights in (*tensors.weights, *tensors.recurrent))

    def reference(self, inputs: Inputs, values: Values, outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        tensors = lstm_tensors(inputs, outputs)
        sequence, *parameters, hidden, cell = (np.asarray(value) for value in values)
        weights = LstmParameters(tuple(parameters[:4]), tuple(parameters[4:8]), tuple(parameters[8:]))
        shape, steps = cell.shape, sequence if self.time_major else sequence.swapaxes(0, 1)
        # The file may have the cell in any shape of as many elements.
        # Reshaped back at the end, because the state tensor must keep its shape.
        cell = cell.reshape(hidden.shape)
        rescales = None if tensors.source.dtype is DType.FLOAT32 else self.rescales(tensors)
        rows = []
        for row in steps:
            if rescales is None:
                hidden, cell = real_step(weights, self.cell_clip, row, hidden, cell)
            else:
                hidden, cell = whole_step(tensors, weights, rescales, row, hidden, cell)
            rows.append(hidden)
        result = np.stack(rows, 0 if self.time_major else 1)
        return result, hidden, cell.reshape(shape)
