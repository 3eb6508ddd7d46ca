"""UNIDIRECTIONAL_SEQUENCE_LSTM: the layout of its weights, and the factors of its integer form."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from mlfbuild.library.cgen import braces, floating
from mlfbuild.native.graph import LOGISTIC_TABLE, Array, DType, Graph, Node, Rescale, Tensor, wide_rescale
from mlfbuild.native.graph.bases import LSTM_INPUTS, LstmTensors, lstm_tensors
from mlfbuild.native.graph.ops import UnidirectionalSequenceLstm
from mlfbuild.native.lowering.call import (
    NOT_EXACT,
    Candidate,
    Constant,
    KernelCall,
    Parameter,
    ScratchBuffer,
    folded_bias,
    record_words,
    rescale_fields,
    struct_lines,
)
from mlfbuild.native.lowering.common.activation import suffix, zero_point
from mlfbuild.native.lowering.common.candidates import choose, obstacle
from mlfbuild.native.lowering.common.matmul_dsp import groups_of, pair_words
from mlfbuild.native.lowering.common.parameters import array, constant, reads, struct, writes
from mlfbuild.native.settings import CodegenSettings

_HEADER = "lstm.h"
_DSP_HEADER = "lstm_dsp.h"
_LARGEST_SHIFT = 8
"""Bits by which a factor may shift sums left, of which the odd ones come times 256."""

_STATES = ((LSTM_INPUTS - 2, 1), (LSTM_INPUTS - 1, 2))
"""(input, output) positions of the hidden state and of the cell state."""


def lower(graph: Graph, node: Node, settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_lstm_<type>``, or of ``mlf_lstm_int8_dsp`` if the CPU and the weights permit it."""
    operator = node.operator
    assert isinstance(operator, UnidirectionalSequenceLstm)
    tensors = lstm_tensors(graph.inputs_of(node), graph.outputs_of(node))
    portable = partial(_call, graph, node, tensors, None)
    if tensors.source.dtype is not DType.INT8:
        return portable()
    helium = "is for CPUs without Helium" if settings.has("mve") else ""

    def dsp() -> KernelCall | str:
        packed = _packed(tensors, operator)
        return NOT_EXACT if packed is None else _call(graph, node, tensors, packed)

    fast = Candidate("lstm_dsp", dsp, obstacle(settings, "dsp") or helium)
    return choose((fast, Candidate("lstm", portable)))


def _call(graph: Graph, node: Node, tensors: LstmTensors, packed: Array | None) -> KernelCall:
    """Return the call of the kernel for DSP with weights that are ``packed``, or of the portable one."""
    operator = node.operator
    assert isinstance(operator, UnidirectionalSequenceLstm)
    number = tensors.source.dtype is DType.FLOAT32
    parameters = (*(_float(tensors) if number else _quantized(tensors, operator, packed)), *_rows(tensors))
    lines = (_float_range_line(operator),) if number else ()
    arguments = ", ".join(("&shape", *(("range",) if number else ()), *(parameter.name for parameter in parameters)))
    call = f"mlf_lstm_{suffix(tensors.source.dtype)}{'' if packed is None else '_dsp'}({arguments});"
    body = (*_shape_lines(operator, tensors), *lines, call)
    header = _HEADER if packed is None else _DSP_HEADER
    return KernelCall("unidirectional_sequence_lstm", header, parameters, body, updates=_updates(graph, node))


def _updates(graph: Graph, node: Node) -> tuple[tuple[int, int], ...]:
    """Return those of ``_STATES`` that are kept between runs, so that they are updated in place."""
    kept = {(state.before, state.after) for state in graph.states}
    return tuple((at, to) for at, to in _STATES if (node.inputs[at], node.outputs[to]) in kept)


def _rows(tensors: LstmTensors) -> tuple[Parameter, ...]:
    """Return the parameters that are not constants: inputs, states and output."""
    return (
        reads("row", tensors.source),
        reads("hidden_before", tensors.before.hidden),
        reads("cell_before", tensors.before.cell),
        writes("result", tensors.output),
        writes("hidden_after", tensors.after.hidden),
        writes("cell_after", tensors.after.cell),
    )


def _shape_lines(operator: UnidirectionalSequenceLstm, tensors: LstmTensors) -> Sequence[str]:
    batches, units, inputs = operator.batch(tensors), tensors.before.hidden.shape[1], tensors.source.shape[2]
    steps = tensors.source.shape[0 if operator.time_major else 1]
    batch, step = (1, batches) if operator.time_major else (steps, 1)  # in rows
    fields = {
        "batches": batches,
        "steps": steps,
        "inputs": inputs,
        "units": units,
        "row_batch": batch * inputs,
        "row_step": step * inputs,
        "result_batch": batch * units,
        "result_step": step * units,
    }
    return struct_lines("mlf_lstm_shape", "shape", fields)


def _float_range_line(operator: UnidirectionalSequenceLstm) -> str:
    # Infinity means no clip, so that the kernel needs no case without one.
    greatest = operator.cell_clip if operator.cell_clip > 0 else np.inf
    return f"const struct mlf_float_range range = {{{floating(-greatest)}, {floating(greatest)}}};"


def _by_unit(matrices: Sequence[Tensor]) -> Array:
    """Join the matrices or vectors [units, ...] of the four gates to one array [units, 4, ...]."""
    return np.ascontiguousarray(np.stack([matrix.known for matrix in matrices], 1))


def _float(tensors: LstmTensors) -> tuple[Parameter, ...]:
    return tuple(
        array(name, "float", _by_unit(members))
        for name, members in (
            ("weights", tensors.weights), ("recurrent", tensors.recurrent), ("biases", tensors.biases)
        )
    )  # fmt: skip


