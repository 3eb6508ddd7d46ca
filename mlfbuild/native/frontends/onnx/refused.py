"""The operators that are imported, why others are not, and all such reasons of one model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from mlfbuild.core import UnsupportedModelError, listed, shown, table_of_package
from mlfbuild.native.frontends.errors import unsupported
from mlfbuild.native.frontends.onnx.control_flow import CONTROL_FLOW
from mlfbuild.native.frontends.onnx.expansion import EXPANDED
from mlfbuild.native.frontends.onnx.folding import FOLDABLE
from mlfbuild.native.frontends.onnx.normalise import DOMAINS, ML_DOMAIN
from mlfbuild.native.frontends.onnx.operators import OPERATORS
from mlfbuild.native.frontends.onnx.raw_graph import RawModel, RawNode
from mlfbuild.native.graph import GraphError, OperatorError

if TYPE_CHECKING:
    from mlfbuild.native.frontends.onnx.raw_graph import RawNode

SEE = "see docs/onnx.md, or use another compiler (tvm or command)"
"""The hint of errors that have no better one."""

REFUSED: Mapping[str, tuple[str, str]] = {
    name: (entry["reason"], entry["hint"])
    for entry in table_of_package(Path(__file__).with_suffix(".toml"))["refused"]
    for name in entry["operators"]
}
"""The reason and the hint for each known operator that is not supported, by its name."""


def refusal(place: str, name: str) -> UnsupportedModelError:
    """Return the error for the operator ``name``, which is in ``REFUSED``."""
    reason, hint = REFUSED[name]
    return UnsupportedModelError("operator-refused", place=place, reason=reason, hint=hint)


_FINAL = frozenset({"constants-too-large", "model-too-large"})
"""Errors after which every other node would have the same one."""


class Refusals:
    """The reasons why nodes and inputs of a model are not supported.

    The outputs of such a node are lost. Nodes that read them are left out, because nothing is known of their inputs.
    """

    def __init__(self) -> None:
        self._errors: list[UnsupportedModelError] = []
        self._lost: set[str] = set()
        self._operators: set[tuple[str, str]] = set()

    def add_operator(self, node: RawNode, error: UnsupportedModelError) -> None:
        """Record ``error``, about the operator of ``node``, unless one about this operator is known."""
        if (node.domain, node.operator) not in self._operators:
            self._operators.add((node.domain, node.operator))
            self._errors.append(error)
        self._lost.update(filter(None, node.outputs))

    def hide(self, node: RawNode) -> bool:
        """Return whether ``node`` reads a lost tensor; its outputs are then also lost."""
        if not self._lost or self._lost.isdisjoint(node.reads):
            return False
        self._lost.update(filter(None, node.outputs))
        return True

    def check(self) -> None:
        """Raise an error with all reasons, if there are any."""
        if self._errors:
            raise UnsupportedModelError.of(self._errors)

    @contextmanager
    def collected(self, made: Iterable[str]) -> Iterator[None]:
        """Record why the block finds something unsupported, which then does not make the tensors ``made``."""
        try:
            yield
        except (UnsupportedModelError, OperatorError) as error:
            self._errors.append(unsupported(error) if isinstance(error, OperatorError) else error)
            if self._errors[-1].code in _FINAL:
                self.check()
            self._lost.update(filter(None, made))

    @contextmanager
    def all_at_once(self) -> Iterator[None]:
        """Raise the recorded reasons with the error of the block, and instead of that of a malformed model."""
        try:
            yield
        except UnsupportedModelError as error:
            raise UnsupportedModelError.of([*self._errors, error]) from None
        except GraphError:
            self.check()
            raise


EXPANDED_DOMAINS = (*DOMAINS, "com.microsoft")
"""Domains whose operators are rewritten as operators of ONNX's own domain."""
KNOWN = frozenset({*OPERATORS, *FOLDABLE, *EXPANDED, *CONTROL_FLOW})
"""The operators of ONNX's own domains that are imported."""


def check_operators(raw: RawModel, refusals: Refusals) -> None:
    """Record the operators of ``raw`` that cannot be imported, those without a reason of their own together."""
    missing: dict[tuple[str, str], RawNode] = {}
    for node in raw.nodes:
        if not is_supported(node):
            missing.setdefault((node.domain, node.operator), node)
    others = [node for node in missing.values() if node.operator not in REFUSED]
    together = unsupported_operators(others) if others else None
    for node in missing.values():
        refusals.add_operator(node, together if together and node in others else unsupported_operators([node]))


def is_supported(node: RawNode) -> bool:
    """Return whether the operator of ``node`` is one that can be imported."""
    if node.domain in (*DOMAINS, ML_DOMAIN):
        return node.operator in KNOWN
    return node.operator in EXPANDED and node.domain in EXPANDED_DOMAINS


def unsupported_operators(nodes: Sequence[RawNode]) -> UnsupportedModelError:
    """Return the error for the unsupported operators of ``nodes``; its place is the first node."""
    first = nodes[0]
    if first.operator in REFUSED:
        return refusal(first.place, first.operator)
    names = listed([shown(node.qualified) for node in nodes])
    return UnsupportedModelError(
        "operator-unsupported",
        place=first.place,
        reason=f"operator {names} is not supported" if len(nodes) == 1 else f"operators {names} are not supported",
        hint=SEE,
    )
