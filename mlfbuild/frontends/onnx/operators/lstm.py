"""LSTM: each direction becomes one float32 UNIDIRECTIONAL_SEQUENCE_LSTM with initial and final states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mlfbuild.frontends.onnx.builder import checked
from mlfbuild.frontends.onnx.layout import Value
from mlfbuild.frontends.onnx.operators.arithmetic import Converter
from mlfbuild.frontends.onnx.operators.slice import sliced
from mlfbuild.frontends.onnx.site import OnnxSite
from mlfbuild.graph import Array, GraphError, Tensor, ops

_W, _R, _B, _LENGTHS, _HIDDEN, _CELL, _PEEPHOLE = range(1, 8)
"""The inputs after the sequence."""

_GATES = (0, 2, 3, 1)
"""The indices of UNIDIRECTIONAL_SEQUENCE_LSTM's gates in ONNX's order: input, output, forget, cell."""

_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""For each layer, whether it reads its sequence from the end."""

_ACTIVATIONS = ("sigmoid", "tanh", "tanh")


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
    # Nodes and constants are named after the first output, which is often absent.
    asked_for = tuple(filter(None, site.node.outputs)) or site.node.outputs
    site = replace(site, node=replace(site.node, outputs=asked_for))
    directions = _DIRECTIONS.get(site.text("direction", "forward"))
    if directions is None:
        raise GraphError(site.node.place, f"attribute direction is {site.text('direction', '')!r}")
    sequence = site.tensor(0)
    if len(sequence.shape) != 3:
        raise GraphError(site.node.place, f"{sequence} must have 3 dimensions")
    batch_first = site.integer("layout", 0) != 0
    _check_plain(site, sequence.shape[1 if batch_first else 0], len(directions))
    recurrent = site.constant(_R, "recurrent weights")
    if recurrent.ndim != 3:
        raise GraphError(site.node.place, f"the recurrent weights {list(recurrent.shape)} must have 3 dimensions")
    layer = _Layer(batch_first, len(directions), sequence.shape[0 if batch_first else 1], recurrent.shape[2])
    made = [_direction(site, layer, sequence, at, backwards) for at, backwards in enumerate(directions)]
    results, hidden, cells = zip(*made, strict=True)
    return (
        site.made(_joined(site, results, layer.directions + 1)),
        site.made(_joined(site, hidden, layer.directions)),
        site.made(_joined(site, cells, layer.directions)),
    )


def _check_plain(site: OnnxSite, steps: int, directions: int) -> None:
    """Refuse unsupported variants."""
    if site.has(_PEEPHOLE):
        raise site.unsupported("peephole weights are not supported", "train the network without them")
    if site.integer("input_forget", 0):
        raise site.unsupported(
            "coupled input and forget gates (input_forget) are not supported", "train the network without them"
        )
    if "clip" in site.node.attributes:
        raise site.unsupported(
            "the attribute clip, which bounds the gates, is not supported", "train the network without it"
        )
    activations = site.node.attributes.get("activations", _ACTIVATIONS * directions)
    words = [str(word) for word in activations] if isinstance(activations, tuple) else [str(activations)]
    if tuple(word.lower() for word in words) != _ACTIVATIONS * directions:
        raise site.unsupported(f"the activations {', '.join(words)} are not supported", "use Sigmoid, Tanh and Tanh")
    if site.has(_LENGTHS) and (site.constant(_LENGTHS, "lengths of the sequences") != steps).any():
        raise site.unsupported(
            f"sequences of fewer than {steps} steps are not supported",
            f"pad all sequences to {steps} steps, and use the results of the steps that count",
        )


def _direction(
    site: OnnxSite, layer: _Layer, sequence: Tensor, at: int, backwards: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the result of direction ``at``, its last hidden state and its last cells, each with a dimension for it."""
    source = _reversed(site, sequence, layer.time) if backwards else sequence
    inputs = [source, *_parameters(site, layer, at, sequence.shape[2])]
    inputs += [_initial(site, layer, index, word, at) for index, word in ((_HIDDEN, "hidden"), (_CELL, "cell"))]
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
    weights = _shaped(site, _W, "weights", (layer.count, 4, units, features), f"{units} units and {features} features")
    recurrent = _shaped(site, _R, "recurrent weights", (layer.count, 4, units, units), f"{units} units")
    biases = np.zeros((layer.count, 4, units), np.float32)
    if site.has(_B):
        biases = _shaped(site, _B, "biases", (layer.count, 2, 4, units), f"{units} units").sum(axis=1)
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
