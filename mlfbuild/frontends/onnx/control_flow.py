"""Replace If, Loop and Scan by the nodes that they run, if this is known when the model is read.

The branch of an If whose condition is constant takes its place. A Loop whose trip count or condition is constant, and a
Scan, whose trip count is the size of its inputs, are unrolled. The names of inner tensors get the name of the node and
the number of the iteration as a prefix, because every tensor of a graph is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from mlfbuild.core import UnsupportedModelError
from mlfbuild.frontends.onnx.constants import Constants
from mlfbuild.frontends.onnx.reader import Attribute, RawGraph, RawNode
from mlfbuild.graph import GraphError

CONTROL_FLOW = frozenset({"If", "Loop", "Scan"})
"""The operators whose attributes are graphs."""
MOST_NODES = 4096
"""Nodes that all loops of a model may become."""


@dataclass
class Surroundings:
    """The part of the model around an operator of control flow that its nodes depend on."""

    opset: int
    constants: Constants
    taken: Collection[str]
    """The names of the model's own tensors."""
    shape: Callable[[str], tuple[int, ...] | None]
    """Returns the shape of a tensor that has been computed."""
    left: int = MOST_NODES
    """How many nodes loops may still become."""


def decided(node: RawNode, constants: Constants) -> bool:
    """Return whether ``node`` is an If with a constant condition."""
    return node.operator == "If" and bool(node.inputs) and node.inputs[0] in constants


def flow(node: RawNode, around: Surroundings) -> Iterator[RawNode]:
    """Yield the nodes that ``node``, an operator of ``CONTROL_FLOW``, runs.

    Each node must be computed or converted before the next one is requested, because the condition of a loop may
    become constant only then. Raises ``UnsupportedModelError`` if the nodes depend on data.
    """
    return {"If": _branch, "Loop": _loop, "Scan": _scan}[node.operator](_Body(node, around))


