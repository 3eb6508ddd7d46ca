"""Node and Graph: frozen values that are checked on construction.

A ``Graph`` is a list of nodes in the order of execution. Nodes name the tensors they read and write; every tensor is
written at most once (single assignment). The constructor checks this, and the shape and type rules of each operator, so
other code can rely on them.

``evaluate`` runs a graph in numpy with the reference implementations of the operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

import numpy as np

from mlfbuild.native.graph.operator import Operator
from mlfbuild.native.graph.tensors import Array, GraphError, Inputs, Operands, OperatorError, Tensor


@dataclass(frozen=True)
class Node:
    """One operator applied to tensors, named by tensor names; an absent optional input is ``None``."""

    name: str
    operator: Operator
    inputs: tuple[str | None, ...]
    outputs: tuple[str, ...]

    @property
    def place(self) -> str:
        """The node in messages, such as ``CONV_2D 'conv1'``."""
        return f"{self.operator.name} {self.name!r}"


@dataclass(frozen=True, eq=False)
class State:
    """A value that a streaming network keeps from one run to the next; single assignment requires two tensors."""

    before: str
    """The tensor with the value of the previous run; on the first run, ``initial``."""
    after: str
    """The tensor whose value is kept for the next run."""
    initial: Array
    """The initial value, with the shape and dtype of both tensors."""


class Graph:
    """A network, checked on construction.

    ``tensors`` maps names to tensors, ``nodes`` are in order of execution, ``inputs`` and ``outputs`` are tensor
    names in call order, ``states`` are kept between runs. Raises ``GraphError`` if a name is not a tensor, a tensor is
    written twice or read before it is written (as in every cycle), or the rules of an operator are broken.
    """

    def __init__(
        self,
        name: str,
        tensors: Sequence[Tensor],
        nodes: Sequence[Node],
        inputs: Sequence[str],
        outputs: Sequence[str],
        states: Sequence[State] = (),
        notes: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.nodes = tuple(nodes)
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.states = tuple(states)
        self.notes = tuple(notes)
        """Facts that users should know, such as operators that run in float32 in a quantised network."""
        self.litert = False
        """Whether the numbers are those of LiteRT, because TensorFlow Lite Micro does not run this network."""
        named: dict[str, Tensor] = {}
        # First, because everything below looks up tensors by their names.
        for tensor in tensors:
            if tensor.name in named:
                raise GraphError(f"tensor {tensor.name!r}", "is declared twice")
            named[tensor.name] = tensor
        self.tensors: Mapping[str, Tensor] = MappingProxyType(named)
        self._check()

    def with_notes(self, notes: Sequence[str], *, litert: bool = False) -> Graph:
        """Return this graph, with ``notes``; ``litert`` marks one with the numbers of LiteRT.

        Notes are sentences for the user, which ``compile`` and ``build`` print. Tensors and nodes are shared with this
        graph.
        """
        # A copy without the constructor: the checks would be repeated for every note.
        other = copy(self)
        other.notes = tuple(notes)
        other.litert = self.litert or litert
        return other

    @property
    def sources(self) -> tuple[str, ...]:
        """The tensors that have a value before any node runs: inputs and states."""
        return self.inputs + tuple(state.before for state in self.states)

    @property
    def results(self) -> tuple[str, ...]:
        """The tensors whose values are needed after all nodes ran: outputs and states.

        A pass must not remove or rename them. An output that is also a state occurs twice.
        """
        return self.outputs + tuple(state.after for state in self.states)

    def tensor(self, name: str) -> Tensor:
        """Return the tensor called ``name``; raises ``KeyError``."""
        return self.tensors[name]

    def inputs_of(self, node: Node) -> Inputs:
        """Return the tensors that ``node`` reads."""
        return Operands((None if name is None else self.tensors[name] for name in node.inputs), node.place)

    def outputs_of(self, node: Node) -> tuple[Tensor, ...]:
        """Return the tensors that ``node`` writes."""
        return tuple(self.tensors[name] for name in node.outputs)

    def readers(self, name: str) -> tuple[Node, ...]:
        """Return the nodes that read the tensor ``name``, in order.

        A node that reads the tensor twice is listed once. Outputs and states of the graph also read a tensor, but are
        no nodes.
        """
        return tuple(self._readers.get(name, ()))

    @cached_property
    def _readers(self) -> Mapping[str, Sequence[Node]]:
        found: dict[str, list[Node]] = {}
        for node in self.nodes:
            # Once, if a node reads a tensor twice, as x * x does.
            for name in dict.fromkeys(node.inputs):
                if name is not None:
                    found.setdefault(name, []).append(node)
        return found

    @cached_property
    def constants(self) -> tuple[Tensor, ...]:
        """The constant tensors that a node reads, or that are outputs or states, in order of first use."""
        return tuple(tensor for tensor in self._used() if tensor.constant and tensor.elements)

    def _used(self) -> Iterator[Tensor]:
        seen = set()
        # Order of first use, not of the file: generated C lists constants so, and must not change with a reader.
        for name in (*(name for node in self.nodes for name in node.inputs if name is not None), *self.results):
            if name not in seen:
                seen.add(name)
                yield self.tensors[name]

    def _check(self) -> None:
        where = f"graph {self.name!r}"
        for kind, names in (("input", self.inputs), ("output", self.outputs), ("state", self.sources + self.results)):
            for name in names:
                if name not in self.tensors:
                    raise GraphError(where, f"{kind} {name!r} is not a tensor")
        # Inputs and states have a value before any node runs.
        written = set(self.sources)
        if len(written) != len(self.sources):
            raise GraphError(where, "names an input or a state twice")
        # A constant that is an input would be in flash and could not be written.
        for name in self.sources:
            if self.tensors[name].constant:
                raise GraphError(f"tensor {name!r}", "is an input or a state and constant")
        for node in self.nodes:
            self._check_node(node, written)
        for name in self.results:
            # A constant output is allowed: folding can leave a network whose output is known.
            if name not in written and not self.tensors[name].constant:
                raise GraphError(where, f"nothing writes the output {name!r}")
        for state in self.states:
            self._check_state(state)

    def _check_state(self, state: State) -> None:
        before, after = self.tensors[state.before], self.tensors[state.after]
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            raise GraphError(f"state {before}", f"is left as {after}")
        # An old value must be readable in the first run, so that its initial value must fit exactly.
        if (state.initial.shape, state.initial.dtype) != (before.shape, before.dtype.numpy):
            raise GraphError(f"state {before}", f"begins as {state.initial.dtype}{list(state.initial.shape)}")

    def _check_node(self, node: Node, written: set[str]) -> None:
        where = node.place
        for name in (*node.inputs, *node.outputs):
            if name is not None and name not in self.tensors:
                raise GraphError(where, f"{name!r} is not a tensor")
        # Kernels have loops of at least one turn, and C has no arrays of 0 elements. Front ends remove such tensors.
        for name in (*node.inputs, *node.outputs):
            if name is not None and not self.tensors[name].elements:
                raise GraphError(where, f"{name!r} has no elements")
        for name in node.inputs:
            if name is not None and name not in written and not self.tensors[name].constant:
                raise GraphError(where, f"reads {name!r} before anything wrote it (a cycle, or nodes out of order)")
        for name in node.outputs:
            if name in written or self.tensors[name].constant:
                raise GraphError(where, f"writes {name!r}, which already has a value")
            written.add(name)
        # Last, because operators may assume that all their tensors exist and are in order.
        reason = node.operator.check(self.inputs_of(node), self.outputs_of(node))
        if reason is not None:
            raise OperatorError(where, reason)


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


def evaluate_runs(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Return each output for consecutive runs, with a first dimension for runs as ``inputs`` have it.

    The numbers are those of ``evaluate_in_turn``, but each node runs for all runs before the next one does, so that
    slow operators compute all runs together (``Operator.many_rows``). Every state must be written by the node that
    reads it, as in the front ends of audio.
    """
    runs = len(next(iter(inputs.values())))
    values: dict[str, Sequence[Array]] = {name: list(inputs[name]) for name in graph.inputs}
    values |= {tensor.name: [tensor.data] * runs for tensor in graph.tensors.values() if tensor.data is not None}
    for node in graph.nodes:
        states = [state for state in graph.states if state.before in node.inputs]
        assert all(state.after in node.outputs for state in states)
        tensors, results = graph.inputs_of(node), graph.outputs_of(node)
        if node.operator.many_rows:
            rows = [None if name is None else np.stack(values[name]) for name in node.inputs]
            wide = [replace(tensor, shape=(runs, *tensor.shape)) for tensor in results]
            arrays = node.operator.reference(tensors, Operands(rows, node.place), wide)
            values.update(zip(node.outputs, map(list, arrays), strict=True))
            continue
        found: list[tuple[Array, ...]] = []
        kept = {state.before: state.initial for state in states}
        for run in range(runs):
            operands = [None if name is None else kept[name] if name in kept else values[name][run]
                        for name in node.inputs]  # fmt: skip
            found.append(node.operator.reference(tensors, Operands(operands, node.place), results))
            after = dict(zip(node.outputs, found[-1], strict=True))
            kept = {state.before: after[state.after] for state in states}
        values.update(zip(node.outputs, zip(*found, strict=True), strict=True))
    return {name: np.stack(values[name]) for name in graph.outputs}


def _checked(tensor: Tensor, value: Array | None) -> Array:
    if value is None:
        raise ValueError(f"input {tensor.name!r} has no value")
    if value.shape != tensor.shape or value.dtype != tensor.dtype.numpy:
        raise ValueError(f"input {tensor.name!r} is {value.dtype}{list(value.shape)}, should be {tensor}")
    return value
