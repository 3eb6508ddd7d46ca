"""LSTM, GRU and RNN: each direction becomes one operator that loops over the steps.

An LSTM becomes a float32 UNIDIRECTIONAL_SEQUENCE_LSTM with initial and final states. Layers that cannot loop, and LSTMs
with peephole weights or coupled gates, are unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mlfbuild.core import counted
from mlfbuild.native.frontends.onnx.conversion.activations import activation_names
from mlfbuild.native.frontends.onnx.conversion.recurrent import (
    BIASES,
    HIDDEN,
    RECURRENT,
    WEIGHTS,
    Layer,
    Product,
    cut,
    directions,
    part,
    unrolled,
)
from mlfbuild.native.frontends.onnx.conversion.recurrent_loop import LoopKind, LoopSizes, can_loop, looped, shaped
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import Tensor, ops


class _Rnn(Layer):
    """State = f(W x + R state + b)."""

    gates = 1
    names = ("Tanh",)

    # Weights of the state and its bias are one product in each step.
    def prepare(self) -> None:
        self._own = self.constants("recurrent", self.recurrent, self.recurrent_bias)

    def step(self, product: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        return (self.activated(0, self.op.add(product, self.product(states[0], self._own))),)


class _Gru(Layer):
    """State = (1 - z) h + z state, with the gates z (update), r (reset) and h (candidate)."""

    gates = 3
    names = ("Sigmoid", "Tanh")

    def prepare(self) -> None:
        """Compute all gates of the state in one product if the reset is applied after it."""
        self._reset_last = self.op.integer("linear_before_reset", 0) != 0
        both = 3 * self.units if self._reset_last else 2 * self.units
        self._own = self._part("recurrent", 0, both)
        if not self._reset_last:
            self._candidate = self._part("candidate", both, 3 * self.units)

    def _part(self, word: str, begin: int, end: int) -> Product:
        op = self.op
        return self.constants(word, cut(op, self.recurrent, begin, end), cut(op, self.recurrent_bias, begin, end))

    def step(self, product: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        op, (state,) = self.op, states
        inputs, own = self.gates_of(product), self.gates_of(self.product(state, self._own))
        update = self.activated(0, op.add(inputs[0], own[0]))
        reset = self.activated(0, op.add(inputs[1], own[1]))
        if self._reset_last:
            kept = op.multiply(reset, own[2])
        else:
            kept = self.product(op.multiply(reset, state), self._candidate)
        candidate = self.activated(1, op.add(inputs[2], kept))
        # z * state + (1 - z) * h, with one product less.
        return (op.add(candidate, op.multiply(update, op.subtract(state, candidate))),)


def _gru_parameters(kind: type[Layer]) -> Callable[[OpContext, LoopSizes, int], list[Tensor]]:
    """Return the function that makes weights, recurrent weights and biases, with the gates in ONNX's order."""

    def of(op: OpContext, sizes: LoopSizes, at: int) -> list[Tensor]:
        count, units, features = sizes.count, sizes.units, sizes.features
        rows, fit = kind.gates * units, f"{counted(count, 'direction')}, {counted(units, 'unit')}"
        recurrent = shaped(op, RECURRENT, "recurrent weights", (count, rows, units), fit)
        weights = shaped(op, WEIGHTS, "weights", (count, rows, features), f"{fit} and {counted(features, 'feature')}")
        # Without biases, zeros: the kernel has no case for that.
        biases = np.zeros((count, 2 * rows), np.float32)
        if op.has(BIASES):
            biases = shaped(op, BIASES, "biases", (count, 2 * rows), fit)
        values = {"weights": weights, "recurrent": recurrent, "bias": biases}
        return [op.weights(f"{word}{at}", value[at]) for word, value in values.items()]

    return of


def _gru(op: OpContext) -> tuple[Value, ...]:
    if not can_loop(op, _Gru, [("sigmoid", "tanh")]):
        return unrolled(op, _Gru)
    operator = ops.Gru(reset_last=op.integer("linear_before_reset", 0) != 0)
    return looped(op, LoopKind(lambda _: operator, _gru_parameters(_Gru), _Gru.kept))


