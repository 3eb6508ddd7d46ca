"""GRU and RNN, unrolled: one product for the inputs of all steps, then a few operators per step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.arithmetic import Converter, add, multiply, subtract, unary
from mlfbuild.frontends.onnx.operators.slice import sliced
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import Array, GraphError, Operator, Tensor, ops

_W, _R, _B, _LENGTHS, _HIDDEN = range(1, 6)
"""The inputs after the sequence."""

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""For each layer, whether it reads its sequence from the end."""

_FUNCTIONS: dict[str, Operator] = {"relu": ops.Relu(), "sigmoid": ops.Logistic(), "tanh": ops.Tanh()}
_MOST_STEPS = 64


class _Layer(ABC):
    """One direction; its weights are [gates * units, ...]."""

    gates: int
    names: tuple[str, ...]
    """The default activation functions of the gates."""

    def __init__(self, site: OnnxSite, at: int, count: int) -> None:
        """Read direction ``at`` of ``count``."""
        self.site = site
        weights, recurrent = site.constant(_W, "weights"), site.constant(_R, "recurrent weights")
        self.units = recurrent.shape[-1] if recurrent.ndim else 0
        rows = self.gates * self.units
        self.recurrent = _part(site, recurrent, (count, rows, self.units), "recurrent weights", at)
        self.weights = _part(site, weights, (count, rows, weights.shape[-1] if weights.ndim else 0), "weights", at)
        biases = site.constant(_B, "biases") if site.has(_B) else np.zeros((count, 2 * rows), np.float32)
        self.bias, self.recurrent_bias = np.split(_part(site, biases, (count, 2 * rows), "biases", at), 2)
        self.functions = _functions(site, self.names * count)[at * len(self.names) :]
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Add the constants that all steps read."""

    @abstractmethod
    def step(self, product: Tensor, state: Tensor) -> Tensor:
        """Return the state [batch, units] that follows ``state``; ``product`` is [batch, gates * units]."""

    def constants(self, word: str, weights: Array, bias: Array) -> tuple[Tensor, Tensor]:
        """Add the weights and the bias of a product."""
        return self.site.weights(word, weights), self.site.weights(f"{word} bias", bias)

    def product(self, rows: Tensor, parameters: tuple[Tensor, Tensor]) -> Tensor:
        """Multiply ``rows`` by weights and add a bias."""
        shape = (rows.shape[0], parameters[0].shape[0])
        return self.site.emit(ops.FullyConnected(keep_num_dims=True), [rows, *parameters], shape)

    def cut(self, rows: Tensor) -> list[Tensor]:
        """Split ``rows`` into gates."""
        count = rows.shape[1] // self.units
        return self.site.outputs(ops.Split(1), rows, [(rows.shape[0], self.units)] * count) if count > 1 else [rows]


def _part(site: OnnxSite, data: Array, shape: tuple[int, ...], what: str, at: int) -> Array:
    if data.shape != shape or 0 in shape:
        raise GraphError(site.node.place, f"the {what} {list(data.shape)} should have the shape {list(shape)}")
    part: Array = data[at]
    return part


def _functions(site: OnnxSite, names: tuple[str, ...]) -> list[Operator]:
    found = site.node.attributes.get("activations", names)
    words = [str(word) for word in found] if isinstance(found, tuple) else [str(found)]
    if len(words) != len(names) or any(word.lower() not in _FUNCTIONS for word in words):
        raise site.unsupported(
            f"the activations {', '.join(words)} are not supported", f"use {len(names)} of Relu, Sigmoid and Tanh"
        )
    return [_FUNCTIONS[word.lower()] for word in words]


class _Rnn(_Layer):
    """State = f(W x + R state + b)."""

    gates = 1
    names = ("Tanh",)

    def prepare(self) -> None:
        self._own = self.constants("recurrent", self.recurrent, self.recurrent_bias)

    def step(self, product: Tensor, state: Tensor) -> Tensor:
        return unary(self.site, self.functions[0], add(self.site, product, self.product(state, self._own)))


class _Gru(_Layer):
    """State = (1 - z) h + z state, with the gates z (update), r (reset) and h (candidate)."""

    gates = 3
    names = ("Sigmoid", "Tanh")

    def prepare(self) -> None:
        """Compute all gates of the state in one product if the reset is applied after it."""
        self._reset_last = self.site.integer("linear_before_reset", 0) != 0
        both = 3 * self.units if self._reset_last else 2 * self.units
        self._own = self.constants("recurrent", self.recurrent[:both], self.recurrent_bias[:both])
        if not self._reset_last:
            self._candidate = self.constants("candidate", self.recurrent[both:], self.recurrent_bias[both:])

    def step(self, product: Tensor, state: Tensor) -> Tensor:
        site, (gate, function) = self.site, self.functions[:2]
        inputs, own = self.cut(product), self.cut(self.product(state, self._own))
        update = unary(site, gate, add(site, inputs[0], own[0]))
        reset = unary(site, gate, add(site, inputs[1], own[1]))
        if self._reset_last:
            kept = multiply(site, reset, own[2])
        else:
            kept = self.product(multiply(site, reset, state), self._candidate)
        candidate = unary(site, function, add(site, inputs[2], kept))
        return add(site, candidate, multiply(site, update, subtract(site, state, candidate)))


def _unrolled(site: OnnxSite, kind: type[_Layer]) -> tuple[Value, ...]:
    # Nodes and constants are named after the first output, which is often absent.
    asked_for = tuple(filter(None, site.node.outputs)) or site.node.outputs
    site = replace(site, node=replace(site.node, outputs=asked_for))
    directions = _DIRECTIONS.get(site.text("direction", "forward"))
    if directions is None:
        raise GraphError(site.node.place, f"attribute direction is {site.text('direction', '')!r}")
    value, swapped = site.value(0), site.integer("layout", 0) != 0
    if value.rank != 3:
        raise GraphError(site.node.place, f"{value.tensor} must have 3 dimensions")
    sequence = site.builder.stored(value, (1, 0, 2) if swapped else (0, 1, 2))  # time is the first dimension
    _check(site, sequence.shape[0])
    results, states = [], []
    for at, backwards in enumerate(directions):
        layer = kind(site, at, len(directions))
        state = _initial(site, layer, (len(directions), sequence.shape[1]), at, swapped=swapped)
        rows = _steps(layer, sequence, state, backwards=backwards)
        results.append(_joined(site, rows, (len(rows), 1, *state.shape)))
        states.append(site.builder.reshaped(rows[0 if backwards else -1], (1, *state.shape)))
    result, state = _concatenated(site, results, 1), _concatenated(site, states, 0)
    return Value(result, (1, 2, 0, 3) if swapped else (0, 1, 2, 3)), Value(state, (1, 0, 2) if swapped else (0, 1, 2))


def _check(site: OnnxSite, steps: int) -> None:
    """Refuse variants that a step does not support, and more steps than firmware has room for."""
    if steps > _MOST_STEPS:
        raise site.unsupported(
            f"{steps} steps are not supported, as each is unrolled",
            f"use at most {_MOST_STEPS}, or run the network step by step with the state as input and output",
        )
    if "clip" in site.node.attributes:
        raise site.unsupported(
            "the attribute clip, which bounds the gates, is not supported", "train the network without it"
        )
    if site.has(_LENGTHS) and (site.constant(_LENGTHS, "lengths of the sequences") != steps).any():
        raise site.unsupported(
            f"sequences of fewer than {steps} steps are not supported", f"pad all sequences to {steps} steps"
        )


def _initial(site: OnnxSite, layer: _Layer, wanted: tuple[int, int], at: int, *, swapped: bool) -> Tensor:
    """Return the initial rows [batch, units] of direction ``at``, zeros if the node has none."""
    directions, batch = wanted
    if not site.has(_HIDDEN):
        return site.weights("state", np.zeros((batch, layer.units), np.float32))
    given = site.value(_HIDDEN)
    if given.shape != ((batch, directions, layer.units) if swapped else (directions, batch, layer.units)):
        raise GraphError(site.node.place, f"{given.tensor} does not fit {batch} rows of {layer.units} units")
    axis = 1 if swapped else 0
    ranges = [range(at, at + 1) if other == axis else range(size) for other, size in enumerate(given.shape)]
    own = sliced(site, given, ranges)
    return site.builder.reshaped(site.builder.stored(own, (1, 0, 2) if swapped else (0, 1, 2)), (batch, layer.units))


def _steps(layer: _Layer, sequence: Tensor, state: Tensor, *, backwards: bool) -> list[Tensor]:
    """Return the state after every step, in the order of time."""
    site, (steps, batch, features) = layer.site, sequence.shape
    if layer.weights.shape[1] != features:
        raise GraphError(site.node.place, f"weights for {layer.weights.shape[1]} features do not fit {sequence}")
    rows = site.builder.reshaped(sequence, (steps * batch, features))
    product = layer.product(rows, layer.constants("weights", layer.weights, layer.bias))
    shape = (batch, product.shape[1])
    products = site.outputs(ops.Split(0), product, [shape] * steps) if steps > 1 else [product]
    states: list[Tensor] = []
    for one in reversed(products) if backwards else products:
        state = layer.step(one, state)
        states.append(state)
    return states[::-1] if backwards else states


def _joined(site: OnnxSite, rows: list[Tensor], shape: tuple[int, ...]) -> Tensor:
    return site.builder.reshaped(_concatenated(site, rows, 0), shape)


def _concatenated(site: OnnxSite, tensors: list[Tensor], axis: int) -> Tensor:
    first = tensors[0]
    if len(tensors) == 1:
        return first
    shape = (*first.shape[:axis], sum(tensor.shape[axis] for tensor in tensors), *first.shape[axis + 1 :])
    return site.emit(ops.Concatenation(axis), tensors, shape)


OPERATORS: Mapping[str, Converter] = {
    "GRU": lambda site: _unrolled(site, _Gru),
    "RNN": lambda site: _unrolled(site, _Rnn),
}
