"""The texts in the nodes of a network's drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlfbuild.report.html import numbers
from mlfbuild.report.html.graph import NODE_HEIGHT, NODE_WIDTH, Block, Placed, blocks
from mlfbuild.report.html.layers import Vertex
from mlfbuild.report.html.operators import known, operator_title, shapes
from mlfbuild.report.html.timeline import tensor_title


@dataclass(frozen=True)
class DrawnNode:
    """A node of the drawing."""

    placed: Placed
    operator: int | None
    """The number of the operator; ``None`` for an input or output of the network."""
    kind: str
    head: str
    text: str
    title: str
    """The tip, a line for each fact."""
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    """Numbers of the tensors that it writes; ``inputs`` are those that it reads."""
    share: int
    """Length of the bar of its share of the work, in pixels."""
    shape: str
    """The shape of its output, below the node."""
    width: int = NODE_WIDTH
    height: int = NODE_HEIGHT


_WIDEST = 400
"""Maximum width of a block that shares the page with other columns, in pixels."""


# As many as document.py has classes for (n1 to n6).
_COLUMNS = 6
_COLUMN_HEIGHT = 300
"""Minimum height of a column, in pixels."""


def column_width(blocks_of: Sequence[Block]) -> int:
    """Return the width of the columns of a drawing, in tens of pixels.

    Blocks that are wider than ``_WIDEST`` do not count: they take the whole width of the page (``spans``).
    """
    # Rounded up to 20 pixels, because the page has classes for these widths only (`w16`, `w18`, ...).
    return max((-(-block.width // 20) * 2 for block in blocks_of if block.width <= _WIDEST), default=20)


def column_count(blocks_of: Sequence[Block]) -> int:
    """Return the maximum number of columns of a drawing, so that a short one is not divided into single nodes."""
    return min(_COLUMNS, max(1, sum(block.height for block in blocks_of) // _COLUMN_HEIGHT))


def spans(block: Block) -> bool:
    """Return whether a block is too wide for a column."""
    return block.width > _WIDEST


def drawing(network: Mapping[str, Any]) -> tuple[tuple[Block, tuple[DrawnNode, ...]], ...]:
    """Return the blocks of a network's drawing, each with its nodes.

    Inputs and outputs of the network are nodes whose key is -1 minus the number of the tensor; the key of an operator
    is its number.
    """
    tensors, operators = network["tensors"], network["operators"]
    written = {tensor for operator in operators for tensor in operator["outputs"]}
    read = {tensor for operator in operators for tensor in operator["inputs"]}
    inputs = [
        index
        for index, tensor in enumerate(tensors)
        if index in read and index not in written and tensor["memory"] != "constant"
    ]
    outputs = [
        index for index, tensor in enumerate(tensors) if index in written and tensor["memory"] in {"output", "state"}
    ]
    vertices = [Vertex(-1 - index, (), (index,)) for index in inputs]
    vertices += [
        Vertex(index, known(operator["inputs"], tensors), known(operator["outputs"], tensors))
        for index, operator in enumerate(operators)
    ]
    vertices += [Vertex(-1 - index, (index,), ()) for index in outputs]
    # The most exact measure of work that the report has.
    key = next((key for key in ("cycles", "instructions") if any(each.get(key) for each in operators)), "macs")
    work = [operator.get(key) or 0 for operator in operators]
    # At least 1, so that a network without work divides by one.
    most = max([1, *work])
    return tuple(
        (
            block,
            tuple(
                _tensor_node(placed, tensors[-1 - placed.key], written=-1 - placed.key in written)
                if placed.key < 0
                else _node(placed, operators[placed.key], tensors, work[placed.key] / most)
                for placed in block.nodes
            ),
        )
        for block in blocks(vertices)
    )


def _tensor_node(placed: Placed, tensor: Mapping[str, Any], *, written: bool) -> DrawnNode:
    head = f"{tensor['memory']} {numbers.shape(tensor['shape'])} {tensor['dtype']}"
    own = (-1 - placed.key,)
    inputs, outputs = (own, ()) if written else ((), own)
    title = tensor_title(tensor)
    return DrawnNode(placed, None, tensor["memory"], head, tensor["name"], title, inputs, outputs, 0, "")


def _node(placed: Placed, operator: Mapping[str, Any], tensors: Sequence[Mapping[str, Any]], share: float) -> DrawnNode:
    texts = (operator["operator"], operator["name"], operator_title(placed.key, operator, tensors))
    inputs, outputs = (known(operator[key], tensors) for key in ("inputs", "outputs"))
    work, shape = round(share * NODE_WIDTH), shapes(operator["outputs"], tensors)
    return DrawnNode(placed, placed.key, "operator", *texts, inputs, outputs, work, shape)