@dataclass
class _Body:
    """The node, and the graphs in it."""

    node: RawNode
    around: Surroundings

    def graph(self, name: str, inputs: int, outputs: int) -> RawGraph:
        """Return the graph of the attribute ``name``; raises ``GraphError`` if its ports are not as many as these."""
        found = self.node.attributes.get(name)
        if not isinstance(found, RawGraph):
            raise GraphError(self.node.place, f"attribute {name} is not a graph")
        for word, ports, wanted in (("inputs", found.inputs, inputs), ("outputs", found.outputs, outputs)):
            if len(ports) != wanted:
                raise GraphError(self.node.place, f"the graph {name} has {len(ports)} {word} instead of {wanted}")
        return found

    def constant(self, index: int, what: str, hint: str) -> np.ndarray | None:
        """Return the only element of input ``index``, ``None`` if it is absent."""
        name = self.node.inputs[index] if index < len(self.node.inputs) else ""
        if not name:
            return None
        value = self.around.constants.get(name)
        if value is None:
            raise self.dynamic(f"the {what} {name!r} is computed in every run", hint)
        if value.size != 1:
            raise GraphError(self.node.place, f"the {what} has {value.size} elements")
        return value.reshape(())

    def dynamic(self, reason: str, hint: str) -> UnsupportedModelError:
        return UnsupportedModelError("control-flow-dynamic", place=self.node.place, reason=reason, hint=hint)

    def name(self, *words: object) -> str:
        """Return a name that no tensor of the model has."""
        name = "/".join(map(str, (next(filter(None, self.node.outputs), self.node.name), *words)))
        while name in self.around.taken:
            name += "_"
        return name

    def make(
        self, operator: str, inputs: Sequence[str], output: str, attributes: Mapping[str, int] | None = None
    ) -> RawNode:
        """Return a node of ONNX's own domain."""
        node = onnx.helper.make_node(operator, inputs, [output])
        node.attribute.extend(onnx.helper.make_attribute(key, value) for key, value in (attributes or {}).items())
        found: dict[str, Attribute] = dict(attributes or {})
        return RawNode(
            self.node.index, self.node.name, operator, "", tuple(inputs), (output,), found, node.SerializeToString()
        )

    def number(self, word: str, value: object) -> str:
        """Add a constant; return its name."""
        name = self.name(word)
        self.around.constants.add(name, np.asarray(value))
        return name

    def run(self, graph: RawGraph, prefix: object, inputs: Sequence[str], results: list[str]) -> Iterator[RawNode]:
        """Yield the nodes of ``graph`` on the tensors ``inputs``; append the names of its outputs to ``results``."""
        names = dict(zip(graph.inputs, inputs, strict=True))
        inner = [*graph.constants, *(name for node in graph.nodes for name in node.outputs if name)]
        names |= {name: self.name(prefix, name) for name in inner}
        for name, value in graph.constants.items():
            self.around.constants.add(names[name], value)
        for node in graph.nodes:
            yield renamed(node, names)
        results.extend(names.get(name, name) for name in graph.outputs)

    def take(self, graph: RawGraph) -> None:
        """Count an iteration of ``graph``; raises ``UnsupportedModelError`` if there are too many nodes."""
        self.around.left -= len(graph.nodes)
        if self.around.left < 0:
            raise UnsupportedModelError(
                "loop-too-long",
                place=self.node.place,
                reason=f"the loops of the model become more than {MOST_NODES} nodes",
                hint="export the network with fewer steps, and call it in a loop of the firmware",
            )

    def aliases(self, results: Sequence[str], outputs: Sequence[str]) -> Iterator[RawNode]:
        """Yield the nodes that give ``results`` the names of the node's outputs."""
        yield from (
            self.make("Identity", [result], name) for result, name in zip(results, outputs, strict=False) if name
        )

    def stacked(self, pieces: Sequence[str], axis: int, output: str) -> Iterator[RawNode]:
        """Yield the nodes that join ``pieces`` along a new ``axis``."""
        if not output:
            return
        if not pieces:
            raise GraphError(self.node.place, f"{output!r} has no elements, because the loop has no iteration")
        rows = []
        for index, piece in enumerate(pieces):
            rows.append(self.name("stacked", output, index))
            if self.around.opset >= 13:
                yield self.make("Unsqueeze", [piece, self.number(f"axis {axis}", [axis])], rows[-1])
            else:
                proto = onnx.helper.make_node("Unsqueeze", [piece], rows[-1:], axes=[axis]).SerializeToString()
                made = self.make("Identity", [piece], rows[-1])
                yield replace(made, operator="Unsqueeze", attributes={"axes": (axis,)}, proto=proto)
        yield self.make("Concat", rows, output, {"axis": axis})


def renamed(node: RawNode, names: Mapping[str, str]) -> RawNode:
    """Return ``node`` with other names of tensors, also in its graphs."""
    return replace(
        node,
        inputs=tuple(names.get(name, name) for name in node.inputs),
        outputs=tuple(names.get(name, name) for name in node.outputs),
        attributes={
            key: _renamed_graph(value, names) if isinstance(value, RawGraph) else value
            for key, value in node.attributes.items()
        },
    )


def _renamed_graph(graph: RawGraph, names: Mapping[str, str]) -> RawGraph:
    own = {*graph.inputs, *graph.constants, *(name for node in graph.nodes for name in node.outputs)}
    outer = {name: other for name, other in names.items() if name not in own}
    return replace(
        graph,
        nodes=tuple(renamed(node, outer) for node in graph.nodes),
        outputs=tuple(outer.get(name, name) for name in graph.outputs),
    )


def _branch(body: _Body) -> Iterator[RawNode]:
    condition = body.constant(0, "condition", "compute both branches and select a result with Where")
    if condition is None:
        raise GraphError(body.node.place, "has no condition")
    name = "then_branch" if condition else "else_branch"
    results: list[str] = []
    yield from body.run(body.graph(name, 0, len(body.node.outputs)), name, [], results)
    yield from body.aliases(results, body.node.outputs)


_UNROLLED = "export the network with a fixed number of steps, or call it in a loop of the firmware"


