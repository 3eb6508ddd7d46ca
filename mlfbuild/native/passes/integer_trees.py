"""Compare the features of decision trees as the integers that a network gets, without making floats of them.

A forest of ONNX compares float32. If its features are integers of at most 32 bits that CAST or DEQUANTIZE converts, or
that are also shifted and scaled by constants, then every step is monotonic: a greater integer never becomes a smaller
float. So ``feature <= threshold`` is ``integer <= limit``, with the greatest integer that the steps bring to no more
than the threshold. The steps are computed in their own arithmetic, so the limit has their roundings, and no row takes
another path::

    x int16 -> CAST -> SUB 3.5 -> MUL 0.25 -> TREE_ENSEMBLE with x[2] <= 1.1 and x[0] <= -900
    x int16 -> TREE_ENSEMBLE with x[2] <= 7 and x[0] <= -3597
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mlfbuild.native.graph import Activation, Array, DType, Graph, Node, Tensor, evaluate, integer_range
from mlfbuild.native.graph.ops import Add, Cast, Dequantize, Div, Mul, Quantize, Sub, TreeEnsemble
from mlfbuild.native.passes.rewrite import rebuild

_CONVERTS = (Cast, Dequantize, Quantize)
_COMPUTES = (Add, Sub, Mul, Div)
_STORED = tuple(dtype for dtype in TreeEnsemble.types if dtype is not DType.FLOAT32)
_FEATURES, _THRESHOLDS = 1, 2
"""Positions of inputs of TREE_ENSEMBLE."""
_MOST_LIMITS = 1 << 24


def integer_trees(graph: Graph) -> Graph:
    """Let every forest whose features are converted from integers read these integers, with thresholds of int32.

    Returns the same graph if there is none. Other readers of the converted features still get them.
    """
    nodes, tensors = list(graph.nodes), []
    for at, node in enumerate(graph.nodes):
        if isinstance(node.operator, TreeEnsemble) and (steps := _steps(graph, str(node.inputs[0]))):
            features, thresholds = (graph.inputs_of(node)[each].known for each in (_FEATURES, _THRESHOLDS))
            limits = _limits(graph, steps, features, thresholds)
            if limits is None:
                continue
            name = f"{node.inputs[_THRESHOLDS]}/{node.outputs[0]}/integers"
            tensors.append(Tensor(name, limits.shape, DType.INT32, data=limits))
            inputs = (steps[0].inputs[0], node.inputs[_FEATURES], name, *node.inputs[_THRESHOLDS + 1 :])
            nodes[at] = replace(node, inputs=inputs)
    return rebuild(graph, nodes, tensors) if tensors else graph


def _steps(graph: Graph, name: str) -> list[Node]:
    """Return the monotonic nodes that make the tensor ``name`` of integers, in order; none if there are others."""
    writers = {output: node for node in graph.nodes for output in node.outputs}
    found: list[Node] = []
    while name in writers and _is_monotonic(graph, writers[name]):
        found.insert(0, writers[name])
        name = str(found[0].inputs[0])
    while found and graph.inputs_of(found[0])[0].dtype not in _STORED:
        del found[0]
    return found


def _is_monotonic(graph: Graph, node: Node) -> bool:
    source, *others = graph.inputs_of(node).present
    (output,) = graph.outputs_of(node)
    if source.constant or source.shape != output.shape or len(source.shape) != 2:
        return False
    if isinstance(node.operator, _CONVERTS):
        # Integers that CAST makes may wrap; QUANTIZE is only that of uint8, whose zero point it moves by 128.
        moves = isinstance(node.operator, Quantize) and _is_moved(source, output)
        return moves or (output.dtype is DType.FLOAT32 and source.dtype in _STORED)
    if not isinstance(node.operator, _COMPUTES) or node.operator.activation is not Activation.NONE:
        return False
    data = others[0].data
    # One number, or one for each feature.
    if data is None or not np.isfinite(data).all() or data.size not in {1, *data.shape[-1:]}:
        return False
    return isinstance(node.operator, Add | Sub) or bool((data > 0).all())


def _is_moved(source: Tensor, output: Tensor) -> bool:
    """Whether int8 ``output`` has the numbers of uint8 ``source``."""
    return (
        source.dtype is DType.UINT8
        and output.dtype is DType.INT8
        and source.affine.scale == output.affine.scale
        and source.affine.zero_point - 128 == output.affine.zero_point
    )


def _limits(graph: Graph, steps: list[Node], features: Array, thresholds: Array) -> Array | None:
    """Return, for each node, the greatest integer that ``steps`` bring to at most the threshold of its feature.

    ``features`` int32 and ``thresholds`` float32 are [nodes], and the result is int32. If even the least integer is
    above a threshold, the result is one below it. Returns ``None`` if int32 has no such number, and for forests with so
    many features that this would take too much memory.
    """
    source = graph.tensor(str(steps[0].inputs[0]))
    least, greatest = integer_range(source.dtype)
    # All thresholds of a feature in a column, so that the steps are computed for all of them at once.
    order = np.argsort(features, kind="stable")
    counts = np.bincount(features, minlength=source.shape[1])
    ranks = np.arange(len(features)) - np.repeat(np.cumsum(counts) - counts, counts)
    if counts.max() * source.shape[1] > _MOST_LIMITS:
        return None
    wanted = np.full((counts.max(), source.shape[1]), np.nan, np.float32)
    wanted[ranks, features[order]] = thresholds[order]
    part = _part(graph, steps, wanted.shape)
    # Below ``low`` everything fits, above ``high`` nothing: the interval is halved until it is empty.
    low, high = np.full(wanted.shape, least - 1, np.int64), np.full(wanted.shape, greatest, np.int64)
    while (low < high).any():
        middle = (low + high + 1) >> 1
        with np.errstate(all="ignore"):
            made = evaluate(part, {part.inputs[0]: middle.astype(source.dtype.numpy)})[part.outputs[0]]
        fits = made <= wanted
        low, high = np.where(fits, middle, low), np.where(fits, high, middle - 1)
    limits = np.empty(len(features), np.int64)
    limits[order] = low[ranks, features[order]]
    return limits.astype(np.int32) if limits.min() >= np.iinfo(np.int32).min else None


def _part(graph: Graph, steps: list[Node], shape: tuple[int, ...]) -> Graph:
    """Return the network of ``steps`` for rows of ``shape``."""
    names = {str(steps[0].inputs[0]), *(node.outputs[0] for node in steps)}
    tensors = [replace(graph.tensor(name), shape=shape) for name in sorted(names)]
    constants = {name for node in steps for name in node.inputs[1:] if name is not None}
    tensors += [graph.tensor(name) for name in sorted(constants)]
    return Graph(graph.name, tensors, steps, [str(steps[0].inputs[0])], [steps[-1].outputs[0]])
