"""The subgraph that is being converted: the state that all parts of the importer share."""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.tflite.operators import TfliteSite, operator_name
from mlfbuild.native.frontends.tflite.operators.detections import resized
from mlfbuild.native.frontends.tflite.reader import RawOperator, RawSubgraph
from mlfbuild.native.frontends.tflite.tensors import Tensors, unique_names
from mlfbuild.native.frontends.tflite.unsigned import held_as_int8
from mlfbuild.native.graph import Array, ConstantBudget, GraphError, Tensor


class SubgraphConversion:
    """One subgraph while its operators are converted in order; it has no composites."""

    def __init__(self, subgraph: RawSubgraph, budget: ConstantBudget) -> None:
        self.file = resized(subgraph)
        """The subgraph with the types of the file."""
        self.raw = held_as_int8(self.file)
        """The subgraph with uint8 tensors as int8; the same as ``file`` if there are none."""
        self.budget = budget
        self.tensors = Tensors(self.raw)
        self.names = unique_names(self.file.tensors)
        """The names of the tensors in messages, by index."""
        self.written = {index for operator in self.raw.operators for index in operator.outputs}
        self.refusals: list[UnsupportedModelError] = []
        """Why operators are not supported."""
        self.missing: set[int] = set()
        """The tensors that such operators would write, and those that are computed from them."""

    def place(self, operator: RawOperator) -> str:
        """Return where ``operator`` is, in messages.

        The index of the operator counts in the file, and the name is that of its first output.
        """
        outputs = [index for index in operator.outputs if 0 <= index < len(self.names)]
        target = f" writing {self.names[outputs[0]]!r}" if outputs else ""
        return f"{self.raw.place}operator {operator.index} ({described(operator)}){target}"

    def inputs(self, operator: RawOperator) -> list[Tensor]:
        """Return the inputs of an operator of which none may be absent."""
        return [self.tensors.at(self.place(operator), index) for index in operator.inputs]

    def site(self, operator: RawOperator, inputs: Sequence[Tensor | None], outputs: Sequence[int]) -> TfliteSite:
        """Return ``operator`` with ``inputs`` and the tensors ``outputs``."""
        place = self.place(operator)
        results = tuple(self.tensors.at(place, index) for index in outputs)
        return TfliteSite(place, tuple(inputs), results, operator.options_type, operator.options, operator.unsigned,
                          self.tensors.are_complex((*operator.inputs, *outputs)))  # fmt: skip

    def settle(self, site: TfliteSite, index: int, value: Array) -> None:
        """Make tensor ``index``, which ``site`` writes, the constant ``value``.

        Raises ``GraphError`` if the tensor is a constant already.
        """
        if self.tensors.at(site.place, index).constant:
            raise GraphError(site.place, "writes a constant")
        self.tensors.fill(index, value)


def described(operator: RawOperator) -> str:
    """Return the name of an operator in messages: ``CONV_2D``, ``CUSTOM 'Detect'``."""
    custom = f" {operator.custom_code!r}" if operator.custom_code else ""
    return f"{operator_name(operator.code)}{custom}"
