"""GRU and RNN: each direction becomes one operator that loops over the steps; layers that cannot loop are unrolled."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from mlfbuild.core import counted
from mlfbuild.native.frontends.onnx.conversion.activations import activation_names
from mlfbuild.native.frontends.onnx.conversion.arithmetic import Converter, add, multiply, subtract
from mlfbuild.native.frontends.onnx.conversion.recurrent import (
    BIASES,
    RECURRENT,
    WEIGHTS,
    Layer,
    Product,
    cut,
    directions,
    unrolled,
)
from mlfbuild.native.frontends.onnx.conversion.recurrent_loop import LoopKind, LoopSizes, can_loop, looped, shaped
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Tensor, ops


class _Rnn(Layer):
    """State = f(W x + R state + b)."""

    gates = 1
    names = ("Tanh",)

    # Weights of the state and its bias are one product in each step.
    def prepare(self) -> None:
        self._own = self.constants("recurrent", self.recurrent, self.recurrent_bias)

    def step(self, product: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        return (self.activated(0, add(self.op, product, self.product(states[0], self._own))),)


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
        update = self.activated(0, add(op, inputs[0], own[0]))
        reset = self.activated(0, add(op, inputs[1], own[1]))
        if self._reset_last:
            kept = multiply(op, reset, own[2])
        else:
            kept = self.product(multiply(op, reset, state), self._candidate)
        candidate = self.activated(1, add(op, inputs[2], kept))
        # z * state + (1 - z) * h, with one product less.
        return (add(op, candidate, multiply(op, update, subtract(op, state, candidate))),)


def _parameters(kind: type[Layer]) -> Callable[[OpContext, LoopSizes, int], list[Tensor]]:
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
    return looped(op, LoopKind(lambda _: operator, _parameters(_Gru), _Gru.kept))


def _rnn(op: OpContext) -> tuple[Value, ...]:
    if not can_loop(op, _Rnn, [("tanh",), ("relu",)]):
        return unrolled(op, _Rnn)
    operator = ops.Rnn(relu=activation_names(op, _Rnn.names * len(directions(op)))[0] == "relu")
    return looped(op, LoopKind(lambda _: operator, _parameters(_Rnn), _Rnn.kept))


OPERATORS: Mapping[str, Converter] = {
    "GRU": _gru,
    "RNN": _rnn,
}
