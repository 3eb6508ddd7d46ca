"""Replace STABLEHLO_COMPOSITE by the subgraph that it names, which computes it with other operators.

Converters write it for functions for which a runtime may have a kernel, such as ``odml.rms_norm``. Its attributes
repeat what the subgraph does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tflite.BuiltinOperator import BuiltinOperator
from tflite.BuiltinOptions2 import BuiltinOptions2

from mlfbuild.native.frontends.tflite.reader import MAXIMUM_COUNT, RawOperator, RawSubgraph, reading
from mlfbuild.native.graph import GraphError


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
