"""Make inputs and outputs of a network its own state."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from mlfbuild.core import UsageError, listed, suggestion
from mlfbuild.native.graph import Graph, State, Tensor


def with_state(graph: Graph, state: Mapping[str, str]) -> Graph:
    """Return ``graph`` with the inputs in ``state`` as its own state, which the outputs replace after each run.

    The state begins with zeros, as numbers of the network. Raises ``UsageError`` if the tensors do not exist or differ.
    """
    if not state:
        return graph
    for kind, names, known in (("input", state.keys(), graph.inputs), ("output", state.values(), graph.outputs)):
        for name in names:
            if name not in known:
                near = suggestion(name, known) or f"; its {kind}s are {listed([*known])}"
                reason = f"the model has no {kind} {name!r}{near}"
                raise UsageError("state-unknown", place=_place(graph, state, name), reason=reason)
    outputs = list(state.values())
    for before, after in state.items():
        if outputs.count(after) > 1:
            reason = f"the output {after!r} is named twice"
            raise UsageError(
                "state-twice", place=_place(graph, state, before), reason=reason, hint="remove one of them"
            )
    return Graph(
        graph.name,
        list(graph.tensors.values()),
        graph.nodes,
        [name for name in graph.inputs if name not in state],
        [name for name in graph.outputs if name not in outputs],
        [*graph.states, *(_state(graph, before, after) for before, after in state.items())],
        graph.notes,
    )


def _place(graph: Graph, state: Mapping[str, str], name: str) -> str:
    before = next((key for key, after in state.items() if name in (key, after)), name)
    return f"{graph.name}: state.{before}"


def _state(graph: Graph, before: str, after: str) -> State:
    old, new = graph.tensor(before), graph.tensor(after)
    if _form(old) != _form(new):
        raise UsageError(
            "state-mismatch",
            place=f"{graph.name}: state.{before}",
            reason=f"the input {_described(old)} and the output {_described(new)} differ",
            hint="name two tensors of the same type, shape and quantisation",
        )
    # The stored value of the number 0.
    zero = 0 if old.quantization is None or old.quantization.per_channel else old.quantization.zero_point
    return State(before, after, np.full(old.shape, zero, old.dtype.numpy))


def _form(tensor: Tensor) -> tuple[object, ...]:
    return tensor.shape, tensor.dtype, tensor.quantization


def _described(tensor: Tensor) -> str:
    quantization = tensor.quantization
    scale = (
        ""
        if quantization is None
        else f", scales {list(quantization.scales)}, zero points {list(quantization.zero_points)}"
    )
    return f"{tensor}{scale}"
