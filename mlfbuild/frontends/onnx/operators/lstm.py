"""LSTM: each direction becomes one float32 UNIDIRECTIONAL_SEQUENCE_LSTM with initial and final states.

Layers with computed weights or lengths, peephole weights, other functions or coupled or bounded gates are unrolled.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.frontends.onnx.builder import checked
from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.activations import activation_names
from mlfbuild.frontends.onnx.operators.arithmetic import Converter, add, multiply, subtract
from mlfbuild.frontends.onnx.operators.recurrent import (
    BIASES,
    HIDDEN,
    LENGTHS,
    RECURRENT,
    WEIGHTS,
    Layer,
    cut,
    directions,
    named_after_first,
    part,
    unrolled,
)
from mlfbuild.frontends.onnx.operators.slice import sliced
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import Array, GraphError, Tensor, ops

_CELL, _PEEPHOLE = 6, 7
"""The inputs after those that all recurrent layers have."""

_GATES = (0, 2, 3, 1)
"""The indices of UNIDIRECTIONAL_SEQUENCE_LSTM's gates in ONNX's order: input, output, forget, cell."""


@dataclass(frozen=True)
class _Layer:
    """Values of all directions; sequences are [batch, time, ...] if ``batch_first``, else [time, batch, ...]."""

    batch_first: bool
    count: int
    """The number of directions."""
    batch: int
    units: int

    @property
    def time(self) -> int:
        """The index of the time dimension."""
        return 1 if self.batch_first else 0

    @property
    def directions(self) -> int:
        """The index of the directions' dimension in states; in the result it is one higher."""
        return 1 if self.batch_first else 0


def _lstm(site: OnnxSite) -> tuple[Value, ...]:
    if not _is_plain(site):
        return unrolled(site, _Lstm)
    site = named_after_first(site)
    ways, sequence = directions(site), site.tensor(0)
    if len(sequence.shape) != 3:
        raise GraphError(site.node.place, f"{sequence} must have 3 dimensions")
    batch_first = site.integer("layout", 0) != 0
    recurrent = site.constant(RECURRENT, "recurrent weights")
    if recurrent.ndim != 3:
        raise GraphError(site.node.place, f"the recurrent weights {list(recurrent.shape)} must have 3 dimensions")
    layer = _Layer(batch_first, len(ways), sequence.shape[0 if batch_first else 1], recurrent.shape[2])
    made = [_direction(site, layer, sequence, at, backwards) for at, backwards in enumerate(ways)]
    results, hidden, cells = zip(*made, strict=True)
    return (
        site.made(_joined(site, results, layer.directions + 1)),
        site.made(_joined(site, hidden, layer.directions)),
        site.made(_joined(site, cells, layer.directions)),
    )


def _is_plain(site: OnnxSite) -> bool:
    """Return whether UNIDIRECTIONAL_SEQUENCE_LSTM can compute the layer; any other is unrolled."""
    if any(site.has(index) and not site.is_constant(index) for index in (WEIGHTS, RECURRENT, BIASES)):
        return False
    if site.has(_PEEPHOLE) or site.integer("input_forget", 0) or site.real_attribute("clip", 0.0):
        return False
    names = _Lstm.names * len(directions(site))
    if activation_names(site, names) != tuple(name.lower() for name in names):
        return False
    if not site.has(LENGTHS):
        return True
    if not site.is_constant(LENGTHS) or site.value(0).rank != 3:
        return False
    steps, batch = site.value(0).shape[:2][:: -1 if site.integer("layout", 0) else 1]
    lengths = site.constant(LENGTHS, "lengths of the sequences")
    return lengths.shape == (batch,) and bool((lengths == steps).all())


class _Lstm(Layer):
    """State = o h(cell) and cell = f cell + i g(c), with the gates i (input), o (output), f (forget) and c (cell).

    Peephole weights add a multiple of the cell to the gates i and f, and of the new cell to o.
    """

    gates = 4
    names = ("Sigmoid", "Tanh", "Tanh")
    kept = ((HIDDEN, "hidden"), (_CELL, "cell"))

    def prepare(self) -> None:
        self._own = self.constants("recurrent", self.recurrent, self.recurrent_bias)
        self._coupled = self.site.integer("input_forget", 0) != 0
        self._peepholes: list[Tensor] = []
        if self.site.has(_PEEPHOLE):
            found = part(self.site, _PEEPHOLE, "peephole weights", (self.count, 3 * self.units), self.at)
            for gate in range(3):
                weights = cut(self.site, found, gate * self.units, (gate + 1) * self.units)
                self._peepholes.append(self.tensor(f"peephole {gate}", weights))

    def _gate(self, gate: int, sums: Tensor, cell: Tensor) -> Tensor:
        """Return the gate i, o or f."""
        if self._peepholes:
            sums = add(self.site, sums, multiply(self.site, cell, self._peepholes[gate]))
        return self.activated(0, sums)

    def step(self, product: Tensor, *states: Tensor) -> tuple[Tensor, ...]:
        site, (state, cell) = self.site, states
        sums = self.gates_of(add(site, product, self.product(state, self._own)))
        taken = self._gate(0, sums[0], cell)
        kept = subtract(site, site.number("one", 1.0), taken) if self._coupled else self._gate(2, sums[2], cell)
        new = add(site, multiply(site, kept, cell), multiply(site, taken, self.activated(1, sums[3])))
        given = self._gate(1, sums[1], new)
        return multiply(site, given, self.functions[2](site, new)), new