def _packed(tensors: LstmTensors, operator: UnidirectionalSequenceLstm) -> Array | None:
    """Return all weights and biases as ``lstm_dsp.h`` describes; ``None`` if their sums do not permit it."""
    rescales, biases = operator.rescales(tensors), _folded_biases(tensors).astype(np.int64)
    left = np.maximum([factor.shift for factor in (*rescales.weights, *rescales.recurrent)], 0)
    later = max(rescales.forget.shift, rescales.update.shift, rescales.hidden.shift)
    if left.max() > _LARGEST_SHIFT or later > 0:
        return None
    parts = [
        _packed_part(_by_unit(matrices), biases[:, at : at + 4], left[at : at + 4])
        for matrices, at in ((tensors.weights, 0), (tensors.recurrent, 4))
    ]
    present = [part for part in parts if part is not None]
    return np.concatenate(present, 1).reshape(-1) if len(present) == len(parts) else None


def _packed_part(matrix: Array, bias: Array, left: Array) -> Array | None:
    """Return int32 [units, words] of weights int8 [units, gates, inputs] over one row; ``None`` as ``_packed``."""
    units, gates, inputs = matrix.shape
    # The largest sum for any int8 inputs, 128 at most, with the folded bias.
    sums = 128 * np.abs(matrix, dtype=np.int16).sum(2, np.int64) + np.abs(bias)
    groups = groups_of(inputs)
    # A word holds the sums of two gates, so that both must fit into their part of it.
    if (sums << left).max() >= 1 << 30 or sums[:, 1::2].max() >= 1 << 23 or groups >= 1 << 16:
        return None
    padded = np.pad(matrix, ((0, 0), (0, 0), (0, 4 * groups - inputs)))
    even, odd = (padded[:, at::2].reshape(-1, 4 * groups) for at in (0, 1))
    words = pair_words(even, odd, whole=True)
    if words is None:
        return None
    # The sums of words hold 256 times the odd gate plus the even one, and so do their starts.
    starts = np.stack([bias[:, 0::2], 256 * bias[:, 1::2] + bias[:, 0::2]], 2)
    words = words.reshape(units, gates // 2, groups, 2).swapaxes(1, 2)
    return np.concatenate([starts.reshape(units, -1), words.reshape(units, -1)], 1).astype(np.int32)


def _quantized(
    tensors: LstmTensors, operator: UnidirectionalSequenceLstm, packed: Array | None
) -> tuple[Parameter, ...]:
    wide = tensors.source.dtype is DType.INT16
    rescales = operator.rescales(tensors)
    factors: dict[str, int | Rescale] = {
        "forget": rescales.forget,
        "update": rescales.update,
        "hidden": rescales.hidden,
        "table.multiplier": rescales.table.multiplier,
        "table.shift": rescales.table.shift,
        "least_cell": rescales.clip[0],
        "greatest_cell": rescales.clip[1],
        "hidden_zero_point": zero_point(tensors.before.hidden),
    }
    gates = _gate_rescales((*rescales.weights, *rescales.recurrent), wide=wide)
    common = (
        struct("lstm", "mlf_lstm", factors),
        constant(gates),
        array("table", "int16_t", _signed_table()),
    )
    if packed is not None:
        # Rows are padded to whole groups of four, which are loaded together.
        elements = sum(4 * groups_of(tensor.shape[-1]) for tensor in (tensors.source, tensors.before.hidden))
        return (
            *common,
            Parameter("const int32_t *", "weights", Constant.packed(packed, _DSP_HEADER, name="weights_packed")),
            Parameter("int16_t *", "scratch", ScratchBuffer(2 * elements)),
        )
    biases = _by_unit(tensors.biases) if wide else _folded_biases(tensors)
    bias_type = "int64_t" if wide else "int32_t"
    return (
        *common,
        *(
            array(name, "int8_t", _by_unit(matrices))
            for name, matrices in (("weights", tensors.weights), ("recurrent", tensors.recurrent))
        ),
        array("biases", bias_type, biases),
    )


def _signed_table() -> Array:
    """Return the table of the logistic function minus 1/2 for arguments of both signs, as ``lstm.h`` describes."""
    half = LOGISTIC_TABLE.astype(np.int32) - (1 << 15)
    # The interpolation reads one entry further than the last step.
    positive = np.append(half, half[-1])
    # Negative arguments are the mirrored half, without the entry of 0, which would occur twice.
    return np.concatenate([-positive[:0:-1], positive]).astype(np.int16)


def _gate_rescales(rescales: Sequence[Rescale], *, wide: bool) -> Constant:
    """Return the factors of the gates for sums of 32 bits, or of 64."""
    fields: list[tuple[int, ...]] = [rescale_fields(rescale) for rescale in rescales]
    if wide:
        # The wide multiplier has 15 bits, and its shift includes them.
        fields = [(factor.multiplier, factor.right_shift) for factor in map(wide_rescale, rescales)]
    c_type, layout = ("mlf_wide_rescale", "i2,i2") if wide else ("mlf_rescale", "i4,i2,i2")
    words = record_words(layout, fields)
    return Constant.records("rescales", c_type, [braces(members) for members in fields], 4, lambda: words)


def _folded_biases(tensors: LstmTensors) -> Array:
    """Return int32 [units, 8]: the start values of the gates' sums over inputs, then over hidden states."""
    rows = [
        folded_bias(bias.known, weights.known, 0, zero_point(tensors.source))
        for bias, weights in zip(tensors.biases, tensors.weights, strict=True)
    ]
    hidden = [folded_bias(None, weights.known, 0, zero_point(tensors.before.hidden)) for weights in tensors.recurrent]
    return np.ascontiguousarray(np.stack([*rows, *hidden], 1))