def _rnn(op: OpContext) -> tuple[Value, ...]:
    if not can_loop(op, _Rnn, [("tanh",), ("relu",)]):
        return unrolled(op, _Rnn)
    operator = ops.Rnn(relu=activation_names(op, _Rnn.names * len(directions(op)))[0] == "relu")
    return looped(op, LoopKind(lambda _: operator, _gru_parameters(_Rnn), _Rnn.kept))


_CELL, _PEEPHOLE = 6, 7
"""The inputs after those that all recurrent layers have."""

_GATES = (0, 2, 3, 1)
"""The indices of UNIDIRECTIONAL_SEQUENCE_LSTM's gates in ONNX's order: input, output, forget, cell."""


def _lstm(op: OpContext) -> tuple[Value, ...]:
    plain = not op.has(_PEEPHOLE) and not op.integer("input_forget", 0)
    if not plain or not can_loop(op, _Lstm, [("sigmoid", "tanh", "tanh")]):
        return unrolled(op, _Lstm)
    return looped(op, _LOOP)


class _Lstm(Layer):
    """State = o h(cell) and cell = f cell + i g(c), with the gates i (input), o (output), f (forget) and c (cell).

    Peephole weights add a multiple of the cell to the gates i and f, and of the new cell to o.
    """

    gates = 4
    names = ("Sigmoid", "Tanh", "Tanh")
    kept = ((HIDDEN, "hidden"), (_CELL, "cell"))

    def prepare(self) -> None:
        self._own = self.constants("recurrent", self.recurrent, self.recurrent_bias)
        self._coupled = self.op.integer("input_forget", 0) != 0
        self._peepholes: list[Tensor] = []
        if self.op.has(_PEEPHOLE):
            found = part(self.op, _PEEPHOLE, "peephole weights", (self.count, 3 * self.units), self.at)
            for gate in range(3):
                weights = cut(self.op, found, gate * self.units, (gate + 1) * self.units)
                self._peepholes.append(self.tensor(f"peephole {gate}", weights))

    def _gate(self, gate: int, sums: Tensor, cell: Tensor) -> Tensor:
        """Return the gate i, o or f."""
        if self._peepholes:
            sums = self.op.add(sums, self.op.multiply(cell, self._peepholes[gate]))
        return self.activated(0, sums)

    def step(self, product: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        op, (state, cell) = self.op, states
        sums = self.gates_of(op.add(product, self.product(state, self._own)))
        taken = self._gate(0, sums[0], cell)
        kept = op.subtract(op.number("one", 1.0), taken) if self._coupled else self._gate(2, sums[2], cell)
        new = op.add(op.multiply(kept, cell), op.multiply(taken, self.activated(1, sums[3])))
        given = self._gate(1, sums[1], new)
        return op.multiply(given, self.functions[2](op, new)), new


def _lstm_parameters(op: OpContext, sizes: LoopSizes, at: int) -> list[Tensor]:
    """Return the weights, the recurrent weights and the biases of the four gates of direction ``at``."""
    count, units, features = sizes.count, sizes.units, sizes.features
    weights = shaped(op, WEIGHTS, "weights", (count, 4, units, features), f"{units} units and {features} features")
    recurrent = shaped(op, RECURRENT, "recurrent weights", (count, 4, units, units), f"{units} units")
    biases = np.zeros((count, 4, units), np.float32)
    if op.has(BIASES):
        biases = shaped(op, BIASES, "biases", (count, 2, 4, units), f"{units} units").sum(axis=1)
    words = (("weights", weights), ("recurrent", recurrent), ("bias", biases))
    return [op.weights(f"{word}{at}_{gate}", gates[at, gate]) for word, gates in words for gate in _GATES]


_LOOP = LoopKind(
    lambda batch_first: ops.UnidirectionalSequenceLstm(time_major=not batch_first),
    _lstm_parameters,
    _Lstm.kept,
    batch_first=True,
)


OPERATORS: Mapping[str, Converter] = {
    "GRU": _gru,
    "LSTM": _lstm,
    "RNN": _rnn,
}
