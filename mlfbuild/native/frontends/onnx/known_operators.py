"""The operators that are imported, and the error about those of a model that are not."""

from __future__ import annotations

from collections.abc import Sequence

from mlfbuild.core import UnsupportedModelError, listed, shown
from mlfbuild.native.frontends.onnx.control_flow import CONTROL_FLOW
from mlfbuild.native.frontends.onnx.expansion import EXPANDED
from mlfbuild.native.frontends.onnx.folding import FOLDABLE
from mlfbuild.native.frontends.onnx.normalise import DOMAINS
from mlfbuild.native.frontends.onnx.operators import OPERATORS
from mlfbuild.native.frontends.onnx.raw_graph import RawModel, RawNode
from mlfbuild.native.frontends.onnx.reader import ML_DOMAIN
from mlfbuild.native.frontends.onnx.refused import REFUSED, SEE, Refusals, refusal

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
