"""A row of the tables of operators: how one operator of TFLite becomes one of the graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.graph import Operator
from mlfbuild.native.graph.bases import Binary

ANY_NUMBER = 1 << 16
"""The number of values of operators that take any number of inputs."""


@dataclass(frozen=True)
class TfliteRow:
    """The conversion of one operator of a file to one of a graph.

    Its inputs are first ``values``, which stay inputs, then constant ``attributes``, which ``make`` gets from its
    ``TfliteSite``. If the file has them in another order, ``order`` is the position of each in the file.
    """

    make: Callable[..., Operator]
    """Makes the operator of the graph from the ``TfliteSite``, and the ``options`` or ``numbers``."""
    values: int = 1
    attributes: int = 0
    options: tuple[str, ...] = ()
    """The table of the options, and the fields that ``make`` gets."""
    numbers: tuple[str, ...] = ()
    """The names of the options of a custom operator, which ``make`` gets."""
    order: tuple[int, ...] = ()
    layer: bool = False
    """Whether the values are (input, weights, bias)."""
    states: tuple[int, ...] = ()
    """Positions of the values that are variables, which the operator updates; the node has an extra output for each."""
    made_states: Callable[[TfliteSite, Any], tuple[tuple[int, ...], ...]] = lambda *_: ()
    """Makes, from the site and the operator, the shapes of states that no tensor of the file represents.

    They have the type of the first output. The node has an extra input and an extra output for each; they are 0 before
    the first run.
    """

    def read(self, site: TfliteSite) -> Operator:
        """Return the operator at ``site``; raises the errors of ``TfliteSite``.

        Raises ``GraphError`` or ``UnsupportedModelError`` if options or constant inputs do not fit the operator.
        """
        if self.numbers:
            return self.make(site, *site.numbers(*self.numbers))
        return self.make(site, *(site.fields(*self.options) if self.options else ()))


def plain_row(operator: type[Operator]) -> TfliteRow:
    """Return the row of an operator that has no attributes, or only a fused activation."""
    values = 2 if issubclass(operator, Binary) else 1
    attributes = [field.name for field in fields(operator)]
    if not attributes:
        return TfliteRow(lambda _: operator(), values)
    if attributes != ["activation"]:
        raise TypeError(f"{operator.name}: a row in frontends/tflite/operators says what its options mean")
    options = (f"{operator.__name__}Options", "FusedActivationFunction")
    return TfliteRow(lambda site, code: operator(site.activation(code)), values, options=options)  # type: ignore[call-arg]  # the attribute
