"""Recurrent layers as one operator for each direction, which loops over the steps: LSTM, GRU and RNN.

Layers with computed weights or lengths, other functions, or bounded gates are unrolled instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.native.frontends.onnx.builder import checked
from mlfbuild.native.frontends.onnx.conversion.activations import activation_names
from mlfbuild.native.frontends.onnx.conversion.recurrent import (
    BIASES,
    LENGTHS,
    RECURRENT,
    WEIGHTS,
    Layer,
    directions,
    named_after_first,
)
from mlfbuild.native.frontends.onnx.conversion.selection import sliced
from mlfbuild.native.frontends.onnx.layout import Value
from mlfbuild.native.frontends.onnx.op_context import OpContext
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
        """The index of the time dimension."""
        return 1 if self.batch_first else 0

    @property
    def directions(self) -> int:
        """The index of the directions' dimension in states; in the result it is one higher."""
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
    result = op.made(_joined(op, results, sizes.directions + 1))
    return result, *(op.made(_joined(op, state, sizes.directions)) for state in states)


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
        _with_directions(op, made, sizes.directions + 1),
        *(_with_directions(op, state, sizes.directions) for state in states),
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
    positions[sizes.directions] = range(at, at + 1)
    return op.builder.reshaped(sliced(op, op.made(given), positions).tensor, (sizes.batch, sizes.units))
