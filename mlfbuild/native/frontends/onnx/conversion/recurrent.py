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

from mlfbuild.native.frontends.onnx.conversion.activations import activations
from mlfbuild.native.frontends.onnx.conversion.rescaling import clamped
from mlfbuild.native.frontends.onnx.conversion.selection import sliced
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
from mlfbuild.native.graph import Array, DType, GraphError, Tensor, ops

WEIGHTS, RECURRENT, BIASES, LENGTHS, HIDDEN = range(1, 6)
"""The inputs after the sequence."""

DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""For each layer, whether it reads its sequence from the end."""

# An unrolled step is several operators, each with a call in flash.
# Each step is several nodes and calls; layers that ``can_loop`` have no such limit.
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

    def __init__(self, op: OpContext, at: int, count: int) -> None:
        """Read direction ``at`` of ``count``."""
        self.op, self.at, self.count = op, at, count
        shape = given_shape(op, RECURRENT, "recurrent weights")
        self.units = shape[-1] if shape else 0
        rows, features = self.gates * self.units, given_shape(op, WEIGHTS, "weights")[-1:] or (0,)
        self.recurrent = part(op, RECURRENT, "recurrent weights", (count, rows, self.units), at)
        self.weights = part(op, WEIGHTS, "weights", (count, rows, *features), at)
        biases: Values = np.zeros(2 * rows, np.float32)
        if op.has(BIASES):
            biases = part(op, BIASES, "biases", (count, 2 * rows), at)
        self.bias, self.recurrent_bias = cut(op, biases, 0, rows), cut(op, biases, rows, 2 * rows)
        self.functions = activations(op, self.names * count)[at * len(self.names) :]
        # 0 means no limit.
        self._limit = abs(op.real_attribute("clip", math.inf)) or math.inf
        if math.isnan(self._limit):
            raise GraphError(op.node.place, "attribute clip is not a number")
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
        return values if isinstance(values, Tensor) else self.op.weights(word, values)

    def product(self, rows: Tensor, factors: Product) -> Tensor:
        """Multiply ``rows`` by weights and add a bias."""
        shape = (rows.shape[0], factors.weights.shape[0])
        if factors.weights.constant and factors.bias.constant:
            inputs = [rows, factors.weights, factors.bias]
            return self.op.emit(ops.FullyConnected(keep_num_dims=True), inputs, shape)
        if factors.weights.constant:
            made = self.op.emit(ops.FullyConnected(keep_num_dims=True), [rows, factors.weights, None], shape)
        else:
            made = self.op.emit(ops.BatchMatmul(adj_y=True), [rows, factors.weights], shape)
        return self.op.add(made, factors.bias)

    def activated(self, function: int, sums: Tensor) -> Tensor:
        """Return an activation function of ``sums``, which the attribute ``clip`` bounds."""
        bounded = clamped(self.op, sums, -self._limit, self._limit)
        return self.functions[function](self.op, bounded)

    def gates_of(self, rows: Tensor) -> list[Tensor]:
        """Split ``rows`` into gates."""
        count = rows.shape[1] // self.units
        return self.op.outputs(ops.Split(1), rows, [(rows.shape[0], self.units)] * count) if count > 1 else [rows]


def given_shape(op: OpContext, index: int, what: str) -> tuple[int, ...]:
    """Return the shape of input ``index``, constant or computed."""
    if not op.has(index):
        raise GraphError(op.node.place, f"input {index}, the {what}, is absent")
    known = op.constant_shape(index)
    return op.held(index).shape if known is None else known


def part(op: OpContext, index: int, what: str, shape: tuple[int, ...], at: int) -> Values:
    """Return direction ``at`` of input ``index``, which must have ``shape``."""
    given = given_shape(op, index, what)
    if given != shape or 0 in shape:
        raise GraphError(op.node.place, f"the {what} {list(given)} should have the shape {list(shape)}")
    if op.is_constant(index):
        constant: Array = op.constant(index, what)[at]
        return constant
    return cut(op, op.builder.reshaped(op.tensor(index), (shape[0] * shape[1], *shape[2:])),
               at * shape[1], (at + 1) * shape[1])  # fmt: skip


def cut(op: OpContext, values: Values, begin: int, end: int) -> Values:
    """Return the rows of ``values`` from ``begin`` to ``end``."""
    if not isinstance(values, Tensor):
        return values[begin:end]
    ranges = [range(begin, end), *(range(size) for size in values.shape[1:])]
    return sliced(op, op.made(values), ranges).tensor


def named_after_first(op: OpContext) -> OpContext:
    """Return ``op`` with nodes and constants named after the first output that is present."""
    asked_for = tuple(filter(None, op.node.outputs)) or op.node.outputs
    return replace(op, node=replace(op.node, outputs=asked_for))


def directions(op: OpContext) -> tuple[bool, ...]:
    """Return for each direction whether it is backwards."""
    found = DIRECTIONS.get(op.text("direction", "forward"))
    if found is None:
        raise GraphError(op.node.place, f"attribute direction is {op.text('direction', '')!r}")
    return found


def unrolled(op: OpContext, kind: type[Layer]) -> tuple[Value, ...]:
    """Convert a recurrent layer of any ``kind``: its results, and its last states."""
    op = named_after_first(op)
    ways = directions(op)
    value, swapped = op.value(0), op.integer("layout", 0) != 0
    if value.rank != 3:
        raise GraphError(op.node.place, f"{value.tensor} must have 3 dimensions")
    sequence = op.builder.stored(value, (1, 0, 2) if swapped else (0, 1, 2))  # time is the first dimension
    if sequence.shape[0] > _MOST_STEPS:
        raise op.unsupported(
            f"{sequence.shape[0]} steps are not supported, as each is unrolled",
            f"use at most {_MOST_STEPS}, or run the network step by step with the state as input and output",
        )
    lengths = _Lengths(op, *sequence.shape[:2])
    results = []
    lasts: list[list[Tensor]] = [[] for _ in kind.kept]
    for at, backwards in enumerate(ways):
        layer = kind(op, at, len(ways))
        begin = tuple(
            _initial(op, layer, index, word, (len(ways), sequence.shape[1]), at, swapped=swapped)
            for index, word in kind.kept
        )
        rows, states = _steps(layer, sequence, begin, lengths, backwards=backwards)
        results.append(op.builder.reshaped(_concatenated(op, rows, 0), (len(rows), 1, *begin[0].shape)))
        for last, state in zip(lasts, states, strict=True):
            last.append(op.builder.reshaped(lengths.last(state), (1, *state.shape)))
    order = (1, 0, 2) if swapped else (0, 1, 2)
    result = Value(_concatenated(op, results, 1), (1, 2, 0, 3) if swapped else (0, 1, 2, 3))
    return result, *(Value(_concatenated(op, last, 0), order) for last in lasts)


class _Lengths:
    """The numbers of steps of all sequences."""

    def __init__(self, op: OpContext, steps: int, batch: int) -> None:
        self._op = op
        self._lengths: Array | Tensor = np.full(batch, steps)
        if not op.has(LENGTHS):
            return
        shape = given_shape(op, LENGTHS, "lengths of the sequences")
        if shape != (batch,):
            raise GraphError(op.node.place, f"{list(shape)} lengths do not fit {batch} sequences")
        if op.is_constant(LENGTHS):
            self._lengths = known = op.constant(LENGTHS, "lengths of the sequences")
            if (known < 0).any() or (known > steps).any():
                raise GraphError(op.node.place, f"has sequences that are longer than {steps}, or shorter than 0")
            return
        self._lengths = computed = op.builder.reshaped(op.tensor(LENGTHS), (batch, 1))
        if computed.dtype is not DType.INT32:
            raise GraphError(op.node.place, f"the lengths {computed} are not int32")

    def within(self, step: int) -> bool | Tensor:
        """Return for each sequence [batch, 1] if ``step`` is part of it, or one answer for all of them."""
        if not isinstance(self._lengths, Tensor):
            inside = self._lengths > step
            if inside.all() or not inside.any():
                return bool(inside.all())
            return self._op.weights(f"step {step}", inside.reshape(-1, 1))
        number = self._op.weights(f"step {step}", np.array(step, np.int32))
        return self._op.relation(ops.Greater(), self._lengths, number)

    def last(self, state: Tensor) -> Tensor:
        """Return the last ``state``, with zeros for sequences without steps, as in onnxruntime."""
        begun = self.within(0)
        return state if begun is True else self._op.select(self._tensor(begun), state, 0.0)

    def _tensor(self, answers: bool | Tensor) -> Tensor:
        return answers if isinstance(answers, Tensor) else self._op.weights("steps", np.array(answers))


def _initial(
    op: OpContext, layer: Layer, index: int, word: str, wanted: tuple[int, int], at: int, *, swapped: bool
) -> Tensor:
    """Return the initial rows [batch, units] of direction ``at``, zeros if the node has none."""
    count, batch = wanted
    if not op.has(index):
        return op.filled(word, (batch, layer.units), 0, np.float32)
    given = op.value(index)
    if given.shape != ((batch, count, layer.units) if swapped else (count, batch, layer.units)):
        raise GraphError(op.node.place, f"{given.tensor} does not fit {batch} rows of {layer.units} units")
    axis = 1 if swapped else 0
    ranges = [range(at, at + 1) if other == axis else range(size) for other, size in enumerate(given.shape)]
    own = sliced(op, given, ranges)
    return op.builder.reshaped(op.builder.stored(own, (1, 0, 2) if swapped else (0, 1, 2)), (batch, layer.units))


def _steps(
    layer: Layer, sequence: Tensor, states: tuple[Tensor, ...], lengths: _Lengths, *, backwards: bool
) -> tuple[list[Tensor], tuple[Tensor, ...]]:
    """Return the result of every step in the order of time, and the last states."""
    op, (steps, batch, features) = layer.op, sequence.shape
    if layer.weights.shape[1] != features:
        raise GraphError(op.node.place, f"weights for {layer.weights.shape[1]} features do not fit {sequence}")
    rows = op.builder.reshaped(sequence, (steps * batch, features))
    # The products with the inputs of all steps at once: they do not depend on the state, and one large product is
    # faster.
    product = layer.product(rows, layer.constants("weights", layer.weights, layer.bias))
    shape = (batch, product.shape[1])
    products = op.outputs(ops.Split(0), product, [shape] * steps) if steps > 1 else [product]
    results: list[Tensor] = []
    for step in reversed(range(steps)) if backwards else range(steps):
        inside = lengths.within(step)
        # No sequence is that long.
        if inside is False:
            results.append(op.filled("padding", states[0].shape, 0, np.float32))
            continue
        made = layer.step(products[step], *states)
        if isinstance(inside, Tensor):
            results.append(op.select(inside, made[0], 0.0))
            # A sequence that has ended keeps its state, while the others of the batch go on.
            states = tuple(op.select(inside, new, old) for new, old in zip(made, states, strict=True))
        else:
            results.append(made[0])
            states = made
    return results[::-1] if backwards else results, states


def _concatenated(op: OpContext, tensors: Sequence[Tensor], axis: int) -> Tensor:
    first = tensors[0]
    if len(tensors) == 1:
        return first
    shape = (*first.shape[:axis], sum(tensor.shape[axis] for tensor in tensors), *first.shape[axis + 1 :])
    return op.emit(ops.Concatenation(axis), tensors, shape)
