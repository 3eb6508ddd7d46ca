"""Replace WHILE, IF and STABLEHLO_COMPOSITE by the operators of the subgraphs that they name.

Converters write STABLEHLO_COMPOSITE for functions for which a runtime may have a kernel, such as ``odml.rms_norm``. Its
attributes repeat what the subgraph does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tflite.BuiltinOperator import BuiltinOperator
from tflite.BuiltinOptions2 import BuiltinOptions2

from mlfbuild.native.frontends.node_budget import NodeBudget
from mlfbuild.native.frontends.tflite.conversion import SubgraphConversion, check_operators
from mlfbuild.native.frontends.tflite.operators import TfliteSite, keeps_data
from mlfbuild.native.frontends.tflite.reader import MAXIMUM_COUNT, RawOperator, RawSubgraph, reading
from mlfbuild.native.graph import DType, GraphError, Node, Tensor, ops
from mlfbuild.native.graph.bases import WrongShape


def inlined(subgraphs: Sequence[RawSubgraph], index: int) -> tuple[RawSubgraph, frozenset[int]]:
    """Return subgraph ``index`` without STABLEHLO_COMPOSITE, and the subgraphs that became parts of it."""
    if all(operator.code != BuiltinOperator.STABLEHLO_COMPOSITE for operator in subgraphs[index].operators):
        return subgraphs[index], frozenset()
    inlining = _Inlining(subgraphs, index)
    return inlining.subgraph(), frozenset(inlining.used)


# Bounds the recursion; circles are found by the subgraphs that are open.
_DEEPEST = 16
"""Levels of subgraphs that name others."""


class _Inlining:
    def __init__(self, subgraphs: Sequence[RawSubgraph], index: int) -> None:
        self._subgraphs = subgraphs
        self._raw = subgraphs[index]
        self._tensors = list(self._raw.tensors)
        self._operators: list[RawOperator] = []
        # Subgraph inputs that are also its outputs have no operator that could write the result.
        self._same: dict[int, int] = {}
        """Results of composites that are an input or a constant of their subgraph, by their index."""
        self._open = [index]
        self._seen = 0
        """Operators, of which a small file can repeat many by naming subgraphs several times."""
        self.used: set[int] = set()

    def subgraph(self) -> RawSubgraph:
        self._add(self._raw.operators, range(len(self._tensors)))
        outputs = tuple(self._same.get(index, index) for index in self._raw.outputs)
        return replace(self._raw, tensors=tuple(self._tensors), operators=tuple(self._operators), outputs=outputs)

    def _add(self, operators: Sequence[RawOperator], places: Sequence[int], at: int | None = None) -> None:
        """Add ``operators``; ``places`` are their tensors here, and ``at`` is the index of the outermost composite.

        Indices of tensors are translated, so that the operators fit the outer subgraph.
        """
        for operator in operators:
            inputs = [self._place(places, index) for index in operator.inputs]
            moved = replace(
                operator,
                index=operator.index if at is None else at,
                inputs=tuple(self._same.get(index, index) for index in inputs),
                outputs=tuple(self._place(places, index) for index in operator.outputs),
            )
            if operator.code == BuiltinOperator.STABLEHLO_COMPOSITE:
                self._inline(moved)
            else:
                self._operators.append(moved)
            self._seen += 1
            if max(self._seen, len(self._tensors)) > MAXIMUM_COUNT:
                raise GraphError(f"operator {moved.index}", "its subgraphs have too many operators or tensors")

    @staticmethod
    def _place(places: Sequence[int], index: int) -> int:
        # -1 is an absent operand; -2 is an index that no subgraph has, which the checks report.
        return places[index] if 0 <= index < len(places) else -1 if index == -1 else -2

    def _inline(self, operator: RawOperator) -> None:
        place = f"{self._raw.place}operator {operator.index} (STABLEHLO_COMPOSITE)"
        index = _decomposition(place, operator)
        if not 0 <= index < len(self._subgraphs):
            raise GraphError(place, f"names subgraph {index} of {len(self._subgraphs)}")
        if index in self._open:
            raise GraphError(place, f"names subgraph {index}, of which it is a part")
        if len(self._open) > _DEEPEST:
            raise GraphError(place, f"is nested more than {_DEEPEST} levels deep")
        part = self._subgraphs[index]
        if (len(part.inputs), len(part.outputs)) != (len(operator.inputs), len(operator.outputs)):
            raise GraphError(place, f"does not have the inputs and outputs of subgraph {index}")
        places = self._places(part, operator)
        self.used.add(index)
        self._open.append(index)
        self._add(part.operators, places, operator.index)
        self._open.pop()
        for inner, outer in zip(part.outputs, operator.outputs, strict=True):
            result = self._place(places, inner)
            if result != outer:
                self._same[outer] = self._same.get(result, result)

    def _places(self, part: RawSubgraph, operator: RawOperator) -> list[int]:
        """Return where each tensor of ``part`` is; those that are neither input nor output are added."""
        known = dict(zip(part.inputs, operator.inputs, strict=True))
        written = {index for each in part.operators for index in each.outputs}
        for inner, outer in zip(part.outputs, operator.outputs, strict=True):
            # A result that no operator writes is an input or constant, which keeps its own tensor.
            if inner in written:
                known.setdefault(inner, outer)
        places, count = [], len(self._tensors)
        for tensor in part.tensors:
            if tensor.index not in known:
                known[tensor.index] = len(self._tensors)
                self._tensors.append(replace(tensor, index=len(self._tensors)))
            places.append(known[tensor.index])
        for index in range(count, len(self._tensors)):
            blocks = self._tensors[index].blocks
            if blocks is not None:
                moved = blocks._replace(scales=self._place(places, blocks.scales))
                self._tensors[index] = replace(self._tensors[index], blocks=moved)
        return places


def _decomposition(place: str, operator: RawOperator) -> int:
    """Return the index of the subgraph that ``operator`` names."""
    from tflite.StableHLOCompositeOptions import StableHLOCompositeOptions

    if operator.options_type != BuiltinOptions2.StableHLOCompositeOptions or operator.options is None:
        raise GraphError(place, "its options are not StableHLOCompositeOptions")
    options = StableHLOCompositeOptions()
    with reading(place):
        options.Init(operator.options.Bytes, operator.options.Pos)
        return int(options.DecompositionSubgraphIndex())


# The node budget ends loops earlier, unless their bodies are nearly empty.
_MOST_RUNS = 4096
"""Runs of the body of a loop."""
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
        # A call of an NPU is a custom operator without data.
        keeping = any(keeps_data(each.code) and not isinstance(each.options, ops.EthosU) for each in part.operators)
        if keeping or any(tensor.is_variable for tensor in part.tensors):
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
