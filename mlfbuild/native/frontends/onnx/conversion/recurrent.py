"""Recurrent layers, unrolled: one product for the inputs of all steps, then a few operators per step.

Weights and biases are constant or computed, lengths of sequences as well. A sequence that is shorter than the others
has rows of zeros after its end, and keeps its state there; in the reverse direction, it begins at its end. The last
states of a sequence without steps are zeros, as in onnxruntime.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.operators.activations import activations
from mlfbuild.native.frontends.onnx.operators.arithmetic import add, relation, select
from mlfbuild.native.frontends.onnx.operators.relu import clamped
from mlfbuild.native.frontends.onnx.operators.slice import sliced
from mlfbuild.native.frontends.onnx.site import OnnxSite
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops

WEIGHTS, RECURRENT, BIASES, LENGTHS, HIDDEN = range(1, 6)
"""The inputs after the sequence."""

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""For each layer, whether it reads its sequence from the end."""

_MOST_STEPS = 64

Values = Array | Tensor
"""Weights, constant or computed."""


@dataclass(frozen=True)
class Product:
    """Weights [outputs, inputs] and a bias, as tensors; a computed bias is added to the product."""

    weights: Tensor
    bias: Tensor


class Layer(ABC):
    """One direction; its weights are [gates * units, ...]."""

    gates: int
    names: tuple[str, ...]
    """The default activation functions of the gates."""
    kept: tuple[tuple[int, str], ...] = ((HIDDEN, "state"),)
    """The inputs that begin states, the first of which is the result of a step, and a word for each."""

    def __init__(self, site: OnnxSite, at: int, count: int) -> None:
        """Read direction ``at`` of ``count``."""
        self.site, self.at, self.count = site, at, count
        shape = given_shape(site, RECURRENT, "recurrent weights")
        self.units = shape[-1] if shape else 0
        rows, features = self.gates * self.units, given_shape(site, WEIGHTS, "weights")[-1:] or (0,)
        self.recurrent = part(site, RECURRENT, "recurrent weights", (count, rows, self.units), at)
        self.weights = part(site, WEIGHTS, "weights", (count, rows, *features), at)
        biases: Values = np.zeros(2 * rows, np.float32)
        if site.has(BIASES):
            biases = part(site, BIASES, "biases", (count, 2 * rows), at)
        self.bias, self.recurrent_bias = cut(site, biases, 0, rows), cut(site, biases, rows, 2 * rows)
        self.functions = activations(site, self.names * count)[at * len(self.names) :]
        self._limit = abs(site.real_attribute("clip", math.inf)) or math.inf
        if math.isnan(self._limit):
            raise GraphError(site.node.place, "attribute clip is not a number")
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Add the constants that all steps read."""

    @abstractmethod
    def step(self, product: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        """Return the states [batch, units] that follow ``states``; ``product`` is [batch, gates * units]."""

    def constants(self, word: str, weights: Values, bias: Values) -> Product:
        """Add the weights and the bias of a product."""
        return Product(self.tensor(word, weights), self.tensor(f"{word} bias", bias))

    def tensor(self, word: str, values: Values) -> Tensor:
        """Return ``values`` as a tensor; ``word`` names constants."""
        return values if isinstance(values, Tensor) else self.site.weights(word, values)

    def product(self, rows: Tensor, factors: Product) -> Tensor:
        """Multiply ``rows`` by weights and add a bias."""
        shape = (rows.shape[0], factors.weights.shape[0])
        if factors.weights.constant and factors.bias.constant:
            inputs = [rows, factors.weights, factors.bias]
            return self.site.emit(ops.FullyConnected(keep_num_dims=True), inputs, shape)
        if factors.weights.constant:
            made = self.site.emit(ops.FullyConnected(keep_num_dims=True), [rows, factors.weights, None], shape)
        else:
            made = self.site.emit(ops.BatchMatmul(adj_y=True), [rows, factors.weights], shape)
        return add(self.site, made, factors.bias)

    def activated(self, function: int, sums: Tensor) -> Tensor:
        """Return an activation function of ``sums``, which the attribute ``clip`` bounds."""
        bounded = clamped(self.site, sums, -self._limit, self._limit)
        return self.functions[function](self.site, bounded)

    def gates_of(self, rows: Tensor) -> list[Tensor]:
        """Split ``rows`` into gates."""
        count = rows.shape[1] // self.units
        return self.site.outputs(ops.Split(1), rows, [(rows.shape[0], self.units)] * count) if count > 1 else [rows]


def given_shape(site: OnnxSite, index: int, what: str) -> tuple[int, ...]:
    """Return the shape of input ``index``, constant or computed."""
    if not site.has(index):
        raise GraphError(site.node.place, f"input {index}, the {what}, is absent")
    known = site.constant_shape(index)
    return site.held(index).shape if known is None else known


def part(site: OnnxSite, index: int, what: str, shape: tuple[int, ...], at: int) -> Values:
    """Return direction ``at`` of input ``index``, which must have ``shape``."""
    given = given_shape(site, index, what)
    if given != shape or 0 in shape:
        raise GraphError(site.node.place, f"the {what} {list(given)} should have the shape {list(shape)}")
    if site.is_constant(index):
        constant: Array = site.constant(index, what)[at]
        return constant
    return cut(site, site.builder.reshaped(site.tensor(index), (shape[0] * shape[1], *shape[2:])),
               at * shape[1], (at + 1) * shape[1])  # fmt: skip


def cut(site: OnnxSite, values: Values, begin: int, end: int) -> Values:
    """Return the rows of ``values`` from ``begin`` to ``end``."""
    if not isinstance(values, Tensor):
        return values[begin:end]
    ranges = [range(begin, end), *(range(size) for size in values.shape[1:])]
    return sliced(site, site.made(values), ranges).tensor


def named_after_first(site: OnnxSite) -> OnnxSite:
    """Return ``site`` with nodes and constants named after the first output that is present."""
    asked_for = tuple(filter(None, site.node.outputs)) or site.node.outputs
    return replace(site, node=replace(site.node, outputs=asked_for))


def directions(site: OnnxSite) -> tuple[bool, ...]:
    """Return for each direction whether it is backwards."""
    found = DIRECTIONS.get(site.text("direction", "forward"))
    if found is None:
        raise GraphError(site.node.place, f"attribute direction is {site.text('direction', '')!r}")
    return found


def unrolled(site: OnnxSite, kind: type[Layer]) -> tuple[Value, ...]:
    """Convert a recurrent layer of any ``kind``: its results, and its last states."""
    site = named_after_first(site)
    ways = directions(site)
    value, swapped = site.value(0), site.integer("layout", 0) != 0
    if value.rank != 3:
        raise GraphError(site.node.place, f"{value.tensor} must have 3 dimensions")
    sequence = site.builder.stored(value, (1, 0, 2) if swapped else (0, 1, 2))  # time is the first dimension
    if sequence.shape[0] > _MOST_STEPS:
        raise site.unsupported(
            f"{sequence.shape[0]} steps are not supported, as each is unrolled",
            f"use at most {_MOST_STEPS}, or run the network step by step with the state as input and output",
        )
    lengths = _Lengths(site, *sequence.shape[:2])
    results = []
    lasts: list[list[Tensor]] = [[] for _ in kind.kept]
    for at, backwards in enumerate(ways):
        layer = kind(site, at, len(ways))
        begin = tuple(
            _initial(site, layer, index, word, (len(ways), sequence.shape[1]), at, swapped=swapped)
            for index, word in kind.kept
        )
        rows, states = _steps(layer, sequence, begin, lengths, backwards=backwards)
        results.append(_joined(site, rows, (len(rows), 1, *begin[0].shape)))
        for last, state in zip(lasts, states, strict=True):
            last.append(site.builder.reshaped(lengths.last(state), (1, *state.shape)))
    order = (1, 0, 2) if swapped else (0, 1, 2)
    result = Value(_concatenated(site, results, 1), (1, 2, 0, 3) if swapped else (0, 1, 2, 3))
    return result, *(Value(_concatenated(site, last, 0), order) for last in lasts)


class _Lengths:
    """The numbers of steps of all sequences."""

    def __init__(self, site: OnnxSite, steps: int, batch: int) -> None:
        self._site = site
        self._known: Array | None = np.full(batch, steps)
        self._computed: Tensor | None = None
        if not site.has(LENGTHS):
            return
        shape = given_shape(site, LENGTHS, "lengths of the sequences")
        if shape != (batch,):
            raise GraphError(site.node.place, f"{list(shape)} lengths do not fit {batch} sequences")
        if site.is_constant(LENGTHS):
            self._known = site.constant(LENGTHS, "lengths of the sequences")
            if (self._known < 0).any() or (self._known > steps).any():
                raise GraphError(site.node.place, f"has sequences that are longer than {steps}, or shorter than 0")
            return
        self._known = None
        self._computed = site.builder.reshaped(site.tensor(LENGTHS), (batch, 1))
        if self._computed.dtype is not DType.INT32:
            raise GraphError(site.node.place, f"the lengths {self._computed} are not int32")

    def within(self, step: int) -> bool | Tensor:
        """Return for each sequence [batch, 1] if ``step`` is part of it, or one answer for all of them."""
        if self._known is not None:
            inside = self._known > step
            if inside.all() or not inside.any():
                return bool(inside.all())
            return self._site.weights(f"step {step}", inside.reshape(-1, 1))
        assert self._computed is not None
        number = self._site.weights(f"step {step}", np.array(step, np.int32))
        return relation(self._site, ops.Greater(), self._computed, number)

    def last(self, state: Tensor) -> Tensor:
        """Return the last ``state``, with zeros for sequences without steps, as in onnxruntime."""
        begun = self.within(0)
        return state if begun is True else select(self._site, self._tensor(begun), state, 0.0)

    def _tensor(self, answers: bool | Tensor) -> Tensor:
        return answers if isinstance(answers, Tensor) else self._site.weights("steps", np.array(answers))


def _initial(
    site: OnnxSite, layer: Layer, index: int, word: str, wanted: tuple[int, int], at: int, *, swapped: bool
) -> Tensor:
    """Return the initial rows [batch, units] of direction ``at``, zeros if the node has none."""
    count, batch = wanted
    if not site.has(index):
        return site.filled(word, (batch, layer.units), 0, np.float32)
    given = site.value(index)
    if given.shape != ((batch, count, layer.units) if swapped else (count, batch, layer.units)):
        raise GraphError(site.node.place, f"{given.tensor} does not fit {batch} rows of {layer.units} units")
    axis = 1 if swapped else 0
    ranges = [range(at, at + 1) if other == axis else range(size) for other, size in enumerate(given.shape)]
    own = sliced(site, given, ranges)
    return site.builder.reshaped(site.builder.stored(own, (1, 0, 2) if swapped else (0, 1, 2)), (batch, layer.units))


def _steps(
    layer: Layer, sequence: Tensor, states: tuple[Tensor, ...], lengths: _Lengths, *, backwards: bool
) -> tuple[list[Tensor], tuple[Tensor, ...]]:
    """Return the result of every step in the order of time, and the last states."""
    site, (steps, batch, features) = layer.site, sequence.shape
    if layer.weights.shape[1] != features:
        raise GraphError(site.node.place, f"weights for {layer.weights.shape[1]} features do not fit {sequence}")
    rows = site.builder.reshaped(sequence, (steps * batch, features))
    product = layer.product(rows, layer.constants("weights", layer.weights, layer.bias))
    shape = (batch, product.shape[1])
    products = site.outputs(ops.Split(0), product, [shape] * steps) if steps > 1 else [product]
    results: list[Tensor] = []
    for step in reversed(range(steps)) if backwards else range(steps):
        inside = lengths.within(step)
        if inside is False:
            results.append(site.filled("padding", states[0].shape, 0, np.float32))
            continue
        made = layer.step(products[step], *states)
        if isinstance(inside, Tensor):
            results.append(select(site, inside, made[0], 0.0))
            states = tuple(select(site, inside, new, old) for new, old in zip(made, states, strict=True))
        else:
            results.append(made[0])
            states = made
    return results[::-1] if backwards else results, states


def _joined(site: OnnxSite, rows: Sequence[Tensor], shape: tuple[int, ...]) -> Tensor:
    return site.builder.reshaped(_concatenated(site, rows, 0), shape)


def _concatenated(site: OnnxSite, tensors: Sequence[Tensor], axis: int) -> Tensor:
    first = tensors[0]
    if len(tensors) == 1:
        return first
    shape = (*first.shape[:axis], sum(tensor.shape[axis] for tensor in tensors), *first.shape[axis + 1 :])
    return site.emit(ops.Concatenation(axis), tensors, shape)
