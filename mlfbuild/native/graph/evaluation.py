"""Run a graph in numpy with the reference implementations of the operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mlfbuild.native.graph.nodes import Graph
from mlfbuild.native.graph.tensors import Array, Operands, Tensor


def evaluate(graph: Graph, inputs: Mapping[str, Array], kept: Mapping[str, Array] | None = None) -> dict[str, Array]:
    """Return the value of every tensor of ``graph``, by name, for ``inputs`` by tensor name.

    ``kept`` has the values of the states before the run, by the name of ``State.before``; by default, they are the
    initial ones. Raises ``ValueError`` if an input is absent or has another shape or dtype than its tensor.
    """
    values = {tensor.name: tensor.data for tensor in graph.tensors.values() if tensor.data is not None}
    for name in graph.inputs:
        values[name] = _checked(graph.tensor(name), inputs.get(name))
    # ``None`` means the first run, on which each state has its initial value.
    for state in graph.states:
        values[state.before] = (
            state.initial if kept is None else _checked(graph.tensor(state.before), kept[state.before])
        )
    for node in graph.nodes:
        operands = Operands((None if name is None else values[name] for name in node.inputs), node.place)
        results = node.operator.reference(graph.inputs_of(node), operands, graph.outputs_of(node))
        values.update(zip(node.outputs, results, strict=True))
    return values


def evaluate_in_turn(graph: Graph, runs: Iterable[Mapping[str, Array]]) -> Iterator[dict[str, Array]]:
    """Yield the result of ``evaluate`` for consecutive ``runs``, beginning with the initial states.

    Each run has a value for every input of the graph, by tensor name. Raises ``ValueError`` as ``evaluate``.
    """
    kept = {state.before: state.initial for state in graph.states}
    # One run after the other, as on the device: only states go from one run to the next.
    for inputs in runs:
        values = evaluate(graph, inputs, kept)
        yield values
        kept = {state.before: values[state.after] for state in graph.states}


def _checked(tensor: Tensor, value: Array | None) -> Array:
    if value is None:
        raise ValueError(f"input {tensor.name!r} has no value")
    if value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
        raise ValueError(f"input {tensor.name!r} is {value.dtype}{list(value.shape)}, should be {tensor}")
    return value
