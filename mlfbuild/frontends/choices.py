"""What the user chooses about a model when it is read: sizes of free dimensions, and tensors that become its state.

A project file has them as ``dims`` and ``state``, the command line as ``-O dim.time=16`` and ``-O state.h_in=h_out``.
They are options of the compiler whose names begin with ``dim.`` and ``state.``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mlfbuild.core import UsageError, listed
from mlfbuild.graph import Graph, State, Tensor
from mlfbuild.project import suggestion

DIM, STATE = "dim.", "state."
"""The beginnings of the names of options."""


@dataclass(frozen=True)
class Choices:
    """Sizes by the name of the dimension, and outputs by the input that gets their value in the next run."""

    dims: Mapping[str, int] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)


def choices_of(options: Mapping[str, object]) -> Choices:
    """Return the choices among the options of a compiler, which are valid."""
    dims = {key.removeprefix(DIM): int(str(value)) for key, value in options.items() if key.startswith(DIM)}
    state = {key.removeprefix(STATE): str(value) for key, value in options.items() if key.startswith(STATE)}
    return Choices(dims, state)


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
