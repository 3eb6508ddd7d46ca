"""The conversion of one operator of TFLite."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

from mlfbuild.frontends.tflite.operators.site import TfliteSite
from mlfbuild.frontends.tflite.reader import reading
from mlfbuild.graph import Operator
from mlfbuild.graph.bases import Binary


@dataclass(frozen=True)
class OperatorKind:
    """The conversion of one operator of a file to one of a graph.

    Its inputs are first ``values``, which stay inputs, then constant ``attributes``, which ``read`` gets from its
    ``TfliteSite``. If the file has them in another order, ``order`` is the position of each in the file.
    """

    read: Callable[[TfliteSite], Operator]
    values: int
    attributes: int = 0
    order: tuple[int, ...] = ()
    layer: bool = False
    """Whether the values are (input, weights, bias)."""
    states: tuple[int, ...] = ()
    """Positions of the values that are variables, which the operator updates; the node has an extra output for each."""
    made_states: Callable[[TfliteSite], tuple[tuple[int, ...], ...]] | None = None
    """Makes the shapes of states that no tensor of the file represents, in the type of the first output.

    The node has an extra input and an extra output for each; they are 0 before the first run.
    """

    @property
    def keeps_state(self) -> bool:
        """Whether making a node adds state to the network."""
        return bool(self.states) or self.made_states is not None


ANY_NUMBER = 1 << 16
"""The number of values of operators that take any number of inputs."""


def plain_kind(operator: type[Operator]) -> OperatorKind:
    """Return the kind of an operator that has no attributes, or only a fused activation."""
    values = 2 if issubclass(operator, Binary) else 1
    attributes = [field.name for field in fields(operator)]
    if not attributes:
        return OperatorKind(lambda _: operator(), values)
    assert attributes == ["activation"], (
        f"{operator.name}: a file in frontends/tflite/operators says what its options mean"
    )
    options = f"{operator.__name__}Options"

    def read(site: TfliteSite) -> Operator:
        with reading(site.place):
            return operator(site.activation(site.read_options(options).FusedActivationFunction()))  # type: ignore[call-arg]  # the attribute

    return OperatorKind(read, values)
