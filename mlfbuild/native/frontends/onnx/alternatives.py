"""Compute an operator with each value that a parameter may have, and select one of the results in every run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.onnx.control_flow import Body
from mlfbuild.native.frontends.onnx.declared_shapes import Choice
from mlfbuild.native.frontends.onnx.raw_graph import RawNode

# All results are computed in every run.
MOST = 8
"""Values of one parameter."""


def one_of(body: Body, index: int, choice: Choice) -> Iterator[RawNode]:
    """Yield the nodes that compute the node of ``body`` with the value in ``choice`` that its input ``index`` has."""
    node, name = body.node, body.node.inputs[index]
    if len(choice.values) > MOST:
        raise UnsupportedModelError(
            "input-not-constant",
            place=node.place,
            reason=f"{name!r} must be constant, because it may have {len(choice.values)} values",
            hint=f"make it constant, or declare a shape of the result that at most {MOST} values lead to",
        )
    body.around.notes.append(
        f"{node.place}: {len(choice.values)} results are computed, because {name!r} is computed in every run"
    )
    row, each, key = body.name("row"), body.name("keys of the elements"), body.name("key")
    yield body.make("Reshape", [name, body.number("one dimension", np.array([-1]))], row)
    yield body.make("Gather", [body.number("keys", np.array(choice.keys)), row], each, {"axis": 0})
    yield body.make("ReduceSum", [each], key, {"keepdims": 0})
    selected = ""
    for position, (number, value) in enumerate(choice.values.items()):
        known = body.number(f"value {position}", np.array(value, np.int64))
        made = body.name("result", position)
        yield replace(node, inputs=(*node.inputs[:index], known, *node.inputs[index + 1 :]), outputs=(made,))
        if selected:
            last = position == len(choice.values) - 1
            equal, result = body.name("is", position), node.outputs[0] if last else body.name("selected", position)
            yield body.make("Equal", [key, body.number(f"key {position}", np.array(number, np.int64))], equal)
            yield from body.selected(equal, made, selected, result)
            made = result
        selected = made
