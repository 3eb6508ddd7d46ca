"""GRU and RNN: the layout of their weights."""

from __future__ import annotations

import numpy as np

from mlfbuild.native.graph import Array, Graph, Node
from mlfbuild.native.graph.ops import Gru, Rnn
from mlfbuild.native.lowering.call import KernelCall, struct_lines
from mlfbuild.native.lowering.common.parameters import array, reads, scratch, writes
from mlfbuild.native.settings import CodegenSettings

_HIDDEN, _HIDDEN_AFTER = 4, 1
"""Positions of the state among inputs and outputs."""


def lower(graph: Graph, node: Node, _settings: CodegenSettings) -> KernelCall:
    """Return the call of ``mlf_gru_float``, ``mlf_gru_reset_last_float``, ``mlf_rnn_tanh`` or ``mlf_rnn_relu``."""
    # The state is updated in place only if it is kept from run to run: otherwise input and output are two tensors.
    operator = node.operator
    assert isinstance(operator, Gru | Rnn)
    source, *_, hidden = graph.inputs_of(node).present
    result, after = graph.outputs_of(node)
    steps, batches, features = source.shape
    fields = {"batches": batches, "steps": steps, "inputs": features, "units": hidden.shape[1]}
    parameters = [
        *(array(name, "float", values) for name, values in _constants(graph, node, operator).items()),
        reads("row", source),
        reads("hidden_before", hidden),
        writes("result", result),
        writes("hidden_after", after),
    ]
    if isinstance(operator, Rnn):
        name, kernel = "rnn", "mlf_rnn_relu" if operator.relu else "mlf_rnn_tanh"
    else:
        name, kernel = "gru", "mlf_gru_reset_last_float" if operator.reset_last else "mlf_gru_float"
        # The product of the reset gate and the state needs a row of its own, unless the reset comes last.
        if not operator.reset_last:
            parameters.append(scratch("float", 4 * hidden.shape[1]))
    lines = struct_lines("mlf_gru_shape", "shape", fields)
    call = f"{kernel}({', '.join(('&shape', *(parameter.name for parameter in parameters)))});"
    return KernelCall(name, "gru.h", tuple(parameters), (*lines, call), updates=_updates(graph, node))


def _updates(graph: Graph, node: Node) -> tuple[tuple[int, int], ...]:
    kept = {(state.before, state.after) for state in graph.states}
    return ((_HIDDEN, _HIDDEN_AFTER),) if (node.inputs[_HIDDEN], node.outputs[_HIDDEN_AFTER]) in kept else ()


def _constants(graph: Graph, node: Node, operator: Gru | Rnn) -> dict[str, Array]:
    """Return weights [units, gates, inputs] and biases [units, ...], as ``gru.h`` describes."""
    weights, recurrent, bias = (tensor.known for tensor in graph.inputs_of(node)[1:_HIDDEN])
    gates = operator.gates
    by_unit = {
        "weights": weights.reshape(gates, -1, weights.shape[1]).swapaxes(0, 1),
        "recurrent": recurrent.reshape(gates, -1, recurrent.shape[1]).swapaxes(0, 1),
    }
    # ONNX has both biases in one tensor: of the products with x, then of those with h.
    own, state = bias.reshape(2, gates, -1)
    both = own + state
    # Both biases of update and reset are only ever added; those of the candidate are separate, as the reset may
    # multiply one.
    columns = [both[0]] if isinstance(operator, Rnn) else [both[0], both[1], own[2], state[2]]
    by_unit["biases"] = np.stack(columns, 1)
    return {name: np.ascontiguousarray(values) for name, values in by_unit.items()}
