"""LSTM, GRU and RNN: each direction becomes one operator that loops over the steps.

An LSTM becomes a float32 UNIDIRECTIONAL_SEQUENCE_LSTM with initial and final states. Layers that cannot loop, and LSTMs
with peephole weights or coupled gates, are unrolled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.core import counted
from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.conversion.activations import activation_names
from mlfbuild.native.frontends.onnx.conversion.recurrent import (
    BIASES,
    HIDDEN,
    LENGTHS,
    RECURRENT,
    WEIGHTS,
    Layer,
    Product,
    cut,
    directions,
    named_after_first,
    part,
    unrolled,
)
from mlfbuild.native.frontends.onnx.conversion.selection import sliced
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import Converter, OpContext
from mlfbuild.native.graph import Array, GraphError, Operator, Tensor, ops


@dataclass(frozen=True)
class LoopSizes:
    """Of a layer; sequences are [batch, time, ...] if ``batch_first``, else [time, batch, ...]."""

    batch_first: bool
    count: int
    """The number of directions."""
    batch: int
    units: int
    features: int

    @property
    def time(self) -> int:
        """The index of the time dimension, and of the directions in states; in the result, that is one higher."""
        return 1 if self.batch_first else 0


@dataclass(frozen=True)
class LoopKind:
    """The operator of a layer: what it takes beside the sequence, and whether it takes [batch, time, ...]."""

    operator: Callable[[bool], Operator]
    """Returns the operator for time as the first dimension, or for batch."""
    parameters: Callable[[OpContext, LoopSizes, int], list[Tensor]]
    """Returns the weights of a direction."""
    kept: tuple[tuple[int, str], ...]
    """The inputs that begin states, and a word for each."""
    batch_first: bool = False


def can_loop(op: OpContext, kind: type[Layer], functions: Sequence[tuple[str, ...]]) -> bool:
    """Return whether a layer of ``kind`` has constant weights, all steps, and one of the groups of ``functions``."""
    if any(op.has(index) and not op.is_constant(index) for index in (WEIGHTS, RECURRENT, BIASES)):
        return False
    # The kernels clamp no sums.
    if op.real_attribute("clip", 0.0):
        return False
    count = len(directions(op))
    if activation_names(op, kind.names * count) not in [group * count for group in functions]:
        return False
    if not op.has(LENGTHS):
        return True
    if not op.is_constant(LENGTHS) or op.value(0).rank != 3:
        return False
    # ``layout`` 1 has the batch first; the steps are always the other dimension.
    steps, batch = op.value(0).shape[:2][:: -1 if op.integer("layout", 0) else 1]
    lengths = op.constant(LENGTHS, "lengths of the sequences")
    return lengths.shape == (batch,) and bool((lengths == steps).all())


def looped(op: OpContext, kind: LoopKind) -> tuple[Value, ...]:
    """Convert a layer that ``can_loop``: its results, and its last states."""
    # The first output may be absent, and nodes are named after an output that exists.
    op = named_after_first(op)
    ways, sequence = directions(op), op.tensor(0)
    if len(sequence.shape) != 3:
        raise GraphError(op.node.place, f"{sequence} must have 3 dimensions")
    batch_first = op.integer("layout", 0) != 0
    recurrent = op.constant(RECURRENT, "recurrent weights")
    if recurrent.ndim != 3:
        raise GraphError(op.node.place, f"the recurrent weights {list(recurrent.shape)} must have 3 dimensions")
    batch, units = sequence.shape[0 if batch_first else 1], recurrent.shape[2]
    sizes = LoopSizes(batch_first, len(ways), batch, units, sequence.shape[2])
    made = [_direction(op, kind, sizes, sequence, at, backwards) for at, backwards in enumerate(ways)]
    results, *states = zip(*made, strict=True)
    result = op.made(_joined(op, results, sizes.time + 1))
    return result, *(op.made(_joined(op, state, sizes.time)) for state in states)


def shaped(op: OpContext, index: int, what: str, shape: tuple[int, ...], sizes: str) -> Array:
    """Return the constant input ``index`` in ``shape``, whose first dimension it has; ``sizes`` is for errors."""
    data = op.constant(index, what)
    if data.shape[:1] != shape[:1] or data.size != math.prod(shape) or 0 in shape:
        raise GraphError(op.node.place, f"the {what} {list(data.shape)} do not fit {sizes}")
    return data.reshape(shape)


def _direction(
    op: OpContext, kind: LoopKind, sizes: LoopSizes, sequence: Tensor, at: int, backwards: bool
) -> tuple[Tensor, ...]:
    """Return the result of direction ``at`` and its last states, each with a dimension for it."""
    source = _reversed(op, sequence, sizes.time) if backwards else sequence
    swap = sizes.batch_first and not kind.batch_first
    if swap:
        source = op.emit(ops.Transpose((1, 0, 2)), [source], (source.shape[1], source.shape[0], source.shape[2]))
    inputs = [source, *kind.parameters(op, sizes, at)]
    inputs += [_initial(op, sizes, index, word, at) for index, word in kind.kept]
    last = checked(op.name, (sizes.batch, sizes.units), sequence.dtype)
    rows = checked(op.name, (*source.shape[:2], sizes.units), sequence.dtype)
    operator = kind.operator(sizes.batch_first and kind.batch_first)
    made, *states = op.builder.emit(op.name, operator, inputs, rows, *(last for _ in kind.kept))
    if swap:
        # Back to the layout of the node, since the kernel has time first.
        made = op.emit(ops.Transpose((1, 0, 2)), [made], (made.shape[1], made.shape[0], made.shape[2]))
    # The kernels run forwards only. Results are in the order of time in both directions.
    made = _reversed(op, made, sizes.time) if backwards else made
    return (
        _with_directions(op, made, sizes.time + 1),
        *(_with_directions(op, state, sizes.time) for state in states),
    )


def _with_directions(op: OpContext, tensor: Tensor, axis: int) -> Tensor:
    return op.builder.reshaped(tensor, (*tensor.shape[:axis], 1, *tensor.shape[axis:]))


def _joined(op: OpContext, tensors: Sequence[Tensor], axis: int) -> Tensor:
    first = tensors[0]
    if len(tensors) == 1:
        return first
    shape = (*first.shape[:axis], len(tensors), *first.shape[axis + 1 :])
    return op.emit(ops.Concatenation(axis), tensors, shape)


def _reversed(op: OpContext, tensor: Tensor, axis: int) -> Tensor:
    positions = [range(size) for size in tensor.shape]
    positions[axis] = positions[axis][::-1]
    return sliced(op, op.made(tensor), positions).tensor


def _initial(op: OpContext, sizes: LoopSizes, index: int, word: str, at: int) -> Tensor:
    """Return the initial rows [batch, units] of direction ``at``, zeros if the node has none."""
    if not op.has(index):
        # Zeros are ONNX's default for a missing initial state.
        return op.filled(f"{word}{at}", (sizes.batch, sizes.units), 0, np.float32)
    given = op.tensor(index)
    wanted = (sizes.batch, sizes.count) if sizes.batch_first else (sizes.count, sizes.batch)
    if given.shape != (*wanted, sizes.units):
        raise GraphError(op.node.place, f"{given} should have the shape {[*wanted, sizes.units]}")
    positions = [range(size) for size in given.shape]
    positions[sizes.time] = range(at, at + 1)
    return op.builder.reshaped(sliced(op, op.made(given), positions).tensor, (sizes.batch, sizes.units))


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
