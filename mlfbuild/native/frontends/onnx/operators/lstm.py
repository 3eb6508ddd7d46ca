"""LSTM: each direction becomes one float32 UNIDIRECTIONAL_SEQUENCE_LSTM with initial and final states.

Layers that cannot loop, and those with peephole weights or coupled gates, are unrolled.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter, add, multiply, subtract
from mlfbuild.native.frontends.onnx.conversion.recurrent import (
    BIASES,
    HIDDEN,
    RECURRENT,
    WEIGHTS,
    Layer,
    cut,
    part,
    unrolled,
)
from mlfbuild.native.frontends.onnx.conversion.recurrent_loop import LoopKind, LoopSizes, can_loop, looped, shaped
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Tensor, ops

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
            sums = add(self.op, sums, multiply(self.op, cell, self._peepholes[gate]))
        return self.activated(0, sums)

    def step(self, product: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        op, (state, cell) = self.op, states
        sums = self.gates_of(add(op, product, self.product(state, self._own)))
        taken = self._gate(0, sums[0], cell)
        kept = subtract(op, op.number("one", 1.0), taken) if self._coupled else self._gate(2, sums[2], cell)
        new = add(op, multiply(op, kept, cell), multiply(op, taken, self.activated(1, sums[3])))
        given = self._gate(1, sums[1], new)
        return multiply(op, given, self.functions[2](op, new)), new


def _parameters(op: OpContext, sizes: LoopSizes, at: int) -> list[Tensor]:
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
    _parameters,
    _Lstm.kept,
    batch_first=True,
)

OPERATORS: Mapping[str, Converter] = {
    "LSTM": _lstm,
}
