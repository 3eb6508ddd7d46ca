"""One step of UNIDIRECTIONAL_SEQUENCE_LSTM in numpy, with the roundings of TensorFlow Lite Micro.

Integer gates are Q3.12 before their activation and Q0.15 after it, regardless of the intermediate tensors in the file.
The two products of a gate are rescaled to Q3.12, rounded and clamped separately, then added and clamped again. int16
rows are multiplied in 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from mlfbuild.native.graph.lookup_table import TableScale
from mlfbuild.native.graph.ops.activation.logistic import Logistic, Tanh
from mlfbuild.native.graph.quantize import Rescale, integer_range, quantize_multiplier, scale_product
from mlfbuild.native.graph.tensors import Array, DType, Inputs, Tensor
from mlfbuild.native.graph.wide_sums import rescale_wide, wide_rescale

Whole = npt.NDArray[np.int64]

GATE_TABLE = TableScale(3, 0)
"""The scale of Q3.12 as an argument of the table of the logistic function."""

_FRACTION = 2.0**-15
"""The scale of a gate after its activation."""
# Also in files whose intermediate tensors name other scales: TensorFlow Lite Micro also ignores them.
_ARGUMENT = 2.0**-12
"""The scale of a gate before its activation."""
_INT16 = integer_range(DType.INT16)

LSTM_INPUTS = 15
"""The number of inputs of the operator, all of which are required."""


class LstmState(NamedTuple):
    """The rows that a step passes to the next one: [batch, units]."""

    hidden: Tensor
    cell: Tensor


class LstmTensors(NamedTuple):
    """The tensors of the operator; tuples have one for the input, the forget, the cell and the output gate.

    ``weights`` of the features are [units, features], the ``recurrent`` ones of the hidden row [units, units]. The
    state is that ``before`` the first step and ``after`` the last one.
    """

    source: Tensor
    weights: tuple[Tensor, ...]
    recurrent: tuple[Tensor, ...]
    biases: tuple[Tensor, ...]
    before: LstmState
    output: Tensor
    after: LstmState


def lstm_tensors(inputs: Inputs, outputs: Sequence[Tensor]) -> LstmTensors:
    """Return the tensors of a checked node: (x, 4 weights, 4 recurrent, 4 biases, h, c) and (y, h', c').

    The order is that of TFLite's LSTM with peepholes, projections and layer normalisation left out.
    """
    present = inputs.present
    assert len(present) == LSTM_INPUTS
    weights, recurrent, biases = (tuple(present[at : at + 4]) for at in (1, 5, 9))
    before, after = LstmState(*present[13:]), LstmState(*outputs[1:])
    return LstmTensors(present[0], weights, recurrent, biases, before, outputs[0], after)


class LstmParameters(NamedTuple):
    """Weights and biases; each tuple has one for the input, the forget, the cell and the output gate."""

    weights: tuple[Array, ...]
    recurrent: tuple[Array, ...]
    biases: tuple[Array, ...]


@dataclass(frozen=True)
class LstmRescales:
    """All factors of the integer form; tuples have one for each gate.

    ``forget`` is for the product of the forget gate and the cell, ``update`` for that of the input and the cell gate,
    ``hidden`` for that of the output gate and tanh of the cell. ``table`` is the scale of the cell as an argument of
    the table, and ``clip`` its least and its greatest value.
    """

    weights: tuple[Rescale, ...]
    recurrent: tuple[Rescale, ...]
    forget: Rescale
    update: Rescale
    hidden: Rescale
    table: TableScale
    clip: tuple[int, int]


def lstm_rescales(tensors: LstmTensors, cell_clip: float, *, rounded: bool) -> LstmRescales:
    """Return the factors of a quantised node; raises ``OverflowError`` if one has no fixed-point form.

    ``rounded`` is that of ``scale_product``.
    """
    cell, hidden = tensors.before.cell.affine.scale, tensors.before.hidden.affine.scale
    return LstmRescales(
        _gate_rescales(tensors.source, tensors.weights, rounded=rounded),
        _gate_rescales(tensors.before.hidden, tensors.recurrent, rounded=rounded),
        # The factor of a product of two scales, as for the other products; both are those of the cell here.
        quantize_multiplier(_FRACTION * cell / cell),
        quantize_multiplier(_FRACTION * _FRACTION / cell),
        quantize_multiplier(_FRACTION * _FRACTION / hidden),
        _cell_table(tensors.before.cell),
        _clip(cell_clip, cell),
    )


def _gate_rescales(source: Tensor, matrices: Iterable[Tensor], *, rounded: bool) -> tuple[Rescale, ...]:
    """Return the rescaling of the sums over each matrix."""
    # ``rounded`` says whether the product of two scales is rounded to float32 first, as older versions did.
    products = [scale_product(source, matrix, rounded=rounded) for matrix in matrices]
    rescales = tuple(quantize_multiplier(product / _ARGUMENT) for product in products)
    # int16 sums are multiplied in 64 bits, where the multiplier must fit into 16: checked here, at compile time.
    if source.dtype is DType.INT16:
        for rescale in rescales:
            wide_rescale(rescale)
    return rescales


def _cell_table(cell: Tensor) -> TableScale:
    exponent = math.log2(cell.affine.scale)
    # The table is scaled by shifts only, as in TensorFlow Lite Micro.
    # CheckedLog2 of TFLite has the same tolerance: converters store powers of two that are slightly off.
    if abs(exponent - round(exponent)) >= 1e-3:
        raise OverflowError(f"the scale {cell.affine.scale:g} of the cell state {cell.name!r} must be a power of two")
    # 2**-12 is the scale of an argument in Q3.12, at which the table needs no shift.
    doublings = round(exponent) + 12
    if not -30 <= doublings <= 14:
        raise OverflowError(f"the scale {cell.affine.scale:g} of the cell state {cell.name!r} is beyond 2**-42 to 4")
    return TableScale(3 << doublings, 0) if doublings >= 0 else TableScale(3, -doublings)


def _clip(cell_clip: float, scale: float) -> tuple[int, int]:
    # A clip of 0 means none, and NaN compares as if it were 0.
    if not cell_clip > 0:
        return _INT16
    # Truncated, as TensorFlow Lite Micro casts the quotient to an integer.
    greatest = int(min(cell_clip / scale, _INT16[1]))
    return -greatest, greatest


def whole_step(
    tensors: LstmTensors, parameters: LstmParameters, rescales: LstmRescales, row: Array, hidden: Array, cell: Array
) -> tuple[Array, Array]:
    """Return the next hidden [batch, units] and cell rows of a quantised node, from one row of features.

    ``row`` is [batch, features], ``hidden`` [batch, units] in the type of the input, ``cell`` [batch, units] int16. The
    results have the types of ``hidden`` and ``cell``. The roundings are those of TensorFlow Lite Micro's LSTM.
    """
    wide = tensors.source.dtype is DType.INT16
    # Zero points are subtracted before the products here; a kernel that folds them into the bias has the same integer
    # sums.
    features = row.astype(np.int64) - tensors.source.affine.zero_point
    units = hidden.astype(np.int64) - tensors.before.hidden.affine.zero_point

    def gate(at: int) -> Whole:
        sums = features @ parameters.weights[at].T.astype(np.int64) + parameters.biases[at]
        more = units @ parameters.recurrent[at].T.astype(np.int64)
        # Clamped to int16 each, and again after the addition: a gate that saturates twice differs from one that does
        # once.
        first = _rescaled(sums, rescales.weights[at], wide=wide)
        return _clamp(first + _rescaled(more, rescales.recurrent[at], wide=wide))

    logistic, tanh = Logistic(), Tanh()
    inputs, forgets, outputs = (logistic.interpolated(GATE_TABLE, gate(at)) for at in (0, 1, 3))
    kept = _clamp(rescales.forget.apply(forgets * cell.astype(np.int64)))
    added = _clamp(rescales.update.apply(inputs * tanh.interpolated(GATE_TABLE, gate(2))))
    # ``kept`` and ``added`` were clamped to int16 each, so that their sum is bounded but may exceed int16.
    following = np.clip(kept + added, *rescales.clip)
    squashed = rescales.hidden.apply(tanh.interpolated(rescales.table, following) * outputs)
    stored = squashed + tensors.before.hidden.affine.zero_point
    bounded = np.clip(stored, *integer_range(tensors.before.hidden.dtype))
    return bounded.astype(hidden.dtype), following.astype(np.int16)


def _rescaled(sums: Whole, rescale: Rescale, *, wide: bool) -> Whole:
    """Return ``sums`` as Q3.12, clamped to int16."""
    return _clamp(rescale_wide(sums, (rescale,)).astype(np.int64) if wide else rescale.apply(sums))


def _clamp(value: Whole) -> Whole:
    return np.clip(value, *_INT16)


def real_step(
    parameters: LstmParameters, cell_clip: float, row: Array, hidden: Array, cell: Array
) -> tuple[Array, Array]:
    """Return the next hidden [batch, units] and cell rows in float32, from one row of features.

    ``row`` is [batch, features], the other two are [batch, units], all float32. Sums are made in double and rounded
    once.
    """
    features, units = row.astype(np.float64), hidden.astype(np.float64)

    def gate(at: int) -> npt.NDArray[np.float64]:
        return np.asarray(
            features @ parameters.weights[at].T + units @ parameters.recurrent[at].T + parameters.biases[at]
        )

    # exp overflows for gates far below 0; 1 / (1 + inf) is 0, the right value.
    with np.errstate(over="ignore"):
        inputs, forgets, outputs = (1 / (1 + np.exp(-gate(at))) for at in (0, 1, 3))
    following = forgets * cell + inputs * np.tanh(gate(2))
    if cell_clip > 0:
        following = np.clip(following, -cell_clip, cell_clip)
    return (outputs * np.tanh(following)).astype(np.float32), following.astype(np.float32)
