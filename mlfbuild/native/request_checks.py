"""Checks of the native compiler before it lowers a network: parts of a request that exclude each other, and sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import UnsupportedModelError, UsageError
from mlfbuild.library import CompileRequest
from mlfbuild.library.keys import FastWeights
from mlfbuild.native.c_calling_form import form_of

# Null builds check requests, and do not load numpy for that.
if TYPE_CHECKING:
    from mlfbuild.native.graph import Graph

_LARGEST_TENSOR = (1 << 31) - 1
"""Sizes become int32 literals in C."""


def check_request(request: CompileRequest) -> None:
    """Raise ``UsageError`` for a bad placement, and for memories or copies of weights that the code cannot have."""
    _check_placement(request)
    _check_memories(request)
    if request.weights is not None:
        _check_weights(request, request.weights)


def _check_placement(request: CompileRequest) -> None:
    for name, mistake in request.placement.problems():
        raise mistake.error(f"{request.name}: placement.{name}")
    for name in request.placement.sections:
        if request.executor == "graph" and name not in {"params", "workspace"}:
            raise UsageError(
                "section-not-in-graph",
                place=f"{request.name}: placement.{name}",
                reason="the graph executor has no such section",
                hint="remove it, or use executor aot",
            )


def _check_memories(request: CompileRequest) -> None:
    """Raise ``UsageError`` for what cannot be together with memories that the planner chooses from."""
    placement = request.placement
    reasons = {
        "executor: graph": request.executor == "graph",
        "placement.workspace": placement.workspace is not None,
        "placement.state": placement.state is not None,
        "share-workspace and interface-api: packed": placement.shares_workspace and form_of(request).packed,
    }
    other = next((name for name, there in reasons.items() if there), None)
    if request.memories and other is not None:
        raise UsageError(
            "memories-refused",
            place=f"{request.name}: memories",
            reason=f"the model's data cannot be planned over several memories together with {other}",
            hint=f"remove {other} or memories",
        )


def _check_weights(request: CompileRequest, weights: FastWeights) -> None:
    """Raise ``UsageError`` for what cannot be together with copies of weights."""
    form = form_of(request)
    reasons = {
        "executor: graph": form.graph,
        "interface-api: packed": form.packed,
        "parameters: replaceable": form.replaceable,
        "npu": request.npu is not None,
        # A hook may end a run while a block is on its way to the workspace.
        "hook, which may end a run while they are copied": bool(weights.stream and request.options.get("hook")),
    }
    other = next((name for name, there in reasons.items() if there), None)
    if other is not None:
        raise UsageError(
            "weights-refused",
            place=f"{request.name}: weights",
            reason=f"weights cannot be copied to {weights.memory} together with {other}",
            hint="remove one of them",
        )


def check_sizes(graph: Graph) -> None:
    """Raise ``UnsupportedModelError`` for a tensor of 2 GiB or more."""
    for tensor in graph.tensors.values():
        if tensor.size > _LARGEST_TENSOR:
            reason = f"takes {tensor.size} bytes, but at most {_LARGEST_TENSOR} are supported"
            hint = "use a smaller model"
            raise UnsupportedModelError("tensor-too-large", place=f"{graph.name}: {tensor}", reason=reason, hint=hint)


def check_stateless(graph: Graph, name: str) -> None:
    """Raise ``UnsupportedModelError`` if ``graph`` has a state, which packed code does not know."""
    if graph.states:
        raise UnsupportedModelError(
            "packed-interface-without-state",
            place=f"{name}: {graph.states[0].before!r}",
            reason="is a state that is kept between runs, which TVM's AOT executor cannot reset",
            hint="use interface-api c",
        )