def _direction(
    site: OnnxSite, layer: _Layer, sequence: Tensor, at: int, backwards: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the result of direction ``at``, its last hidden state and its last cells, each with a dimension for it."""
    source = _reversed(site, sequence, layer.time) if backwards else sequence
    inputs = [source, *_parameters(site, layer, at, sequence.shape[2])]
    inputs += [_initial(site, layer, index, word, at) for index, word in ((HIDDEN, "hidden"), (_CELL, "cell"))]
    kept = checked(site.name, (layer.batch, layer.units), sequence.dtype)
    result = checked(site.name, (*sequence.shape[:2], layer.units), sequence.dtype)
    operator = ops.UnidirectionalSequenceLstm(time_major=not layer.batch_first)
    made, hidden, cells = site.builder.emit(site.name, operator, inputs, result, kept, kept)
    made = _reversed(site, made, layer.time) if backwards else made
    return (
        _with_directions(site, made, layer.directions + 1),
        _with_directions(site, hidden, layer.directions),
        _with_directions(site, cells, layer.directions),
    )


def _with_directions(site: OnnxSite, tensor: Tensor, axis: int) -> Tensor:
    return site.builder.reshaped(tensor, (*tensor.shape[:axis], 1, *tensor.shape[axis:]))


def _joined(site: OnnxSite, tensors: Sequence[Tensor], axis: int) -> Tensor:
    first = tensors[0]
    if len(tensors) == 1:
        return first
    shape = (*first.shape[:axis], len(tensors), *first.shape[axis + 1 :])
    return site.emit(ops.Concatenation(axis), tensors, shape)


def _reversed(site: OnnxSite, tensor: Tensor, axis: int) -> Tensor:
    positions = [range(size) for size in tensor.shape]
    positions[axis] = positions[axis][::-1]
    return sliced(site, site.made(tensor), positions).tensor


def _initial(site: OnnxSite, layer: _Layer, index: int, word: str, at: int) -> Tensor:
    """Return the initial rows [batch, units] of direction ``at``, zeros if the node has none."""
    if not site.has(index):
        return site.filled(f"{word}{at}", (layer.batch, layer.units), 0, np.float32)
    given = site.tensor(index)
    wanted = (layer.batch, layer.count) if layer.batch_first else (layer.count, layer.batch)
    if given.shape != (*wanted, layer.units):
        raise GraphError(site.node.place, f"{given} should have the shape {[*wanted, layer.units]}")
    positions = [range(size) for size in given.shape]
    positions[layer.directions] = range(at, at + 1)
    return site.builder.reshaped(sliced(site, site.made(given), positions).tensor, (layer.batch, layer.units))


def _parameters(site: OnnxSite, layer: _Layer, at: int, features: int) -> list[Tensor]:
    """Return the weights, the recurrent weights and the biases of the four gates of direction ``at``."""
    units = layer.units
    weights = _shaped(
        site, WEIGHTS, "weights", (layer.count, 4, units, features), f"{units} units and {features} features"
    )
    recurrent = _shaped(site, RECURRENT, "recurrent weights", (layer.count, 4, units, units), f"{units} units")
    biases = np.zeros((layer.count, 4, units), np.float32)
    if site.has(BIASES):
        biases = _shaped(site, BIASES, "biases", (layer.count, 2, 4, units), f"{units} units").sum(axis=1)
    words = (("weights", weights), ("recurrent", recurrent), ("bias", biases))
    return [site.weights(f"{word}{at}_{gate}", gates[at, gate]) for word, gates in words for gate in _GATES]


def _shaped(site: OnnxSite, index: int, what: str, shape: tuple[int, ...], sizes: str) -> Array:
    """Return the constant input ``index`` with the gates as a separate dimension; ``sizes`` is for errors."""
    data = site.constant(index, what)
    if data.shape[:1] != shape[:1] or data.size != math.prod(shape):
        raise GraphError(site.node.place, f"the {what} {list(data.shape)} do not fit {sizes}")
    return data.reshape(shape)


OPERATORS: Mapping[str, Converter] = {
    "LSTM": _lstm,
}