def _loop(body: _Body) -> Iterator[RawNode]:
    node = body.node
    states = list(node.inputs[2:])
    graph = body.graph("body", 2 + len(states), 1 + len(node.outputs))
    trips, condition = body.constant(0, "trip count", _UNROLLED), body.constant(1, "condition", _UNROLLED)
    if trips is None and condition is None:
        raise GraphError(node.place, "has neither a trip count nor a condition, so it never ends")
    pieces: list[list[str]] = [[] for _ in node.outputs[len(states) :]]
    goes_on, count = condition is None or bool(condition), 0
    while goes_on and (trips is None or count < trips):
        body.take(graph)
        inputs = [body.number(f"{count}/iteration", np.int64(count)), body.number("condition", np.True_), *states]
        results: list[str] = []
        yield from body.run(graph, count, inputs, results)
        states = results[1 : 1 + len(states)]
        for found, piece in zip(pieces, results[1 + len(states) :], strict=True):
            found.append(piece)
        if condition is not None:
            after = body.around.constants.get(results[0])
            if after is None:
                raise body.dynamic("whether the loop goes on is computed in every run", _UNROLLED)
            goes_on = bool(after.all())
        count += 1
    yield from body.aliases(states, node.outputs)
    for found, output in zip(pieces, node.outputs[len(states) :], strict=True):
        yield from body.stacked(found, 0, output)


def _scan(body: _Body) -> Iterator[RawNode]:
    node = body.node
    if body.around.opset < 9:
        raise UnsupportedModelError(
            "operator-variant-unsupported", place=node.place, reason="the Scan of version 8 is not supported",
            hint="export the model for version 9 or later",
        )  # fmt: skip
    scans = node.attributes.get("num_scan_inputs")
    if not isinstance(scans, int) or not 1 <= scans <= len(node.inputs):
        raise GraphError(node.place, f"num_scan_inputs is {scans}")
    states, sources = list(node.inputs[:-scans]), node.inputs[-scans:]
    graph = body.graph("body", len(node.inputs), len(node.outputs))
    axes, count = _scan_axes(body, sources)
    backwards = _numbers(body, "scan_input_directions", scans)
    joined = len(node.outputs) - len(states)
    pieces: list[list[str]] = [[] for _ in range(joined)]
    for step in range(count):
        body.take(graph)
        elements = []
        for index, (name, axis) in enumerate(zip(sources, axes, strict=True)):
            at = count - 1 - step if backwards[index] else step
            elements.append(body.name(step, "element", index))
            yield body.make("Gather", [name, body.number(f"at {at}", np.int64(at))], elements[-1], {"axis": axis})
        results: list[str] = []
        yield from body.run(graph, step, [*states, *elements], results)
        states = results[: len(states)]
        for found, piece in zip(pieces, results[len(states) :], strict=True):
            found.append(piece)
    yield from body.aliases(states, node.outputs)
    targets = zip(
        pieces,
        node.outputs[len(states) :],
        _numbers(body, "scan_output_axes", joined),
        _numbers(body, "scan_output_directions", joined),
        strict=True,
    )
    for found, output, axis, back in targets:
        yield from body.stacked(found[::-1] if back else found, axis, output)


def _scan_axes(body: _Body, sources: Sequence[str]) -> tuple[list[int], int]:
    """Return the axis along which each input is scanned, and the number of steps."""
    axes = _numbers(body, "scan_input_axes", len(sources))
    counts = set()
    for index, name in enumerate(sources):
        shape = body.around.shape(name)
        if shape is None or not -len(shape) <= axes[index] < len(shape):
            raise GraphError(body.node.place, f"cannot scan {name!r} along axis {axes[index]}")
        axes[index] %= len(shape)
        counts.add(shape[axes[index]])
    if len(counts) != 1:
        raise GraphError(body.node.place, f"scans inputs of {' and '.join(map(str, sorted(counts)))} steps together")
    return axes, counts.pop()


def _numbers(body: _Body, name: str, count: int) -> list[int]:
    found = body.node.attributes.get(name, (0,) * count)
    if not isinstance(found, tuple) or len(found) != count or not all(isinstance(value, int) for value in found):
        raise GraphError(body.node.place, f"attribute {name} is not a list of {count} integers")
    return [int(value) for value in found]
