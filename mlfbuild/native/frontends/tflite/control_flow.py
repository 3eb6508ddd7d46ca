"""Replace WHILE and IF by the operators of the subgraphs that they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from mlfbuild.native.frontends.node_budget import NodeBudget
from mlfbuild.native.frontends.tflite.composites import inlined
from mlfbuild.native.frontends.tflite.conversion import SubgraphConversion, check_operators
from mlfbuild.native.frontends.tflite.operators import TfliteSite, keeps_data
from mlfbuild.native.frontends.tflite.reader import RawOperator, RawSubgraph
from mlfbuild.native.graph import DType, Node, Tensor, ops
from mlfbuild.native.graph.bases import WrongShape

# The node budget ends loops earlier, unless their bodies are nearly empty.
_MOST_RUNS = 4096
"""Runs of the body of a loop."""
_DEEPEST = 16
"""Levels of subgraphs that name others."""
_NOWHERE = -2
"""Replaces the index of a tensor that another subgraph does not have."""


class ControlFlow:
    """Copies operators of ``subgraphs`` into number ``index`` of them, where ``convert`` makes nodes of each."""

    def __init__(
        self,
        conversion: SubgraphConversion,
        subgraphs: Sequence[RawSubgraph],
        index: int,
        convert: Callable[[RawOperator], list[Node]],
    ) -> None:
        self._conversion = conversion
        self._tensors = conversion.tensors
        self._subgraphs = subgraphs
        self._convert = convert
        self._open = [index]
        """The subgraphs of which operators are being converted."""
        self._checked: set[int] = set()
        self._expansion = NodeBudget()
        """Counts operators of other subgraphs that became operators of this one, or their tensors."""
        self.inlined: set[int] = set()
        """The subgraphs of which operators became operators of this one, or would if a condition were different."""

    def loop(self, operator: RawOperator) -> list[Node]:
        """Return the nodes of a WHILE, once for each run of its body, which the condition decides at compile time.

        Raises ``UnsupportedModelError`` if the condition is not known at compile time, or if the loop runs too often.
        """
        conversion = self._conversion
        site = conversion.site(operator, conversion.inputs(operator), operator.outputs)
        condition, body = site.fields("WhileOptions", "CondSubgraphIndex", "BodySubgraphIndex")
        if len(operator.inputs) != len(operator.outputs):
            raise site.wrong(f"has {len(operator.inputs)} inputs and {len(operator.outputs)} outputs")
        self.inlined |= {condition, body}
        nodes: list[Node] = []
        values, known = list(operator.inputs), len(conversion.refusals)
        for _ in range(_MOST_RUNS):
            tested, (answer,) = self._inline(site, operator, condition, values, 1)
            again = self._tensors.at(site.place, answer)
            if len(conversion.refusals) > known:  # for a reason that is recorded
                conversion.missing.update(operator.outputs)
                return []
            _check_condition(site, again)
            if again.data is None:
                raise site.unsupported("the number of runs of a loop must be known when the network is compiled",
                                       "convert the model with `unroll=True`", "input-not-constant")  # fmt: skip
            nodes += tested
            if not again.data.all():
                # The values of the last run are those of the operator's outputs.
                return nodes + self._results(site, operator.outputs, values)
            made, values = self._inline(site, operator, body, values, len(values))
            nodes += made
        raise site.unsupported(f"the loop runs more than {_MOST_RUNS} times")

    def branch(self, operator: RawOperator) -> list[Node]:
        """Return the nodes of an IF: of one branch if the condition is known, else of both, and a selection.

        Both branches must then write tensors of the same type and shape.
        """
        conversion = self._conversion
        site = conversion.site(operator, conversion.inputs(operator), operator.outputs)
        branches = site.fields("IfOptions", "ThenSubgraphIndex", "ElseSubgraphIndex")
        self.inlined.update(branches)
        condition, count = site.input(0), len(operator.outputs)
        _check_condition(site, condition)
        if condition.data is not None:
            chosen = branches[0 if condition.data.all() else 1]
            nodes, values = self._inline(site, operator, chosen, operator.inputs[1:], count)
            return nodes + self._results(site, operator.outputs, values)
        nodes, firsts = self._inline(site, operator, branches[0], operator.inputs[1:], count)
        others, seconds = self._inline(site, operator, branches[1], operator.inputs[1:], count)
        # A branch that is not supported must not hide what else is wrong with the model.
        if not conversion.missing.isdisjoint((*firsts, *seconds)):
            conversion.missing.update(operator.outputs)
            return []
        selections = []
        for output, first, second in zip(site.outputs, firsts, seconds, strict=True):
            names = (condition.name, *(self._tensors.at(site.place, index).name for index in (first, second)))
            selections.append(Node(output.name, ops.SelectV2(), names, (output.name,)))
        return [*nodes, *others, *selections]

    def _inline(
        self, site: TfliteSite, operator: RawOperator, index: int, inputs: Sequence[int], count: int
    ) -> tuple[list[Node], list[int]]:
        """Return the nodes of subgraph ``index`` with ``inputs``, and where its ``count`` outputs are."""
        conversion, part = self._conversion, self._part(site, index, len(inputs), count)
        if index not in self._checked:
            self._checked.add(index)
            # Without outputs, whose indices belong to another subgraph and would name other tensors.
            check_operators(conversion, [replace(each, index=operator.index, outputs=()) for each in part.operators])
        # Tensors also count, because a subgraph may declare many that no operator uses.
        self._expansion.take(max(1 + len(part.operators), len(part.tensors)), site.place)
        first = self._tensors.extend(part.tensors)
        conversion.names += self._tensors.names[first:]
        moved = {at: first + at for at in range(len(part.tensors))} | {-1: -1}
        moved |= dict(zip(part.inputs, inputs, strict=True))
        nodes = []
        # Open while its operators are converted, so that a circle of subgraphs is noticed.
        self._open.append(index)
        for each in part.operators:
            copy = replace(
                each,
                index=operator.index,
                inputs=tuple(moved.get(at, _NOWHERE) for at in each.inputs),
                outputs=tuple(moved.get(at, _NOWHERE) for at in each.outputs),
            )
            conversion.written.update(copy.outputs)
            nodes += self._convert(copy)
        self._open.pop()
        return nodes, [moved.get(at, _NOWHERE) for at in part.outputs]

    def _part(self, site: TfliteSite, index: int, inputs: int, outputs: int) -> RawSubgraph:
        """Return subgraph ``index``, which ``site`` names, with so many ``inputs`` and ``outputs``."""
        if not 0 <= index < len(self._subgraphs):
            raise site.wrong(f"names subgraph {index} of {len(self._subgraphs)}")
        if index in self._open:
            raise site.wrong(f"names subgraph {index}, of which it is a part")
        part, _ = inlined(self._subgraphs, index)
        if (len(part.inputs), len(part.outputs)) != (inputs, outputs):
            raise site.wrong(f"does not have the inputs and outputs of subgraph {index}")
        if len(self._open) > _DEEPEST:
            raise site.unsupported(f"subgraphs name each other more than {_DEEPEST} levels deep")
        # A variable in a branch that is not taken would be assigned in the other one.
        if any(tensor.is_variable for tensor in part.tensors) or any(keeps_data(each.code) for each in part.operators):
            raise site.unsupported(f"subgraph {index} keeps data from run to run")
        return part

    def _results(self, site: TfliteSite, outputs: Sequence[int], values: Sequence[int]) -> list[Node]:
        """Return nodes that give the ``values`` the names of ``outputs``; constants need none."""
        nodes = []
        for index, output, value in zip(outputs, site.outputs, values, strict=True):
            source = self._tensors.at(site.place, value)
            if value in self._conversion.missing:
                self._conversion.missing.add(index)
            elif source.dtype is not output.dtype or not self._has_shape(index, output, source.shape):
                raise site.wrong(f"its subgraph returns {source} for {output}")
            elif source.elements == 0:
                continue
            elif source.data is not None:
                self._conversion.settle(site, index, source.data)
            else:
                nodes.append(Node(output.name, ops.Reshape(), (source.name,), (output.name,)))
        return nodes

    def _has_shape(self, index: int, output: Tensor, shape: Sequence[int]) -> bool:
        """Return whether tensor ``index``, the result of a subgraph, has ``shape``, or the file leaves it open."""
        return output.shape == shape or self._tensors.reshape(index, WrongShape.of(output, shape))


def _check_condition(site: TfliteSite, condition: Tensor) -> None:
    if condition.dtype is not DType.BOOL or condition.elements != 1:
        raise site.wrong(f"the condition {condition} must be one bool")
