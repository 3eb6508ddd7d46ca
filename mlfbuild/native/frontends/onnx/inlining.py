"""Copy a graph in an attribute of a node into the graph around it: the subgraphs of If, Loop and Scan.

- ``Surroundings``: the part of the model that the nodes may depend on, such as its constants and the known shapes.
- ``Body``: one node of control flow in its surroundings. It names tensors, adds constants and yields copies of a graph.

A tensor in a graph gets the first output of the node and the number of the iteration as a prefix, as in ``y/0/sum``.
Other new tensors have a word before the number, so that they differ from all of these: ``y/element/0/0``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.node_budget import NodeBudget
from mlfbuild.native.frontends.onnx.affine import Constants
from mlfbuild.native.frontends.onnx.raw_graph import Attribute, RawGraph, RawNode
from mlfbuild.native.graph import GraphError


@dataclass
class Surroundings:
    """The part of the model around an operator of control flow that its nodes depend on."""

    opset: int
    constants: Constants
    taken: Collection[str]
    """The names of the model's own tensors."""
    shape: Callable[[str], tuple[int, ...] | None]
    """Returns the shape of a tensor that has been computed."""
    declared: Mapping[str, tuple[int, ...]]
    """The fixed shapes that the file declares."""
    notes: list[str]
    """Notes for the user."""
    budget: NodeBudget
    """The count of the nodes of loops and branches."""


@dataclass
class Body:
    """The node, and the graphs in it."""

    node: RawNode
    around: Surroundings

    def graph(self, name: str, inputs: int, outputs: int) -> RawGraph:
        """Return the graph of the attribute ``name``; raises ``GraphError`` if its ports are not as many as these.

        ``inputs`` and ``outputs`` are the numbers that the operator prescribes; the attribute must be there.
        """
        found = self.node.attributes.get(name)
        if not isinstance(found, RawGraph):
            raise GraphError(self.node.place, f"attribute {name} is not a graph")
        for word, ports, wanted in (("inputs", found.inputs, inputs), ("outputs", found.outputs, outputs)):
            if len(ports) != wanted:
                raise GraphError(self.node.place, f"the graph {name} has {len(ports)} {word} instead of {wanted}")
        return found

    def given(self, index: int) -> str:
        """Return the name of input ``index``, nothing if it is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else ""

    def constant(self, index: int, what: str) -> np.ndarray | None:
        """Return the only element of input ``index``, ``None`` if it is absent or computed in every run."""
        value = self.around.constants.get(self.given(index))
        if value is None:
            return None
        if value.size != 1:
            raise GraphError(self.node.place, f"the {what} has {value.size} elements")
        return value.reshape(())

    def dynamic(self, reason: str, hint: str) -> UnsupportedModelError:
        """Return the error for nodes that depend on data."""
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

    def selected(self, condition: str, first: str, second: str, output: str) -> Iterator[RawNode]:
        """Yield the nodes that write ``first`` to ``output`` if ``condition``, one element, holds, else ``second``.

        Both tensors must have the same shape, since a graph has only fixed shapes; otherwise raises
        ``UnsupportedModelError``. ``condition`` may have any shape of one element.
        """
        shapes = self.around.shape(first), self.around.shape(second)
        if None not in shapes and shapes[0] != shapes[1]:  # a tensor without a shape was refused
            texts = " and ".join(str(list(shape or ())) for shape in shapes)
            raise self.dynamic(
                f"{output!r} has the shapes {texts}, depending on data", "give all results the same shape"
            )
        flag = self.name("flag", output)
        yield self.make("Reshape", [condition, self.number("no dimensions", np.array([], np.int64))], flag)
        yield self.make("Where", [flag, first, second], output)

    def run(self, graph: RawGraph, prefix: object, inputs: Sequence[str], results: list[str]) -> Iterator[RawNode]:
        """Yield the nodes of ``graph`` on the tensors ``inputs``; append the names of its outputs to ``results``.

        Inner names get ``prefix``, such as the number of the iteration, so that copies do not clash. Constants of
        ``graph`` are added to those of the model under their new names.
        """
        names = dict(zip(graph.inputs, inputs, strict=True))
        inner = [*graph.constants, *(name for node in graph.nodes for name in node.outputs if name)]
        # Each iteration needs its own names, because a tensor is written only once.
        names |= {name: self.name(prefix, name) for name in inner}
        for name, value in graph.constants.items():
            self.around.constants.add(names[name], value)
        for node in graph.nodes:
            yield renamed(node, names)
        results.extend(names.get(name, name) for name in graph.outputs)

    def take(self, graph: RawGraph, times: int = 1) -> None:
        """Count ``times`` iterations of ``graph``; raises ``UnsupportedModelError`` if there are too many nodes."""
        # At least one for an empty body: a loop of 2**40 trips must also fail.
        self.around.budget.take(times * max(1, len(graph.nodes)), self.node.place)

    def aliases(self, results: Sequence[str], outputs: Sequence[str]) -> Iterator[RawNode]:
        """Yield the nodes that give ``results`` the names of the node's outputs."""
        yield from (
            self.make("Identity", [result], name) for result, name in zip(results, outputs, strict=False) if name
        )

    def stacked(self, pieces: Sequence[str], axis: int, output: str) -> Iterator[RawNode]:
        """Yield the nodes that join ``pieces`` along a new ``axis``.

        Nothing is yielded for an absent ``output``. Raises ``UnsupportedModelError`` if there are no pieces, because
        the result would have no elements.
        """
        if not output:
            return
        if not pieces:
            raise UnsupportedModelError(
                "tensor-empty",
                place=self.node.place,
                reason=f"{output!r} has no elements, because the loop has no iteration",
                hint="remove the output of the loop",
            )
        rows = []
        for index, piece in enumerate(pieces):
            rows.append(self.name("stacked", output, index))
            # The axes of Unsqueeze are an input from version 13 on, and an attribute before.
            if self.around.opset >= 13:
                yield self.make("Unsqueeze", [piece, self.number(f"axis {axis}", [axis])], rows[-1])
            else:
                proto = onnx.helper.make_node("Unsqueeze", [piece], rows[-1:], axes=[axis]).SerializeToString()
                made = self.make("Identity", [piece], rows[-1])
                yield replace(made, operator="Unsqueeze", attributes={"axes": (axis,)}, proto=proto)
        yield self.make("Concat", rows, output, {"axis": axis})


def renamed(node: RawNode, names: Mapping[str, str]) -> RawNode:
    """Return ``node`` with other names of tensors, also in its graphs.

    Names that are not in ``names`` stay. In inner graphs, names that they define themselves stay as well, because they
    hide those of the graph around them.
    """
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
    # Names in an inner graph hide those of the graph around it.
    own = {*graph.inputs, *graph.constants, *(name for node in graph.nodes for name in node.outputs)}
    outer = {name: other for name, other in names.items() if name not in own}
    return replace(
        graph,
        nodes=tuple(renamed(node, outer) for node in graph.nodes),
        outputs=tuple(outer.get(name, name) for name in graph.outputs),
    )
