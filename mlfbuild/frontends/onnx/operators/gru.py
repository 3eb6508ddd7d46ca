"""GRU and RNN, unrolled."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.frontends.onnx.operators.arithmetic import Converter, add, multiply, subtract
from mlfbuild.frontends.onnx.operators.recurrent import Layer, Product, cut, unrolled
from mlfbuild.graph import Tensor


class _Rnn(Layer):
    """State = f(W x + R state + b)."""

    gates = 1
    names = ("Tanh",)

    def prepare(self) -> None:
        self._own = self.constants("recurrent", self.recurrent, self.recurrent_bias)

    def step(self, product: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        return (self.activated(0, add(self.site, product, self.product(states[0], self._own))),)


class _Gru(Layer):
    """State = (1 - z) h + z state, with the gates z (update), r (reset) and h (candidate)."""

    gates = 3
    names = ("Sigmoid", "Tanh")

    def prepare(self) -> None:
        """Compute all gates of the state in one product if the reset is applied after it."""
        self._reset_last = self.site.integer("linear_before_reset", 0) != 0
        both = 3 * self.units if self._reset_last else 2 * self.units
        self._own = self._part("recurrent", 0, both)
        if not self._reset_last:
            self._candidate = self._part("candidate", both, 3 * self.units)

    def _part(self, word: str, begin: int, end: int) -> Product:
        site = self.site
        return self.constants(word, cut(site, self.recurrent, begin, end), cut(site, self.recurrent_bias, begin, end))

    def step(self, product: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        site, (state,) = self.site, states
        inputs, own = self.gates_of(product), self.gates_of(self.product(state, self._own))
        update = self.activated(0, add(site, inputs[0], own[0]))
        reset = self.activated(0, add(site, inputs[1], own[1]))
        if self._reset_last:
            kept = multiply(site, reset, own[2])
        else:
            kept = self.product(multiply(site, reset, state), self._candidate)
        candidate = self.activated(1, add(site, inputs[2], kept))
        return (add(site, candidate, multiply(site, update, subtract(site, state, candidate))),)


OPERATORS: Mapping[str, Converter] = {
    "GRU": lambda site: unrolled(site, _Gru),
    "RNN": lambda site: unrolled(site, _Rnn),
}
