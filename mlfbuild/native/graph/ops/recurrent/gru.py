"""GRU and RNN of ONNX: each step maps a row of features to a row of units, which is its result and its state.

For a sequence ``x`` [time, batch, features], with the gates z (update), r (reset) and n (candidate) of a GRU::

    z = sigmoid(Wz x + Rz h + b)        r = sigmoid(Wr x + Rr h + b)
    n = tanh(Wn x + Rn (r h) + b)       or tanh(Wn x + b + r (Rn h + b')) if the reset is applied last
    h' = (1 - z) n + z h

An RNN has one gate, ``h' = tanh(W x + R h + b)``, or RELU instead of TANH. Weights are [gates * units, features],
recurrent weights [gates * units, units], the bias [2 * gates * units]: of the products with ``x``, then with ``h``.
The order of gates is ONNX's: z, r, n. Source: https://onnx.ai/onnx/operators/onnx__GRU.html
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.bases import rules
from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor, Values

_Real = npt.NDArray[np.float64]
_INPUTS = 5


class _Sequence(Operator):
    """A layer of float32: inputs x, W, R, b and the first h; outputs all h' [time, batch, units], and the last one."""

    gates: ClassVar[int]
    types = (DType.FLOAT32,)

    def check(self, inputs: Inputs, outputs: Sequence[Tensor]) -> str | None:
        if len(inputs) != _INPUTS or len(outputs) != 2 or len(inputs.present) < _INPUTS:
            return f"has {len(inputs)} inputs and {len(outputs)} outputs, takes {_INPUTS} and writes 2"
        source, *parameters, hidden = inputs.present
        reason = rules.arithmetic(source, hidden, *outputs, types=self.types) or rules.rank(source, 3)
        reason = reason or rules.rank(hidden, 2)
        if reason is not None:
            return reason
        for tensor in parameters:
            if not tensor.constant or tensor.dtype is not DType.FLOAT32:
                return f"the weights {tensor} must be constant float32"
        (steps, batch, features), units = source.shape, hidden.shape[1]
        rows = self.gates * units
        return (
            rules.shape(hidden, (batch, units))
            or rules.shape(parameters[0], (rows, features))
            or rules.shape(parameters[1], (rows, units))
            or rules.shape(parameters[2], (2 * rows,))
            or rules.shape(outputs[0], (steps, batch, units))
            or rules.shape(outputs[1], hidden.shape)
        )

    def macs(self, inputs: Inputs, _outputs: Sequence[Tensor]) -> int:
        """Return the number of products with weights: one per row and weight."""
        source, weights, recurrent = inputs[:3]
        return source.shape[0] * source.shape[1] * (weights.elements + recurrent.elements)

    def reference(self, _inputs: Inputs, values: Values, _outputs: Sequence[Tensor]) -> tuple[Array, ...]:
        rows, weights, recurrent, bias, hidden = (np.asarray(value, np.float64) for value in values)
        # The bias of the products with x is added for all steps at once.
        own = bias[: len(weights)]
        results = []
        for row in rows @ weights.T + own:
            # Rounded to float32 after each step, as the state is stored so; sums within a step are in double.
            hidden = self._step(row, hidden, recurrent, bias[len(weights) :]).astype(np.float32).astype(np.float64)
            results.append(hidden)
        return np.stack(results).astype(np.float32), hidden.astype(np.float32)

    @abstractmethod
    def _step(self, row: _Real, hidden: _Real, recurrent: _Real, bias: _Real) -> _Real:
        """Return h' [batch, units] for ``row``, the products with x and their bias [batch, gates * units]."""


class Gru(_Sequence):
    """A GRU layer; with ``reset_last``, the reset multiplies the product with the state instead of the state."""

    reset_last: bool = False

    name = "GRU"
    gates = 3

    def _step(self, row: _Real, hidden: _Real, recurrent: _Real, bias: _Real) -> _Real:
        units = hidden.shape[1]
        both = hidden @ recurrent[: 2 * units].T + bias[: 2 * units] + row[:, : 2 * units]
        # The update and the reset gate share their products, which are the first two of the three blocks.
        update, reset = np.split(1 / (1 + np.exp(-both)), 2, axis=1)
        last, own = recurrent[2 * units :], bias[2 * units :]
        kept = reset * (hidden @ last.T + own) if self.reset_last else (reset * hidden) @ last.T + own
        candidate = np.tanh(row[:, 2 * units :] + kept)
        # z * h + (1 - z) * n with one product less.
        after: _Real = candidate + update * (hidden - candidate)
        return after


class Rnn(_Sequence):
    """An RNN layer with TANH, or RELU.

    Its name is that of its inventor, because RNN of TFLite is another operator.
    """

    relu: bool = False

    name = "ELMAN_RNN"
    gates = 1

    def _step(self, row: _Real, hidden: _Real, recurrent: _Real, bias: _Real) -> _Real:
        sums = row + hidden @ recurrent.T + bias
        after: _Real = np.maximum(sums, 0) if self.relu else np.tanh(sums)
        return after
